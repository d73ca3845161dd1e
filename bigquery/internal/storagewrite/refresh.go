package storagewrite

import (
	"context"
	"errors"

	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
)

// A destination is refreshed when its rows have another schema than those before. What was sent keeps the schema that it
// was encoded under: each batch carries its own.

// refresh makes a destination ready for rows of the schema that the serializer has now: where tables may be changed, the
// table is reconciled before the first such row is sent, and then the handle is opened anew.
func (w toDefault) refresh(ctx context.Context, t *Target) error {
	r, o := w.newRepair(), tableadmin.Unchanged
	if r.may.update {
		var err error
		o, err = w.reconcileTable(ctx, t)
		switch {
		case ctx.Err() != nil:
			return w.latch(context.Cause(ctx))
		case errors.As(err, new(configuration)):
			return w.latch(err)
		case err != nil:
			return w.latch(&AppendError{Op: opOpen, Destination: t.Dst, Stream: streamName(t.Dst), Offset: noOffset, Code: Unclassified,
				Verdict: KindSchemaMismatch, Hint: mismatchHint(err, true), passing: !lasting(err), err: err})
		}
	}
	r.refresh(o)
	return w.drive(ctx, t, r)
}

// heed refreshes the destinations whose tables have another schema now, as answers tell, where that changed what the
// serializer makes of records. Nothing changes for the others: their rows fit, or a mismatch will tell.
func (w toDefault) heed(ctx context.Context) error {
	for _, t := range w.order {
		if !t.news.Swap(false) || t.handle == nil || t.schema.foreign || w.cfg.Rows.Fingerprint(t.Dst) == t.schema.fingerprint {
			continue
		}
		if err := w.renew(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// renew sends what is pending under the old schema and refreshes the destination.
func (w toDefault) renew(ctx context.Context, t *Target) error {
	if b := t.pending; b != nil && b.count > 0 {
		t.pending = nil
		t.sized(b)
		if err := w.send(ctx, t, b); err != nil {
			return err
		}
	}
	if err := w.describe(t); err != nil {
		return w.latch(err)
	}
	w.cfg.Log.InfoContext(ctx, "row schema changed", "destination", t.Name)
	return w.refresh(ctx, t)
}
