package storagewrite

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/stream"
)

// toDefault delivers to default streams: in no order, visible when acknowledged, with nothing to remember.
type toDefault struct{ *Writer }

func (w toDefault) ready(ctx context.Context, t *Target) error {
	if t.handle != nil {
		return nil
	}
	return w.openTarget(ctx, t)
}

// prepareToSend has nothing to do: targets are opened at their first row, with no call for each.
func (w toDefault) prepareToSend(context.Context) error { return nil }

// send hands a batch to the target's handle.
func (w toDefault) send(ctx context.Context, t *Target, b *batch) error {
	w.pending -= b.size()
	c := w.newCall(b)
	c.news = &t.news
	if err := t.handle.append(ctx, c); err != nil {
		// The batch is in nobody's hands now: going on would lose it.
		return w.latch(fmt.Errorf("append to %s: %w", t.Name, err))
	}
	w.Sent(&t.Place, b.count, b.bytes)
	w.flight.add(entry{t, b, c, t.handle})
	if w.flight.due() {
		w.flight.sweep(w.acked) // failures have raised the attention flag
	}
	w.m.inFlightBatches.Set(int64(len(w.flight.entries)))
	return nil
}

// mend handles the failures among the appends that are answered, in order of sending.
func (w toDefault) mend(ctx context.Context) error {
	w.attention.Store(false)
	for {
		e, failed := w.flight.sweep(w.acked)
		w.m.inFlightBatches.Set(int64(len(w.flight.entries)))
		if !failed {
			return w.heed(ctx)
		}
		if err := w.repairBatch(ctx, e); err != nil {
			return err
		}
	}
}

func (w toDefault) await(ctx context.Context) (bool, error) {
	if len(w.flight.entries) == 0 {
		return false, nil
	}
	if err := wait(ctx, w.flight.entries[0].call); err != nil {
		return false, err
	}
	return true, w.mend(ctx)
}

// drain waits for every append, in order of sending, and looks at each result itself.
func (w toDefault) drain(ctx context.Context) error {
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

func (w toDefault) evictable(*Target) bool { return true }

func (w toDefault) forget(t *Target) bool {
	open := t.handle != nil
	if open {
		w.setHandle(t, nil)
	}
	return open
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
	w.m.OpenDestinations.Set(int64(w.open))
}

// close leaves the connections to those who share them.
func (w toDefault) close() {
	w.m.inFlightBatches.Set(0)
	w.m.OpenDestinations.Set(0)
}

func (w toDefault) prepare() []stream.Committable { return nil }
func (w toDefault) snapshot(int64) []stream.State { return nil }
