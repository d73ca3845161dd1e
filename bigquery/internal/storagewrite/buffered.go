package storagewrite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/stream"
)

// toBuffered delivers to streams of type BUFFERED, one for each destination that the lane writes to: every row has a
// number in its stream, and nobody sees it before a committer has flushed the stream up to that number.
//
// Streams are never finalized: BigQuery refuses to flush one that is, which a commit after a restart has to do. One that
// nobody writes to any more ages out after a week, with the rows that were never flushed.
type toBuffered struct{ *Writer }

// ownStream is the stream of a destination that one writer appends to.
type ownStream struct {
	name  string        // "" before the first append
	next  int64         // the number that the next row gets
	saved streamPoint   // as of the last snapshot
	left  []streamPoint // streams that were left since, as far as they are to be seen
	probe bool          // restored, and nothing appended since: the stream may end elsewhere by now

	handle ownAppender // nil until it is needed
	schema *schema     // of the rows that were sent through it, which it keeps to
	flight []entry     // unanswered appends, in order, and so are their answers

	trouble atomic.Bool // one of flight has failed
}

// streamPoint is how far a stream is written.
type streamPoint struct {
	name string
	next int64
}

func (s *ownStream) at() streamPoint { return streamPoint{s.name, s.next} }

// leave makes this stream one that is written up to next for good. What comes then goes to another one.
func (s *ownStream) leave(next int64) {
	s.next = next
	if s.changed() {
		s.left = append(s.left, s.at())
	}
	s.name, s.next = "", 0
}

// changed reports whether there are rows that the last snapshot does not know.
func (s *ownStream) changed() bool { return s.next > 0 && s.at() != s.saved }

// ready asks nothing of the service: a record that is skipped or wrong costs no stream.
func (w toBuffered) ready(context.Context, *Target) error { return nil }

func (w toBuffered) send(ctx context.Context, t *Target, b *batch) error {
	w.pending -= b.size()
	if t.own.probe {
		return w.probe(ctx, t, b)
	}
	if s := t.own.schema; s != nil && !b.schema.same(s) {
		if err := w.settle(ctx, t, true); err != nil {
			return w.latch(err)
		}
		w.setOwn(t, nil)
	}
	if err := w.ensure(ctx, t); err != nil {
		return w.latch(err)
	}
	t.own.schema = b.schema
	c := w.newCall(b)
	c.offset = t.own.next
	if len(t.own.flight) == 0 {
		t.own.trouble.Store(false)
	}
	c.trouble = &t.own.trouble
	if err := t.own.handle.append(ctx, c); err != nil {
		return w.latch(w.stopped(ctx, fmt.Errorf("append to %s: %w", t.Name, err)))
	}
	w.handed(t, b)
	t.own.flight = append(t.own.flight, entry{t, b, c, t.own.handle})
	t.own.next += int64(b.count)
	w.out(1)
	return w.settle(ctx, t, false)
}

// handed counts the first time that a connection took a batch.
func (w toBuffered) handed(t *Target, b *batch) {
	w.Sent(&t.Place, b.count, b.bytes)
}

// settle takes the answers to a target's appends in order, up to the first that is not there, or waiting for all.
func (w toBuffered) settle(ctx context.Context, t *Target, all bool) error {
	for len(t.own.flight) > 0 {
		e := t.own.flight[0]
		if !all && !e.call.finished() {
			return nil
		}
		if err := wait(ctx, e.call); err != nil {
			return err
		}
		v := judgeAt(e.call)
		w.pop(t)
		if v != nil {
			if err := w.recoverHead(ctx, t, e, v); err != nil {
				return err
			}
			continue
		}
		w.acked(e)
	}
	return nil
}

// out keeps count of unanswered appends.
func (w toBuffered) out(n int) {
	w.appends += n
	w.m.inFlightAppends.Set(int64(w.appends))
}

// pop forgets the oldest unanswered append.
func (w toBuffered) pop(t *Target) {
	t.own.flight[0] = entry{}
	t.own.flight = t.own.flight[1:]
	w.out(-1)
}

// judgeAt is the verdict on an append that was to go to an offset.
func judgeAt(c *call) *verdict {
	v := c.judge()
	if v != nil {
		return v
	}
	if at := c.answer.GetAppendResult().GetOffset(); at != nil && at.GetValue() != c.offset {
		return &verdict{kind: KindInconsistent, err: fmt.Errorf("%w: the append was to go to offset %d, the answer names %d",
			ErrInconsistentStream, c.offset, at.GetValue())}
	}
	return nil
}

// mend settles what is answered.
func (w toBuffered) mend(ctx context.Context) error {
	w.attention.Store(false)
	return w.each(ctx, false)
}

// drain waits for all answers.
func (w toBuffered) drain(ctx context.Context) error {
	w.attention.Store(false)
	return w.each(ctx, true)
}

func (w toBuffered) each(ctx context.Context, all bool) error {
	for _, t := range w.order {
		if err := w.settle(ctx, t, all); err != nil {
			return err
		}
	}
	return nil
}

func (w toBuffered) await(ctx context.Context) (bool, error) {
	for _, t := range w.order {
		if len(t.own.flight) == 0 {
			continue
		}
		if err := wait(ctx, t.own.flight[0].call); err != nil {
			return false, err
		}
		return true, w.settle(ctx, t, false)
	}
	return false, nil
}

// reconcile changes the target's table to take the rows that there are now.
func (w toBuffered) reconcile(ctx context.Context, t *Target) error {
	o, err := w.tables.reconcile(ctx, t.Dst)
	switch {
	case err != nil:
		return err
	case o == tableadmin.Updated:
		w.m.schemaReconciliations.Add(1)
	case o == tableadmin.Created:
		t.Page.Created()
	}
	return nil
}

// heed does nothing: a change of the schema shows in the rows, or in a mismatch.
func (w toBuffered) heed(context.Context) error { return nil }

// refresh opens the stream anew under the schema of the rows to come, with every row before it in place: that fixes where
// they go.
func (w toBuffered) refresh(ctx context.Context, t *Target) error {
	if err := w.settle(ctx, t, true); err != nil {
		return err
	}
	if w.tables.updates() {
		err := w.reconcile(ctx, t)
		switch {
		case ctx.Err() != nil:
			return w.latch(context.Cause(ctx))
		case errors.As(err, new(configuration)):
			return w.latch(err)
		case err != nil:
			v := &verdict{kind: KindSchemaMismatch, err: err}
			e := w.streamError(t, opOpen, t.own.next, 0, v, err)
			e.passing = !lasting(err)
			return w.latch(e)
		}
	}
	w.setOwn(t, nil)
	return nil
}

// evictable: a stream that the last snapshot knows to its end can be left alone. It stays open; a later record gets a new
// one.
func (w toBuffered) evictable(t *Target) bool {
	return len(t.own.flight) == 0 && len(t.own.left) == 0 && (t.own.name == "" || t.own.at() == t.own.saved)
}

func (w toBuffered) forget(t *Target) bool {
	open := t.own.handle != nil
	w.setOwn(t, nil)
	return open
}

// close ends the connections. Rows that were appended and not promised stay where nobody sees them.
func (w toBuffered) close() {
	for _, t := range w.order {
		w.setOwn(t, nil)
	}
	w.m.inFlightAppends.Set(0)
}

// prepare promises what was appended since the last snapshot.
func (w toBuffered) prepare() []stream.Committable {
	var cs []stream.Committable
	for _, t := range w.order {
		ends := t.own.left
		if t.own.changed() {
			ends = append(slices.Clip(ends), t.own.at())
		}
		for _, end := range ends {
			cs = append(cs, promise{end.name, end.next - 1, w.cfg.Lane}.committable())
		}
	}
	return cs
}

// snapshot remembers how far each stream is written.
func (w toBuffered) snapshot(checkpoint int64) []stream.State {
	var states []stream.State
	for _, t := range w.order {
		if t.own.name == "" {
			continue
		}
		t.own.saved, t.own.left = t.own.at(), nil
		states = append(states, streamState{t.Dst, t.own.name, t.own.next, checkpoint}.state())
	}
	return states
}
