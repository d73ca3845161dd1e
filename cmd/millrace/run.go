package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/job"
)

// jobFlags are the flags of every command that runs a job.
type jobFlags struct {
	local       localFlag
	parallelism int
	store       string
	from        string
	http        httpFlags
}

func (f *jobFlags) add(cmd *cobra.Command) {
	f.addWithoutFrom(cmd)
	cmd.Flags().StringVar(&f.from, "from", "", "where to start: latest, none or a checkpoint's number (default: go on with an unfinished run)")
}

// addWithoutFrom is for jobs that always go on.
func (f *jobFlags) addWithoutFrom(cmd *cobra.Command) {
	f.local.add(cmd)
	cmd.Flags().IntVar(&f.parallelism, "parallelism", 0, "lanes that work side by side (default: as the job file says, else one for each processor)")
	cmd.Flags().StringVar(&f.store, "checkpoint-dir", "", "`URL` of the checkpoint store, file://folder or gs://bucket/prefix (default: as the job file says)")
	f.http.add(cmd)
}

func (a *app) runJob() *cobra.Command {
	var flags jobFlags
	var set []string
	cmd := &cobra.Command{
		Use:   "run JOB.yaml",
		Short: "Run a job file",
		Long: `run runs a job file until its input ends.

It can be interrupted: the first interrupt takes a last checkpoint and stops, the second stops at once. The same command
then goes on where it left off; a job that had finished starts anew. --from latest goes on too, and does nothing when the
job had finished; --from none starts at the beginning whatever was done before.

--local starts a local BigQuery in the process, points the job at it and leaves the data in a folder.`,
		Example: `  millrace run examples/github/job.yaml --local
  millrace run job.yaml --set checkpoint.every=1m --set source.files.paths='[today/*.gz]'
  millrace run job.yaml --from none --parallelism 8 --http :9090`,
		Args: exactly("a job file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			parsed, err := job.Load(args[0], set)
			if err != nil {
				return usage(err)
			}
			return a.runParsed(cmd.Context(), parsed, &flags, typedAgain(cmd, args))
		},
	}
	flags.add(cmd)
	cmd.Flags().StringArrayVar(&set, "set", nil, "`key=value` in place of what the file says, with a dotted key; may be repeated")
	return cmd
}

// runParsed runs a job and tells what came of it. again is the command that goes on with it.
func (a *app) runParsed(ctx context.Context, parsed *job.Parsed, f *jobFlags, again string) error {
	return a.runPrepared(ctx, parsed, parsed.Prepare, f, again)
}

// runPrepared does the same with a job that is made ready in another way.
func (a *app) runPrepared(ctx context.Context, parsed *job.Parsed, prepare func(context.Context, job.Surroundings) (*job.Pipeline, error), f *jobFlags, again string) (err error) {
	if parsed.Guessed {
		a.say("%s: the format is %s, as names of files tell; name it to have another\n", parsed.Job, parsed.Source.Files.Format)
	}
	from, err := engine.ParseFrom(f.from)
	if err != nil {
		return usagef("--from: %w", err)
	}
	if f.parallelism < 0 || f.parallelism > engine.MaxLanes {
		return usagef("--parallelism %d: expected 1 to %d", f.parallelism, engine.MaxLanes)
	}
	if f.store != "" {
		if err := parsed.CheckStore(f.store); err != nil {
			return usagef("--checkpoint-dir: %w", err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	handle := new(engine.Handle)
	signals := a.onSignals(handle, cancel)
	defer signals.stop()

	s := job.Surroundings{Stdin: a.stdin}
	if f.local.on() {
		local, err := a.startLocal(ctx, f.local)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, local.Close()) }()
		s.Connection, s.CreateDatasets = local.connection(), true
		if err := local.makeBucket(parsed.File); err != nil {
			return err
		}
	}
	watch, err := a.watch(ctx, &f.http, parsed.Job, handle)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, watch.close()) }()

	bar := newProgress(a.console, a.quiet)
	if a.console.tty && !a.quiet {
		a.console.setStatus(parsed.Job + ": looking through the input")
	}
	defer bar.done()
	pipeline, err := prepare(ctx, s)
	if err != nil {
		return err
	}
	watch.show(pipeline)
	signals.running.Store(true)
	stopProgress := bar.follow(handle)
	result, err := pipeline.Run(ctx, job.RunOptions{
		Parallelism: f.parallelism, Store: f.store, From: from, Handle: handle, Meter: watch.meter(), Log: a.log(),
	})
	stopProgress()
	return a.outcome(pipeline, result, err, f, again)
}

// jobSignals are the interrupts of a job.
type jobSignals struct {
	received chan os.Signal
	done     chan struct{}
	running  atomic.Bool // there is something that a checkpoint could save
}

// onSignals stops a running job gracefully at the first interrupt and at once at the second. Before it runs, the first one
// is enough.
func (a *app) onSignals(handle *engine.Handle, cancel context.CancelFunc) *jobSignals {
	s := &jobSignals{received: make(chan os.Signal, 2), done: make(chan struct{})}
	signal.Notify(s.received, os.Interrupt, syscall.SIGTERM)
	go func() { // ends with stop
		for stopping := false; ; stopping = true {
			select {
			case <-s.received:
			case <-s.done:
				return
			}
			if stopping || !s.running.Load() {
				cancel()
				continue
			}
			a.say("millrace: stopping after a last checkpoint; interrupt again to stop at once\n")
			handle.Stop()
		}
	}()
	return s
}

func (s *jobSignals) stop() {
	signal.Stop(s.received)
	close(s.done)
}

// outcome tells what came of a run, and turns it into the command's error.
func (a *app) outcome(p *job.Pipeline, r engine.Result, err error, f *jobFlags, again string) error {
	if invalid := (*job.InvalidError)(nil); errors.As(err, &invalid) {
		return err
	}
	switch {
	case r.Outcome == engine.NothingToDo:
		a.say("%s: nothing to do: the job has finished, at checkpoint %d; run it without --from latest to start anew\n", r.Job, r.Checkpoint)
		return nil
	case r.StartedAnew && p.Letters == nil:
		a.say("%s: the last run had finished: started anew\n", r.Job)
	case r.ResumedFrom > 0:
		a.say("%s: went on from checkpoint %d\n", r.Job, r.ResumedFrom)
	}
	if err != nil {
		a.say("%s: failed after %s records; %s\n", r.Job, count(r.Tally.Read), goOn(p, r, "once the cause is gone: "+again))
		return err
	}
	if a.quiet {
		return a.stopped(p, r, again)
	}
	if _, err := fmt.Fprint(a.stdout, summary(p, r, f.local)); err != nil {
		return err
	}
	return a.stopped(p, r, again)
}

// stopped is how a run that was interrupted ends: not done, so not with success.
func (a *app) stopped(p *job.Pipeline, r engine.Result, again string) error {
	if r.Outcome != engine.Stopped {
		return nil
	}
	a.console.printf("%s: stopped before the end of its input; %s\n", r.Job, goOn(p, r, "with: "+again))
	return errReported
}

// goOn says how to go on with a run that came to no good end.
func goOn(p *job.Pipeline, r engine.Result, again string) string {
	switch {
	case p.ReadsStdin():
		return "what was read of standard input cannot be read again: give it the whole input anew"
	case r.Checkpoint == 0:
		return "to start again " + again
	}
	return fmt.Sprintf("to go on from checkpoint %d %s", r.Checkpoint, again)
}
