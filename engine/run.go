package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/stream"
)

// Run runs a job until its input ends, it is stopped, or it fails for good, and returns when every part is closed.
//
// The end of ctx aborts the run without a checkpoint, unless its cause is ErrStop, which asks for a graceful stop, as
// Handle.Stop does. A stopped run is no error. Parts that ignore their contexts delay the return.
func Run[In, Out any](ctx context.Context, job Job[In, Out], opts Options) (Result, error) {
	opts, optsErr := opts.resolve()
	if err := errors.Join(job.check(), optsErr); err != nil {
		return Result{Job: job.Name}, err
	}
	return start(ctx, job.Name, jobParts[In, Out]{job}, opts)
}

// run is one call of Run: attempts, one after another.
type run struct {
	name    string
	id      RunID
	parts   parts
	opts    Options
	history *history
	handle  *Handle
	ins     *instruments
	log     *slog.Logger
	begun   time.Time

	start      *Checkpoint  // what the run began with, nil for the start
	attempted  int          // attempts begun
	lastFailed stream.Tally // of the last attempt

	mu   sync.Mutex // guards view
	view view
}

// start opens the store and decides where to begin.
func start(ctx context.Context, name string, p parts, opts Options) (Result, error) {
	r := &run{name: name, parts: p, opts: opts, handle: opts.Handle, begun: time.Now(),
		log: opts.Log.With("job", name), ins: newInstruments(opts.Meter, name)}
	rand.Read(r.id[:])
	if err := r.check(); err != nil {
		return r.result(Failed), err
	}
	if err := r.handle.bind(r); err != nil {
		return r.result(Failed), err
	}
	defer close(r.handle.over())
	r.show(func(v *view) { v.state = Starting })
	defer r.show(func(v *view) { v.state = Ended })
	store, done, err := r.openStore(ctx)
	if err != nil {
		return r.result(Failed), err
	}
	defer done()
	r.history = newHistory(store, name, r.id, opts.Checkpoint.Keep, r.log)
	if err := r.choose(ctx); err != nil {
		return r.result(Failed), fmt.Errorf("job %q: %w", name, err)
	}
	if r.start != nil && r.start.Finished {
		r.log.InfoContext(ctx, "nothing to do: the run has finished", "checkpoint", r.start.ID)
		return r.result(NothingToDo), nil
	}
	if err := r.history.probe(ctx); err != nil {
		return r.result(Failed), fmt.Errorf("job %q: %w", name, err)
	}
	return r.supervise(ctx)
}

// check refuses jobs whose rows nobody would ever see, or not as they should.
func (r *run) check() error {
	bounded, err := r.parts.bounded()
	if err == nil {
		err = r.checkCommits(bounded)
	}
	if err == nil {
		every := r.opts.Checkpoint.Every
		err = r.parts.fits(stream.Shape{Bounded: bounded, Streaming: every > 0, Every: every}, r.log)
	}
	if err != nil {
		return fmt.Errorf("job %q: %w", r.name, err)
	}
	return nil
}

func (r *run) checkCommits(bounded bool) error {
	scope, every := r.parts.commitScope(), r.opts.Checkpoint.Every
	switch {
	case scope == stream.AtEnd && every > 0:
		return fmt.Errorf("Options.Checkpoint.Every is %v, and the sink makes all rows visible at once when the input has ended: set it to 0", every)
	case scope == stream.AtEnd && !bounded:
		return errors.New("the source never ends, and the sink makes all rows visible at once when it has: use another source, or another way to write")
	case scope != stream.NoCommit && !bounded && every == 0:
		return errors.New("Options.Checkpoint.Every is 0, the source never ends, and the sink makes rows visible at checkpoints only: set an interval such as 10s")
	}
	return nil
}

func (r *run) openStore(ctx context.Context) (store Store, done func(), err error) {
	c := r.opts.Checkpoint
	if c.Store != nil {
		return c.Store, func() {}, nil
	}
	url := c.URL
	if url == "" {
		url = "mem://"
	}
	s, err := OpenStore(ctx, url)
	if err != nil {
		return nil, nil, fmt.Errorf("job %q: %w", r.name, err)
	}
	return s, func() {
		if err := s.Close(); err != nil {
			r.log.Warn("closing failed", "part", "checkpoint store", "error", err)
		}
	}, nil
}

// choose finds the checkpoint to begin with.
func (r *run) choose(ctx context.Context) error {
	c, err := r.history.open(ctx, r.opts.From)
	if err != nil {
		return err
	}
	anew := c != nil && c.Finished && r.opts.From == Auto
	switch {
	case anew:
		r.log.InfoContext(ctx, "the last run has finished: starting anew", "checkpoint", c.ID)
		c = nil
	case c != nil && !c.Finished:
		r.log.InfoContext(ctx, "going on from a checkpoint", "checkpoint", c.ID, "taken", c.Taken)
	case c == nil:
		r.log.InfoContext(ctx, "starting")
	}
	r.start = c
	r.show(func(v *view) {
		v.startedAnew = anew
		if c != nil {
			v.resumedFrom = c.ID
			v.restore(c)
		}
	})
	return nil
}

// supervise watches over the attempts.
func (r *run) supervise(outer context.Context) (Result, error) {
	// Attempts must outlive outer when it asks for a graceful stop.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(outer))
	var watchers sync.WaitGroup
	// Owned by this call: both end when ctx does.
	watchers.Go(func() { r.watch(outer, ctx, cancel) })
	watchers.Go(func() { r.report(ctx) })
	outcome, err := r.attempts(ctx)
	cancel(ErrEnded)
	watchers.Wait()
	if err != nil {
		err = fmt.Errorf("job %q: %w", r.name, err)
	}
	result := r.result(outcome)
	if err != nil {
		result.Tally.Add(r.lastFailed)
	}
	return result, err
}

// watch turns the end of the caller's context into a stop or an abort, and bounds the stop.
func (r *run) watch(outer, ctx context.Context, abort context.CancelCauseFunc) {
	done, stop := outer.Done(), r.handle.stopped()
	var late <-chan time.Time
	for {
		select {
		case <-done:
			if !errors.Is(context.Cause(outer), ErrStop) {
				abort(context.Cause(outer))
				return
			}
			done = nil
			r.handle.Stop()
		case <-stop:
			stop = nil
			timer := time.NewTimer(r.opts.StopTimeout)
			defer timer.Stop()
			late = timer.C
		case <-late:
			abort(fmt.Errorf("%w: it was given %v; the job can go on from its newest checkpoint", ErrStopTimeout, r.opts.StopTimeout))
			return
		case <-ctx.Done():
			return
		}
	}
}

// report calls Options.Progress.
func (r *run) report(ctx context.Context) {
	if r.opts.Progress == nil {
		return
	}
	ticker := time.NewTicker(r.opts.ProgressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.opts.Progress(r.status())
		case <-ctx.Done():
			return
		}
	}
}

// attempts tries until an attempt succeeds or the restart policy gives up.
func (r *run) attempts(ctx context.Context) (Outcome, error) {
	budget := budget{policy: r.opts.Restart}
	for first := true; ; first = false {
		begun := time.Now()
		outcome, err := r.try(ctx, first)
		if err == nil {
			return outcome, nil
		}
		if ctx.Err() != nil {
			return Failed, context.Cause(ctx)
		}
		r.failed(err)
		if permanent(err) {
			return Failed, err
		}
		delay, ok := budget.next(time.Since(begun))
		if !ok {
			return Failed, r.giveUp(err)
		}
		r.log.Warn("attempt failed: starting again", "attempt", budget.spent, "of", r.opts.Restart.Attempts, "backoff", delay, "error", err)
		if err := r.pause(ctx, delay, err); err != nil {
			return Failed, err
		}
	}
}

// try makes an attempt, after the first from what the store holds by now.
func (r *run) try(ctx context.Context, first bool) (Outcome, error) {
	r.lastFailed = stream.Tally{}
	r.attempted++
	from := r.start
	if !first {
		var err error
		if from, err = r.history.reopen(ctx, r.start); err != nil {
			return Failed, err
		}
		r.restarted(from)
	}
	if from != nil && from.Finished {
		return Finished, nil // the last checkpoint had been published, though nobody heard
	}
	return r.attempt(ctx, from)
}

// failed shows why an attempt failed. The error itself is logged only where it is not returned; the stack of a panic is
// in no error's text.
func (r *run) failed(err error) {
	if p, ok := errors.AsType[*PanicError](err); ok {
		r.log.Error("panic", "panic", fmt.Sprint(p.Value), "stack", string(p.Stack))
	}
	r.show(func(v *view) { v.lastFailure, v.lastFailureAt = err, time.Now() })
}

func (r *run) giveUp(err error) error {
	if r.opts.Restart.Policy == NoRestart {
		return err
	}
	return fmt.Errorf("gave up after %d restarts in a row: %w", r.opts.Restart.Attempts, err)
}

// pause waits for the time of the next attempt. A stop meanwhile ends the run with the error of the last one: there is
// nothing that could take a final checkpoint.
func (r *run) pause(ctx context.Context, delay time.Duration, last error) error {
	r.show(func(v *view) { v.state = Restarting })
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.handle.stopped():
		return fmt.Errorf("stopped while waiting to start again after: %w", last)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
