package storagewrite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/internal/gcp"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/stream"
)

// openTarget opens the first handle of a target, creating the table if it has to.
func (w *Writer) openTarget(ctx context.Context, t *Target) error {
	v, err := w.rebuild(ctx, t)
	if v == nil {
		return err
	}
	r := w.newRepair()
	r.unopened(v)
	return w.drive(ctx, t, r)
}

// repairBatch mends a failed append, and everything else in flight to the same destination.
func (w *Writer) repairBatch(ctx context.Context, e entry) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	v := e.call.judge()
	w.flight.remove(e.call)
	w.appendFailed(&e.target.Place, v)
	r := w.newRepair()
	r.failed(e.batch, v)
	err := w.drive(ctx, e.target, r)
	w.m.inFlightBatches.Set(int64(len(w.flight.entries)))
	return err
}

func (w *Writer) newRepair() *repair {
	return &repair{may: allowed{!w.cfg.Create.Never, w.tables.updates()}, schedule: w.cfg.Options.Recovery,
		recovery: w.cfg.Options.Recovery, schemaWait: w.cfg.SchemaWait}
}

// drive does what a repair asks for until it is done. An error leaves batches in nobody's hands, so it ends the writer.
func (w *Writer) drive(ctx context.Context, t *Target, r *repair) error {
	if r.step != stepFail && r.verdict != nil {
		w.cfg.Log.InfoContext(ctx, r.op+" failed: repairing", append(w.about(t, r.verdict), "attempt", r.attempt, "of", r.schedule.Attempts)...)
	}
	for r.step != stepDone {
		if r.step == stepFail {
			return w.latch(w.terminal(t, r))
		}
		if err := w.do(ctx, t, r); err != nil {
			return w.latch(err)
		}
	}
	return nil
}

// do does one step. The errors it returns are of the context, the failure handler, or the configuration.
func (w *Writer) do(ctx context.Context, t *Target, r *repair) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	switch r.step {
	case stepCollect:
		return w.collect(ctx, t, r)
	case stepRoute:
		left, lost, err := w.route(ctx, t, r.routing, r.verdict)
		if err == nil {
			r.routed(left, lost)
		}
		return err
	case stepCreate:
		return w.createTable(ctx, t, r)
	case stepReconcile:
		o, err := w.reconcileTable(ctx, t)
		if ctx.Err() != nil || errors.As(err, new(configuration)) {
			return err
		}
		r.reconciled(o, err)
		return nil
	case stepRebuild:
		v, err := w.rebuild(ctx, t)
		if err == nil {
			r.rebuilt(v)
		}
		return err
	case stepAppend:
		v, err := w.appendAgain(ctx, t, r.batches[0])
		if err == nil {
			r.appended(v)
		}
		return err
	case stepWait:
		return w.pause(ctx, t, r)
	}
	panic(fmt.Sprintf("storagewrite: step %d", r.step))
}

// collect waits for one more append of the target.
func (w *Writer) collect(ctx context.Context, t *Target, r *repair) error {
	e, any := w.flight.of(t)
	if !any {
		r.collected()
		return nil
	}
	if err := wait(ctx, e.call); err != nil {
		return err
	}
	w.flight.remove(e.call)
	v := e.call.judge()
	if v == nil {
		w.acked(e)
		return nil
	}
	w.appendFailed(&t.Place, v)
	r.sibling(e.batch, v)
	return nil
}

// route hands the refused rows of a batch to the failure handler and returns a batch of the others, nil when there are
// none, and how many rows it lost.
func (w *Writer) route(ctx context.Context, t *Target, b *batch, v *verdict) (*batch, int, error) {
	bad := map[int]bool{}
	for _, i := range v.refused() {
		if i >= 0 && i < b.count {
			bad[i] = true
		}
	}
	if len(bad) == 0 {
		return b, 0, nil
	}
	if b.arrow() {
		return w.routeColumns(ctx, t, b, v, bad)
	}
	err := b.each(func(i int, row []byte) error {
		if !bad[i] {
			return nil
		}
		reason := v.reason(i)
		at := b.position(i)
		return w.Reject(ctx, t, &stream.FailedRecord{Reason: reason, Err: &refusal{reason, v.err},
			Row: row, Original: b.from.original(i), At: at.Location(), Split: at.Split})
	})
	if err != nil {
		return nil, 0, err
	}
	left := b.without(bad, w.buffers)
	b.rows.free()
	return left, len(bad), nil
}

// reason is what the service says about a row that it refused.
func (v *verdict) reason(i int) string {
	return "row refused by the service: " + cmp.Or(v.rows[i], v.err.Error())
}

// refusal is what the service says about one row, and the failure of the request it came in.
type refusal struct {
	reason string
	cause  error
}

func (r *refusal) Error() string { return r.reason }
func (r *refusal) Unwrap() error { return r.cause }

func (w *Writer) createTable(ctx context.Context, t *Target, r *repair) error {
	w.cfg.Log.InfoContext(ctx, "table may not exist: creating it", w.about(t, r.verdict)...)
	created, err := w.tables.add(ctx, t.Dst)
	if ctx.Err() != nil || errors.As(err, new(configuration)) {
		return err
	}
	if err == nil {
		w.m.tablesCreated.Add(1)
	}
	if created {
		t.Page.Created()
	}
	r.created(err)
	return nil
}

// reconcileTable changes a table to take the rows that there are now, and counts that.
func (w *Writer) reconcileTable(ctx context.Context, t *Target) (tableadmin.Outcome, error) {
	o, err := w.tables.reconcile(ctx, t.Dst)
	switch {
	case err != nil:
	case o == tableadmin.Updated:
		w.m.schemaReconciliations.Add(1)
	case o == tableadmin.Created:
		w.m.tablesCreated.Add(1)
		t.Page.Created()
	}
	return o, err
}

// hopeless is an error that no repair can help, nil when err is any other.
func hopeless(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, gcp.ErrCredentials): // as it is: it says on purpose no more than it does
		return gcp.ErrCredentials
	case errors.Is(err, gcp.ErrNoCredentials):
		return gcp.ErrNoCredentials
	}
	return nil
}

// rebuild gives the target a new handle. The error is one that no repair can help.
func (w *Writer) rebuild(ctx context.Context, t *Target) (*verdict, error) {
	h, err := w.remote.open(ctx, t.Dst)
	if err == nil {
		toDefault{w}.setHandle(t, h)
		return nil, nil
	}
	if err := hopeless(ctx, err); err != nil {
		return nil, w.latch(err)
	}
	return classifyError(err), nil
}

// appendAgain appends a batch and waits for the answer.
func (w *Writer) appendAgain(ctx context.Context, t *Target, b *batch) (*verdict, error) {
	c := w.newCall(b)
	c.news = &t.news
	var v *verdict
	if err := t.handle.append(ctx, c); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		v = classifyError(err)
	} else {
		w.appendedAgain(&t.Place)
		if err := wait(ctx, c); err != nil {
			return nil, err
		}
		v = c.judge()
	}
	if v == nil {
		w.acked(entry{t, b, c, t.handle})
		return nil, nil
	}
	w.appendFailed(&t.Place, v)
	return v, nil
}

// pause waits between two rounds.
func (w *Writer) pause(ctx context.Context, t *Target, r *repair) error {
	delay := w.cfg.Pacer.Delay(r.schedule, r.attempt)
	w.cfg.Log.InfoContext(ctx, r.op+" failed: trying again", append(w.about(t, r.verdict), "attempt", r.attempt,
		"of", r.schedule.Attempts, "backoff", delay)...)
	if r.verdict.kind == KindSchemaMismatch && !r.told {
		r.told = true
		w.standing(ctx, t, r.schedule)
	}
	if err := w.cfg.Pacer.Pause(ctx, delay, "append to "+t.Name+" again"); err != nil {
		return err
	}
	r.waited()
	return nil
}

// standing tells that the lane stands still for new columns: whoever watches would look for what is broken.
func (w *Writer) standing(ctx context.Context, t *Target, s retry.Schedule) {
	w.cfg.Log.WarnContext(ctx, "the write service does not know the table's new columns yet: its rows wait, and the lane with them",
		"destination", t.Name, "every", s.Initial, "at most", s.Initial*time.Duration(s.Attempts-1))
}

// terminal is the error of a repair that failed.
func (w *Writer) terminal(t *Target, r *repair) error {
	v := r.verdict
	e := &AppendError{Op: r.op, Destination: t.Dst, Stream: streamName(t.Dst), Offset: noOffset, Attempts: r.attempt,
		Code: v.codeName(), Verdict: v.kind, tableCreated: r.tableCreated, reconciled: r.schemaUpdated, err: r.err}
	switch {
	case v.kind == KindSchemaMismatch:
		e.err = fmt.Errorf("%w: %w", ErrSchemaMismatch, r.err)
		e.Hint = mismatchHint(r.err, r.may.update)
		e.passing = r.schemaUpdated || r.unchanged != nil && !lasting(r.unchanged)
	case w.cfg.Create.Never && v.code == codes.NotFound && v.missing():
		e.err = fmt.Errorf("%w: %w", ErrTableMissing, r.err)
		e.Hint = missingHint
	case v.code == codes.PermissionDenied && v.missing():
		e.Hint = deniedHint
	}
	return e
}
