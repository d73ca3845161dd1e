package storagewrite

import (
	"context"
	"fmt"
)

// Flush returns once every row is acknowledged, or taken by the failure handler, whose own flush comes last: waiting
// for answers is what discovers refused rows.
func (w *Writer) Flush(ctx context.Context, final bool) error {
	if w.latched != nil {
		return w.latched
	}
	if err := w.heed(ctx); err != nil {
		return err
	}
	if err := w.sendPending(ctx); err != nil {
		return err
	}
	if err := w.drain(ctx); err != nil {
		return err
	}
	if err := w.flush(ctx); err != nil {
		return err
	}
	if !final {
		w.evict(ctx)
	}
	return nil
}

// sendPending sends every pending batch.
func (w *Writer) sendPending(ctx context.Context) error {
	for _, t := range w.order {
		b := t.pending
		if b == nil || b.count == 0 {
			continue
		}
		t.pending = nil
		t.sized(b)
		if err := w.send(ctx, t, b); err != nil {
			return err
		}
	}
	return nil
}

// drain waits for every append, in order of sending, and looks at each result itself.
func (w *Writer) drain(ctx context.Context) error {
	w.attention.Store(false)
	for len(w.flight.entries) > 0 {
		e := w.flight.entries[0]
		if err := wait(ctx, e.call); err != nil {
			return err
		}
		if e.call.judge() != nil {
			if err := w.repairBatch(ctx, e); err != nil {
				return err
			}
			continue
		}
		w.flight.remove(e.call)
		w.acked(e)
	}
	w.m.inFlightBatches.Set(0)
	return nil
}

// wait waits for the result of a call.
func wait(ctx context.Context, c *call) error {
	select {
	case <-c.done:
		return nil
	default:
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopped while waiting for the answer to an append: %w", context.Cause(ctx))
	}
}

// evict forgets destinations that were not written to for long. A later record opens them again.
func (w *Writer) evict(ctx context.Context) {
	now, kept := w.now(), w.order[:0]
	for _, t := range w.order {
		if !t.idle(now, w.cfg.Options.IdleTimeout) {
			kept = append(kept, t)
			continue
		}
		delete(w.targets, t.dst)
		if t.handle != nil {
			w.setHandle(t, nil)
			w.cfg.Log.InfoContext(ctx, "idle destination closed", "destination", t.name)
		}
	}
	clear(w.order[len(kept):])
	w.order = kept
}

// setHandle keeps count of open destinations.
func (w *Writer) setHandle(t *Target, h appender) {
	if t.handle == nil && h != nil {
		w.open++
	}
	if t.handle != nil && h == nil {
		w.open--
	}
	t.handle = h
	w.m.openDestinations.Set(int64(w.open))
}
