package engine

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/stream"
)

// attempt is one try at a job, from a checkpoint or the start until it ends or fails. It is the coordinator: everything
// in it belongs to the goroutine that called run.attempt, and other goroutines send it functions to call.
//
// The goroutines of an attempt: one per lane, at most one that stores a checkpoint and prunes old ones after it (the next
// may begin meanwhile), and at most one that commits. All have ended when close returns.
type attempt struct {
	run     *run
	ctx     context.Context
	cancel  context.CancelCauseFunc
	events  chan func(*attempt) error
	woken   chan struct{} // by the enumerator
	lanesWG sync.WaitGroup
	aside   sync.WaitGroup // storing and committing

	restored   *Checkpoint // nil at a fresh start
	enumerator stream.Enumerator
	committers *committers // nil for a sink with one phase
	scope      stream.CommitScope
	lanes      []*lane
	workers    []laneWorker
	parking    parking
	holding    []bool // by lane: it was given a split and has not asked for another

	started    bool // the lanes run
	timer      *time.Timer
	due        bool // the timer fired
	stopping   bool
	savepoints []chan<- savepointAnswer // asked for, not begun

	aligning *alignment // the barrier under way
	storing  *pending   // the checkpoint being stored
	failures int        // to store, in a row
	final    *pending   // the last checkpoint, once it is captured

	ledger     ledger
	newest     *pending // the last checkpoint stored
	committing bool

	outcome Outcome      // not Failed: the attempt is done
	failed  stream.Tally // the record that ended it
}

// attempt runs the job once, from a checkpoint or, with nil, from the start.
func (r *run) attempt(ctx context.Context, from *Checkpoint) (Outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	a := &attempt{
		run: r, ctx: ctx, cancel: cancel, restored: from, scope: r.parts.commitScope(),
		events: make(chan func(*attempt) error, 4*r.opts.Lanes),
		woken:  make(chan struct{}, 1),
		timer:  time.NewTimer(time.Hour),
	}
	a.timer.Stop()
	err := a.open()
	if err == nil {
		err = a.loop()
	}
	a.close(err)
	r.lastFailed = a.failed
	return a.outcome, err
}

var errAttemptOver = errors.New("the attempt is over")

func (a *attempt) open() error {
	r := a.run
	cc := stream.CommitterContext{Job: r.name, Meter: r.opts.Meter, Log: r.log}
	var err error
	if a.committers, err = r.parts.newCommitters(a.ctx, cc, r.opts.Lanes); err != nil {
		return err
	}
	if err := a.commitRestored(); err != nil {
		return err
	}
	if err := a.openEnumerator(); err != nil {
		return err
	}
	if err := a.openLanes(); err != nil {
		return err
	}
	a.started = true
	for i, w := range a.workers {
		a.lanesWG.Go(func() { a.runLane(i, w) })
	}
	r.attempting(a)
	a.armTimer(0)
	return nil
}

// commitRestored keeps the promises of the restored checkpoint before anything new is written.
func (a *attempt) commitRestored() error {
	if a.restored == nil || len(a.restored.Committables) == 0 {
		return nil
	}
	if a.committers == nil {
		return brokenContract("checkpoint %d holds %d committables, and the sink has no committer: it is not the sink that the checkpoint was taken with",
			a.restored.ID, len(a.restored.Committables))
	}
	return a.commit(a.restored.Committables)
}

func (a *attempt) openEnumerator() error {
	ec := stream.EnumeratorContext{Job: a.run.name, Lanes: a.run.opts.Lanes, Wake: a.wake, Meter: a.run.opts.Meter, Log: a.run.log}
	if a.restored != nil {
		ec.State = a.restored.Enumerator
	}
	var err error
	if a.enumerator, err = a.run.parts.newEnumerator(a.ctx, ec); err != nil {
		return fmt.Errorf("make enumerator: %w", err)
	}
	if a.restored == nil {
		return nil
	}
	return guarded(func() error {
		byLane := map[int][]stream.Split{}
		for _, h := range a.restored.Splits {
			byLane[h.Lane] = append(byLane[h.Lane], h.Split)
		}
		for _, lane := range slices.Sorted(maps.Keys(byLane)) {
			a.enumerator.Return(lane, byLane[lane])
		}
		return nil
	})
}

// wake is called by the enumerator, from any goroutine. Wakes that nobody has noticed yet are one.
func (a *attempt) wake() {
	select {
	case a.woken <- struct{}{}:
	default:
	}
}

func (a *attempt) openLanes() error {
	n := a.run.opts.Lanes
	a.holding = make([]bool, n)
	for i := range n {
		lc := laneContext{job: a.run.name, lanes: n, lane: newLane(i), tell: a.tell,
			run: hex.EncodeToString(a.run.id[:]), attempt: a.run.attempted, streaming: a.run.opts.Checkpoint.Every > 0,
			meter: a.run.opts.Meter, log: a.run.log, ins: a.run.ins}
		if a.restored != nil {
			lc.checkpoint, lc.states = a.restored.ID, statesOf(i, n, a.restored.States)
		}
		w, err := a.run.parts.newLane(a.ctx, lc)
		if err != nil {
			return fmt.Errorf("lane %d: %w", i, err)
		}
		a.lanes, a.workers = append(a.lanes, lc.lane), append(a.workers, w)
	}
	return nil
}

func (a *attempt) runLane(index int, w laneWorker) {
	err := w.run(a.ctx)
	if err == nil {
		return
	}
	atRecord := w.failedAtRecord() || errors.Is(err, stream.ErrRecordFailed)
	a.tell(a.ctx, func(a *attempt) error {
		if atRecord {
			a.failed = stream.Tally{Read: 1, Failed: 1}
		}
		return err
	})
}

// tell has the coordinator call f, whose error ends the attempt. It waits for its turn unless the attempt has ended.
func (a *attempt) tell(ctx context.Context, f func(*attempt) error) {
	select {
	case a.events <- f:
	case <-ctx.Done():
	}
}

// loop does one thing after another until the attempt is done.
func (a *attempt) loop() error {
	for a.outcome == Failed {
		if err := a.turn(); err != nil {
			return err
		}
	}
	return nil
}

func (a *attempt) turn() error {
	stop := a.run.handle.stopped()
	if a.stopping {
		stop = nil
	}
	select {
	case f := <-a.events:
		if err := f(a); err != nil {
			return err
		}
	case <-a.woken:
		a.parking.wake()
		if err := a.serve(); err != nil {
			return err
		}
	case <-a.timer.C:
		if a.final != nil {
			a.storeFinalAgain()
		}
		a.due = true
	case <-stop:
		a.stopping = true
		a.run.show(func(v *view) { v.state = Stopping })
	case reply := <-a.run.handle.savepointRequests():
		a.savepoints = append(a.savepoints, reply)
	case <-a.ctx.Done():
		return context.Cause(a.ctx)
	}
	return a.advance()
}

// close ends everything the attempt started. After a success nothing is cut short.
func (a *attempt) close(err error) {
	if err == nil {
		a.lanesWG.Wait()
		a.aside.Wait()
	}
	a.cancel(errAttemptOver)
	a.lanesWG.Wait()
	a.aside.Wait()
	a.run.attempting(nil)
	a.timer.Stop()
	for _, w := range a.workers {
		if !a.started { // those that ran have closed themselves
			a.warn(w.close(), "lane")
		}
	}
	if a.enumerator != nil {
		a.warn(guarded(a.enumerator.Close), "enumerator")
	}
	if a.committers != nil {
		a.warn(a.committers.close(), "committer")
	}
	a.answerSavepoints(a.savepoints, savepointAnswer{err: fmt.Errorf("no savepoint: %w", errAttemptOver)})
}

func (a *attempt) warn(err error, part string) {
	if err != nil {
		a.run.log.Warn("closing failed", "part", part, "error", err)
	}
}
