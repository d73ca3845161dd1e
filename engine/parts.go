package engine

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"

	"github.com/millrace-dev/millrace/stream"
)

// parts makes the parts of an attempt. It is a Job without its types. Its methods turn panics into errors, and are
// called from one goroutine.
type parts interface {
	bounded() (bool, error)
	newEnumerator(context.Context, stream.EnumeratorContext) (stream.Enumerator, error)
	// fits asks a sink that is particular about its jobs.
	fits(stream.Shape, *slog.Logger) error
	// newCommitters answers nil for a sink with one phase.
	newCommitters(context.Context, stream.CommitterContext, int) (*committers, error)
	newLane(context.Context, laneContext) (laneWorker, error)
	// commitScope is NoCommit for a sink with one phase.
	commitScope() stream.CommitScope
}

// laneWorker is a worker without its types.
type laneWorker interface {
	// run works until the end and closes everything.
	run(context.Context) error
	// close is called instead of run.
	close() error
	// failedAtRecord reports whether run ended because of the record it was processing.
	failedAtRecord() bool
}

// laneContext is what a lane is made with.
type laneContext struct {
	job        string
	lanes      int
	lane       *lane
	run        string
	attempt    int
	streaming  bool
	checkpoint int64
	states     []stream.State
	tell       func(context.Context, func(*attempt) error)
	meter      stream.Meter
	log        *slog.Logger
	ins        *instruments
}

type jobParts[In, Out any] struct{ job Job[In, Out] }

func (p jobParts[In, Out]) bounded() (bool, error) { return ask(p.job.Source.Bounded) }

func (p jobParts[In, Out]) fits(s stream.Shape, log *slog.Logger) error {
	particular, ok := any(p.job.Sink).(stream.Particular)
	if !ok {
		return nil
	}
	return guarded(func() error { return particular.Fits(s, log) })
}

func (p jobParts[In, Out]) commitScope() stream.CommitScope {
	if two := p.job.twoPhase(); two != nil {
		return two.CommitScope()
	}
	return stream.NoCommit
}

func (p jobParts[In, Out]) newEnumerator(ctx context.Context, ec stream.EnumeratorContext) (e stream.Enumerator, err error) {
	defer caught(&err)
	return p.job.Source.NewEnumerator(ctx, ec)
}

func (p jobParts[In, Out]) newCommitters(ctx context.Context, cc stream.CommitterContext, lanes int) (c *committers, err error) {
	defer caught(&err)
	two := p.job.twoPhase()
	if two == nil {
		return nil, nil
	}
	return newCommitters(ctx, two, cc, lanes)
}

func (p jobParts[In, Out]) newLane(ctx context.Context, lc laneContext) (_ laneWorker, err error) {
	defer caught(&err)
	w := &worker[In, Out]{
		lane:     lc.lane,
		tell:     lc.tell,
		log:      lc.log,
		counts:   laneCounts{ins: lc.ins},
		finished: lc.ins.splitsFinished,
	}
	w.reader, err = p.job.Source.NewReader(ctx, stream.ReaderContext{
		Job: lc.job, Lane: lc.lane.index, Lanes: lc.lanes, Meter: lc.meter, Log: lc.log})
	if err != nil {
		return nil, fmt.Errorf("make reader: %w", err)
	}
	defer func() {
		if err != nil {
			w.release()
		}
	}()
	w.writer, err = p.job.Sink.NewWriter(ctx, stream.WriterContext{
		Job: lc.job, Lane: lc.lane.index, Lanes: lc.lanes, Run: lc.run, Attempt: lc.attempt, Streaming: lc.streaming, Checkpoint: lc.checkpoint, States: lc.states, Meter: lc.meter, Log: lc.log})
	if err != nil {
		return nil, fmt.Errorf("make writer: %w", err)
	}
	return w, w.fit(ctx, p.job, lc)
}

// fit joins the reader and the writer.
func (w *worker[In, Out]) fit(ctx context.Context, job Job[In, Out], lc laneContext) (err error) {
	p := &w.pipeline
	p.writer = w.writer
	p.tallier, _ = w.writer.(stream.Tallier)
	if p.fn = job.Func; p.fn == nil {
		p.direct = any(w.writer).(stream.Writer[In])
		p.many, _ = any(w.writer).(stream.RecordsWriter[In])
		return nil
	}
	p.emit = p.write
	p.handler, err = job.failures().NewHandler(ctx, stream.HandlerContext{Job: lc.job, Lane: lc.lane.index, Meter: lc.meter, Log: lc.log})
	if err != nil {
		return fmt.Errorf("make failure handler: %w", err)
	}
	return nil
}

// release closes what had been made of a lane when making the rest failed.
func (w *worker[In, Out]) release() {
	err := guarded(w.reader.Close)
	if w.writer != nil {
		err = errors.Join(err, guarded(w.writer.Close))
	}
	if err != nil {
		w.log.Warn("closing failed", "lane", w.index, "error", err)
	}
}

func (w *worker[In, Out]) failedAtRecord() bool { return w.pipeline.failed }

// statesOf picks the writer states of a lane: all states of a destination go to the same one, whatever the number of
// lanes was when they were taken.
func statesOf(lane, lanes int, all []stream.State) (mine []stream.State) {
	for _, s := range all {
		h := fnv.New32a()
		h.Write([]byte(s.Destination))
		if int(h.Sum32()%uint32(lanes)) == lane {
			mine = append(mine, s)
		}
	}
	return mine
}
