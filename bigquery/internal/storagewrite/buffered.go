package storagewrite

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"

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
	name  string      // "" before the first append
	next  int64       // the number that the next row gets
	saved streamPoint // as of the last snapshot
	probe bool        // restored, and nothing appended since: the stream may end elsewhere by now

	handle ownAppender // nil until it is needed
	flight []entry     // unanswered appends, in order
}

// streamPoint is how far a stream is written.
type streamPoint struct {
	name string
	next int64
}

func (s *ownStream) at() streamPoint { return streamPoint{s.name, s.next} }

// ready asks nothing of the service: a record that is skipped or wrong costs no stream.
func (w toBuffered) ready(context.Context, *Target) error { return nil }

func (w toBuffered) send(ctx context.Context, t *Target, b *batch) error {
	w.pending -= b.size()
	if t.own.probe {
		return w.probe(ctx, t, b)
	}
	if err := w.ensure(ctx, t); err != nil {
		return w.latch(err)
	}
	c := w.newCall(b)
	c.offset = t.own.next
	if err := t.own.handle.append(ctx, c); err != nil {
		return w.latch(w.stopped(ctx, fmt.Errorf("append to %s: %w", t.name, err)))
	}
	w.handed(t, b)
	t.own.flight = append(t.own.flight, entry{t, b, c, t.own.handle})
	t.own.next += int64(b.count)
	w.out(1)
	return w.settle(ctx, t, false)
}

// handed counts the first time that a connection took a batch.
func (w toBuffered) handed(t *Target, b *batch) {
	w.m.recordsSent.Add(int64(b.count))
	w.m.bytesSent.Add(int64(b.bytes))
	if t.sent != nil {
		t.sent.Add(int64(b.count))
	}
}

// ensure makes the target's stream, if there is none, and opens it.
func (w toBuffered) ensure(ctx context.Context, t *Target) error {
	if t.own.name == "" {
		if err := w.createStream(ctx, t); err != nil {
			return err
		}
	}
	if t.own.handle != nil {
		return nil
	}
	v, err := w.openStream(ctx, t, false)
	if v != nil {
		return w.streamError(t, opOpen, t.own.next, 0, v, v.err)
	}
	return err
}

// openStream opens the target's stream. The error is one that no repair can help.
func (w toBuffered) openStream(ctx context.Context, t *Target, restored bool) (*verdict, error) {
	h, err := w.remote.openStream(ctx, t.dst, t.own.name, restored)
	if err == nil {
		w.setOwn(t, h)
		return nil, nil
	}
	if err := w.hopeless(ctx, err); err != nil {
		return nil, err
	}
	return classifyError(err), nil
}

// setOwn replaces the target's connection. The old one is closed first: a stream may have one only.
func (w toBuffered) setOwn(t *Target, h ownAppender) {
	if t.own.handle != nil {
		t.own.handle.close()
		w.open--
	}
	if h != nil {
		w.open++
	}
	t.own.handle = h
	w.m.openDestinations.Set(int64(w.open))
}

// createStream makes a new stream for the target, and the table if that is what is missing.
func (w toBuffered) createStream(ctx context.Context, t *Target) error {
	c := &creation{createIfNeeded: !w.cfg.Create.Never, schedule: w.cfg.Options.Recovery}
	for c.step != createDoneStep {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch c.step {
		case createStreamStep:
			name, err := w.remote.createStream(ctx, t.dst)
			if err == nil {
				t.own.name, t.own.next = name, 0
				w.cfg.Log.InfoContext(ctx, "stream created", "destination", t.name, "stream", name)
				c.streamMade(nil)
				continue
			}
			if err := w.hopeless(ctx, err); err != nil {
				return err
			}
			c.streamMade(classifyError(err))
		case createTableStep:
			w.cfg.Log.InfoContext(ctx, "table may not exist: creating it", w.about(t, c.verdict)...)
			created, err := w.tables.add(ctx, t.dst)
			if ctx.Err() != nil || errors.As(err, new(configuration)) {
				return err
			}
			if created {
				t.page.created.Store(true)
			}
			c.tableMade(err)
		case createWaitStep:
			delay := w.cfg.Pacer.Delay(c.schedule, c.attempt)
			w.cfg.Log.InfoContext(ctx, opCreateStream+" failed: trying again", append(w.about(t, c.verdict), "attempt", c.attempt,
				"of", c.schedule.Attempts, "backoff", delay)...)
			if err := w.cfg.Pacer.Pause(ctx, delay, "create a write stream of "+t.name); err != nil {
				return err
			}
			c.waited()
		case createFailStep:
			e := w.streamError(t, opCreateStream, noOffset, c.attempt, c.verdict, c.err)
			e.tableCreated = c.tableCreated
			return e
		}
	}
	return nil
}

// stopped is err, or why ctx ended when it has.
func (w *Writer) stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
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

// judgeAt is the verdict on an append that was to go to an offset. That the offset is taken is a success when the rows were
// written before, by whatever layer: then it is these rows that took it.
func judgeAt(c *call) *verdict {
	v := c.judge()
	switch {
	case v == nil:
		if at := c.answer.GetAppendResult().GetOffset(); at != nil && at.GetValue() != c.offset {
			return &verdict{kind: KindInconsistent, err: fmt.Errorf("%w: the append was to go to offset %d, the answer names %d",
				ErrInconsistentStream, c.offset, at.GetValue())}
		}
	case v.exists() && c.sends > 1:
		return nil
	}
	return v
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
	o, err := w.tables.reconcile(ctx, t.dst)
	switch {
	case err != nil:
		return err
	case o == tableadmin.Updated:
		w.m.schemaReconciliations.Add(1)
	case o == tableadmin.Created:
		t.page.created.Store(true)
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
	return len(t.own.flight) == 0 && (t.own.name == "" || t.own.at() == t.own.saved)
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
		if t.own.next > 0 && t.own.at() != t.own.saved {
			cs = append(cs, promise{t.own.name, t.own.next - 1, w.cfg.Lane}.committable())
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
		t.own.saved = t.own.at()
		states = append(states, streamState{t.dst, t.own.name, t.own.next, checkpoint}.state())
	}
	return states
}

// streamError is the failure of something on a target's stream.
func (w *Writer) streamError(t *Target, op string, offset int64, attempts int, v *verdict, cause error) *AppendError {
	e := &AppendError{Op: op, Destination: t.dst, Stream: t.own.name, Offset: offset, Attempts: attempts,
		Code: v.codeName(), Verdict: v.kind, err: cause}
	switch {
	case v.kind == KindSchemaMismatch:
		e.err = fmt.Errorf("%w: %w", ErrSchemaMismatch, cause)
		e.Hint = mismatchHint(cause, w.tables.updates())
	case w.cfg.Create.Never && v.code == codes.NotFound && v.missing():
		e.err = fmt.Errorf("%w: %w", ErrTableMissing, cause)
		e.Hint = missingHint
	case v.code == codes.PermissionDenied && v.missing():
		e.Hint = deniedHint
	case v.kind == KindStaleStream:
		e.Hint = "the stream was ended by somebody else, or is older than a week: the next attempt goes on with a new one"
	}
	return e
}

// recoverHead mends the oldest append of a target's stream, which has failed.
func (w toBuffered) recoverHead(ctx context.Context, t *Target, e entry, v *verdict) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.appendFailed(&t.place, v)
	r := w.newRecovery()
	r.renewed = e.via != t.own.handle
	r.failed(e.batch, e.call.offset, v, e.call.sends > 0)
	return w.carryOut(ctx, t, r, true)
}

// probe appends the first batch after a restore, and goes on with a new stream if the old one does not end where the
// state says.
func (w toBuffered) probe(ctx context.Context, t *Target, b *batch) error {
	r := w.newRecovery()
	r.restored(b, t.own.next)
	return w.carryOut(ctx, t, r, false)
}

func (w toBuffered) newRecovery() *recovery {
	return &recovery{updates: w.tables.updates(), schedule: w.cfg.Options.Recovery, schemaWait: w.cfg.SchemaWait}
}

// carryOut does what a recovery asks for until it is done. handed says whether a connection ever took the first batch.
func (w toBuffered) carryOut(ctx context.Context, t *Target, r *recovery, handed bool) error {
	if r.verdict != nil && r.step != recoverFail {
		w.cfg.Log.InfoContext(ctx, opAppend+" failed: repairing", append(w.about(t, r.verdict), "offset", r.offset,
			"attempt", r.attempt, "of", r.schedule.Attempts)...)
	}
	probing := t.own.name
	for r.step != recoverDone {
		if ctx.Err() != nil {
			return w.latch(context.Cause(ctx))
		}
		if r.step == recoverFail {
			e := w.streamError(t, opAppend, r.offset, r.attempt, r.verdict, r.err)
			e.reconciled = r.reconcile
			e.passing = r.reconcile && !lasting(r.err)
			return w.latch(e)
		}
		if err := w.step(ctx, t, r, &handed); err != nil {
			return w.latch(err)
		}
	}
	// With appends behind the first one still out, the stream is written further than r knows.
	if len(t.own.flight) == 0 {
		t.own.next = r.offset
	}
	if t.own.probe && t.own.name == probing {
		w.cfg.Log.InfoContext(ctx, "stream goes on from where it was left", "destination", t.name, "stream", probing, "offset", t.own.next)
	}
	t.own.probe = false
	return nil
}

// step does one step. The errors it returns are of the context, the failure handler, or the configuration.
func (w toBuffered) step(ctx context.Context, t *Target, r *recovery, handed *bool) error {
	switch r.step {
	case recoverSend:
		return w.sendAgain(ctx, t, r, handed)
	case recoverCollect:
		return w.collectBehind(ctx, t, r)
	case recoverRoute:
		left, lost, err := w.route(ctx, t, r.batches[0], r.verdict)
		if err == nil {
			r.routed(left, lost)
		}
		return err
	case recoverReconcile:
		err := w.reconcile(ctx, t)
		if ctx.Err() != nil || errors.As(err, new(configuration)) {
			return err
		}
		r.reconciled(err)
		return nil
	case recoverReopen:
		w.setOwn(t, nil)
		v, err := w.openStream(ctx, t, r.mode == modeProbe)
		if err == nil {
			r.reopened(v)
		}
		return err
	case recoverAbandon:
		w.cfg.Log.InfoContext(ctx, "stream does not go on from where it was left: a new one takes over",
			append(w.about(t, r.verdict), "offset", r.offset)...)
		w.setOwn(t, nil)
		t.own.name, t.own.next = "", 0
		if err := w.ensure(ctx, t); err != nil {
			return err
		}
		r.abandoned()
		return nil
	case recoverWait:
		delay := w.cfg.Pacer.Delay(r.schedule, r.attempt)
		w.cfg.Log.InfoContext(ctx, opAppend+" failed: trying again", append(w.about(t, r.verdict), "offset", r.offset,
			"attempt", r.attempt, "of", r.schedule.Attempts, "backoff", delay)...)
		if r.verdict.kind == KindSchemaMismatch && r.attempt == 1 {
			w.standing(ctx, t, r.schedule)
		}
		if err := w.cfg.Pacer.Pause(ctx, delay, "append to "+t.name+" again"); err != nil {
			return err
		}
		r.waited()
		return nil
	}
	panic(fmt.Sprintf("storagewrite: recovery step %d", r.step))
}

// sendAgain appends the first batch of a recovery and waits for the answer.
func (w toBuffered) sendAgain(ctx context.Context, t *Target, r *recovery, handed *bool) error {
	b := r.batches[0]
	c := w.newCall(b)
	c.offset = r.offset
	if err := t.own.handle.append(ctx, c); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.sent(classifyError(err), false)
		return nil
	}
	if *handed {
		w.appendedAgain(&t.place)
	} else {
		*handed = true
		w.handed(t, b)
	}
	if err := wait(ctx, c); err != nil {
		return err
	}
	v := judgeAt(c)
	if v != nil && r.echo(v) {
		v = nil
	}
	r.sent(v, c.sends > 0)
	if v == nil {
		w.acked(entry{target: t, batch: b, call: c}) // the batch may be filled again from here on
	} else {
		w.appendFailed(&t.place, v)
	}
	return nil
}

// collectBehind waits for one more append behind the one whose rows were refused. What it met is the refusal's doing, so it
// is not counted.
func (w toBuffered) collectBehind(ctx context.Context, t *Target, r *recovery) error {
	if len(t.own.flight) == 0 {
		r.collected()
		return nil
	}
	e := t.own.flight[0]
	if err := wait(ctx, e.call); err != nil {
		return err
	}
	w.pop(t)
	r.behind(e.batch, e.call.judge())
	return nil
}
