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
	if err := w.way.heed(ctx); err != nil {
		return err
	}
	if err := w.sendPending(ctx); err != nil {
		return err
	}
	if err := w.way.drain(ctx); err != nil {
		return err
	}
	if err := w.Lane.Flush(ctx); err != nil {
		return err
	}
	w.buffers.trim()
	if !final {
		w.evict(ctx)
	}
	return nil
}

// sendPending sends every pending batch.
func (w *Writer) sendPending(ctx context.Context) error {
	if err := w.way.prepareToSend(ctx); err != nil {
		return err
	}
	for _, t := range w.order {
		if err := w.sendPendingOf(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// relieve sends pending batches of targets by turns until no more than most bytes are pending. Each target thus has about the same
// time to fill its batch, and the connections have something to send while the lane goes on.
func (w *Writer) relieve(ctx context.Context, most int) error {
	if err := w.way.prepareToSend(ctx); err != nil {
		return err
	}
	for range w.order {
		if w.pending <= most {
			break
		}
		t := w.order[w.turn%len(w.order)]
		w.turn++
		if err := w.sendPendingOf(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// sendPendingOf sends what is pending of one target.
func (w *Writer) sendPendingOf(ctx context.Context, t *Target) error {
	if err := w.endRun(ctx, t); err != nil {
		return err
	}
	b := t.pending
	if b == nil || b.count == 0 {
		return nil
	}
	t.pending = nil
	t.sized(b)
	return w.way.send(ctx, t, b)
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
		if !t.idle(now, w.cfg.Options.IdleTimeout) || !w.way.evictable(t) {
			kept = append(kept, t)
			continue
		}
		delete(w.targets, t.Dst)
		if w.way.forget(t) {
			w.cfg.Log.InfoContext(ctx, "idle destination closed", "destination", t.Name)
		}
	}
	clear(w.order[len(kept):])
	w.order = kept
}
