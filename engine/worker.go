package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/millrace-dev/millrace/stream"
)

// worker is one lane at work: it reads rows, passes their records through the Func to the writer, and takes orders
// between two rows. All of it happens on one goroutine.
type worker[In, Out any] struct {
	*lane
	reader   stream.Reader[In]
	writer   stream.Writer[Out]
	pipeline pipeline[In, Out]
	tell     func(context.Context, func(*attempt) error)
	counts   laneCounts
	finished stream.Counter // splits
	log      *slog.Logger

	batch    stream.Batch[In]
	split    stream.Split // the open one, at the position of the next row not consumed
	open     bool
	asked    bool // for a split, and not answered yet
	ended    bool // no split will come
	retired  bool // after a final barrier
	bytes    int64
	timer    *time.Timer
	tickTime time.Duration

	closedWriter bool
}

var errLeave = errors.New("leave")

// run works until it is told to leave, fails, or ctx ends. It closes the reader and the writer.
func (w *worker[In, Out]) run(ctx context.Context) (err error) {
	defer func() { err = w.end(ctx, err) }()
	defer w.hangUp()
	if t, ok := w.writer.(stream.Ticking); ok {
		if w.tickTime, err = ask(t.Every); err != nil {
			return err
		}
		w.armTimer()
	}
	var fetch context.Context
	for {
		fetch = w.listen(ctx, fetch)
		if err := w.obey(ctx); err != nil {
			return err
		}
		if !w.open {
			if err := w.await(ctx); err != nil {
				return err
			}
			continue
		}
		if err := w.fetch(ctx, fetch); err != nil {
			return err
		}
	}
}

func ask[T any](f func() T) (v T, err error) {
	defer caught(&err)
	return f(), nil
}

// end closes what is open and says where the error happened.
func (w *worker[In, Out]) end(ctx context.Context, err error) error {
	if w.timer != nil {
		w.timer.Stop()
	}
	if errors.Is(err, errLeave) {
		err = nil
	}
	if closing := w.close(); closing != nil && (err == nil || ctx.Err() != nil) {
		// Either everything has been flushed and stored, or all is given up already.
		w.log.WarnContext(ctx, "closing failed", "lane", w.index, "error", closing)
	} else if closing != nil {
		err = errors.Join(err, closing)
	}
	w.show(func(l *laneLive) { l.doing = LaneGone })
	if err != nil {
		return fmt.Errorf("lane %d: %w", w.index, err)
	}
	return nil
}

// close closes the writer, once, and the reader. It may be called instead of run.
func (w *worker[In, Out]) close() error {
	var writing error
	if !w.closedWriter {
		w.closedWriter = true
		writing = w.closeWriter()
	}
	return errors.Join(writing, guarded(w.reader.Close))
}

func (w *worker[In, Out]) closeWriter() error {
	return errors.Join(guarded(w.writer.Close), guarded(w.pipeline.close))
}

// await waits for an order, first asking for a split.
func (w *worker[In, Out]) await(ctx context.Context) error {
	if !w.asked && !w.ended && !w.retired {
		w.asked = true
		w.show(func(l *laneLive) { l.doing, l.split, l.position = LaneWaiting, "", 0 })
		w.tell(ctx, func(a *attempt) error { return a.askedBy(w.index) })
	}
	select {
	case o := <-w.inbox:
		return w.do(ctx, o)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// obey does what is in the inbox. After a final barrier it waits there for the order to leave.
func (w *worker[In, Out]) obey(ctx context.Context) error {
	w.attention.Store(false)
	for {
		select {
		case o := <-w.inbox:
			if err := w.do(ctx, o); err != nil {
				return err
			}
		default:
			if !w.retired {
				return nil
			}
			if err := w.await(ctx); err != nil {
				return err
			}
		}
	}
}

func (w *worker[In, Out]) do(ctx context.Context, o order) error {
	switch o.what {
	case assign:
		return w.openSplit(ctx, o.split)
	case endInput:
		w.asked, w.ended = false, true
		w.show(func(l *laneLive) { l.doing = LaneIdle })
	case barrier:
		return w.barrier(ctx, o.checkpoint, o.final)
	case acknowledge:
		return w.acknowledge(ctx, o.checkpoint)
	case tick:
		return w.tick(ctx)
	case leave:
		return errLeave
	}
	return nil
}

func (w *worker[In, Out]) openSplit(ctx context.Context, s stream.Split) error {
	err := guarded(func() error { return w.reader.Open(ctx, s) })
	if err != nil {
		return fmt.Errorf("open split %s at position %d: %w", s.ID, s.Position, err)
	}
	w.asked, w.open, w.split, w.pipeline.split = false, true, s, s.ID
	w.show(func(l *laneLive) { l.doing, l.split, l.position = LaneReading, s.ID, s.Position })
	return nil
}

// fetch reads a batch and consumes it.
func (w *worker[In, Out]) fetch(ctx, fetch context.Context) error {
	err := w.fetchRows(fetch)
	switch {
	case err == nil:
		w.bytes += w.batch.Bytes
		return w.consume(ctx)
	case err == io.EOF:
		w.open = false
		w.finished.Add(1)
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case fetch.Err() != nil && errors.Is(err, context.Canceled):
		return nil // an order came
	}
	return located(fmt.Errorf("read split %s: %w", w.split.ID, err), stream.Position{Split: w.split.ID, Row: w.split.Position})
}

// fetchRows calls Fetch and holds it to the contract: rows that came with an end or an error would be lost.
func (w *worker[In, Out]) fetchRows(ctx context.Context) (err error) {
	defer caught(&err)
	err = w.reader.Fetch(ctx, &w.batch)
	switch rows := w.batch.Len(); {
	case err == nil && rows == 0:
		return brokenContract("the reader answered a fetch with no row and no error")
	case err == io.EOF && rows > 0:
		return brokenContract("the reader answered a fetch with io.EOF and %d rows", rows)
	}
	return err
}

// consume takes the fetched rows one by one, or in runs where the writer takes them so, and orders in between.
func (w *worker[In, Out]) consume(ctx context.Context) (err error) {
	defer w.pipeline.rescue(&err)
	for i := 0; i < w.batch.Len(); {
		if w.attention.Load() {
			if err := w.obey(ctx); err != nil {
				return err
			}
		}
		n, err := w.pipeline.take(ctx, &w.batch, i)
		if err != nil {
			return err
		}
		i += n
		_, _, w.split.Position = w.batch.At(i - 1)
	}
	w.showTally()
	return nil
}

func (w *worker[In, Out]) showTally() {
	t := w.pipeline.soFar()
	w.counts.update(t, w.bytes)
	w.show(func(l *laneLive) { l.position, l.tally, l.inputBytes = w.split.Position, t, w.bytes })
}

// barrier takes the lane's part of a checkpoint.
func (w *worker[In, Out]) barrier(ctx context.Context, checkpoint int64, final bool) error {
	w.show(func(l *laneLive) { l.doing = LaneFlushing })
	r, err := w.takeReport(ctx, checkpoint, final)
	if err != nil {
		return fmt.Errorf("checkpoint %d: %w", checkpoint, err)
	}
	if final {
		w.retired, w.closedWriter = true, true
		if err := w.closeWriter(); err != nil {
			w.log.WarnContext(ctx, "closing the writer failed after everything was flushed", "lane", w.index, "error", err)
		}
	}
	w.showTally()
	w.show(func(l *laneLive) { l.doing = w.doingNow() })
	w.tell(ctx, func(a *attempt) error { return a.reportedBy(r) })
	return nil
}

func (w *worker[In, Out]) doingNow() Doing {
	switch {
	case w.ended || w.retired:
		return LaneIdle
	case w.open:
		return LaneReading
	}
	return LaneWaiting
}

func (w *worker[In, Out]) takeReport(ctx context.Context, checkpoint int64, final bool) (r *report, err error) {
	defer caught(&err)
	r = &report{lane: w.index, inputBytes: w.bytes}
	consumed := int64(0)
	if w.open {
		r.split = new(w.split)
		consumed = w.split.Position
	}
	if a, ok := w.reader.(stream.Acknowledger); ok {
		a.Barrier(checkpoint, consumed)
	}
	if err := w.pipeline.flush(ctx, final); err != nil {
		return nil, fmt.Errorf("flush: %w", err)
	}
	if r.tally, err = w.pipeline.settled(); err != nil {
		return nil, err
	}
	if r.committables, err = w.writer.Prepare(ctx, checkpoint); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	if r.states, err = w.writer.Snapshot(ctx, checkpoint); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return r, nil
}

func (w *worker[In, Out]) acknowledge(ctx context.Context, checkpoint int64) error {
	a, ok := w.reader.(stream.Acknowledger)
	if !ok {
		return nil
	}
	err := guarded(func() error { return a.Acknowledge(ctx, checkpoint) })
	if err != nil && w.retired {
		// The job is done and stored; the source delivers again what it did not hear of.
		w.log.WarnContext(ctx, "the last acknowledgement failed", "lane", w.index, "checkpoint", checkpoint, "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("acknowledge checkpoint %d: %w", checkpoint, err)
	}
	return nil
}

// tick calls the writer's Tick, unless the writer is closed, and sets the timer for the next.
func (w *worker[In, Out]) tick(ctx context.Context) error {
	t, ok := w.writer.(stream.Ticking)
	if !ok || w.closedWriter {
		return nil
	}
	if err := guarded(func() error { return t.Tick(ctx) }); err != nil {
		return fmt.Errorf("tick: %w", err)
	}
	w.armTimer()
	return nil
}

func (w *worker[In, Out]) armTimer() {
	if w.tickTime > 0 {
		w.timer = time.AfterFunc(w.tickTime, func() { w.post(order{what: tick}) })
	}
}
