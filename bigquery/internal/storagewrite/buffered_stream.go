package storagewrite

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
)

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
	h, err := w.remote.openStream(ctx, t.Dst, t.own.name, restored)
	if err == nil {
		w.setOwn(t, h)
		return nil, nil
	}
	if err := hopeless(ctx, err); err != nil {
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
	t.own.handle, t.own.schema = h, nil
	w.m.OpenDestinations.Set(int64(w.open))
}

// createsAtOnce is how many streams a lane creates at a time. The service slows down from 40 to 50 calls a second on
// (cloud.google.com/bigquery/quotas, CreateWriteStream); with 100 ms and more for each, 8 come to that.
const createsAtOnce = 8

// prepareToSend creates the streams of targets that have none. One after another they would take a flush with many new
// destinations a call's time for each.
func (w toBuffered) prepareToSend(ctx context.Context) error {
	var bare []*Target
	for _, t := range w.order {
		if t.pending != nil && t.pending.count > 0 && t.own.name == "" {
			bare = append(bare, t)
		}
	}
	if len(bare) < 2 {
		return nil // send creates it
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	sideBySide(createsAtOnce, len(bare), func(i int) {
		if err := w.createStream(ctx, bare[i]); err != nil {
			fail(err) // the first one is the cause of all others
		}
	})
	if ctx.Err() != nil {
		return w.latch(context.Cause(ctx))
	}
	return nil
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
			name, err := w.remote.createStream(ctx, t.Dst)
			if err == nil {
				t.own.name, t.own.next = name, 0
				w.cfg.Log.InfoContext(ctx, "stream created", "destination", t.Name, "stream", name)
				c.streamMade(nil)
				continue
			}
			if err := hopeless(ctx, err); err != nil {
				return err
			}
			c.streamMade(classifyError(err))
		case createTableStep:
			w.cfg.Log.InfoContext(ctx, "table may not exist: creating it", w.about(t, c.verdict)...)
			created, err := w.tables.add(ctx, t.Dst)
			if ctx.Err() != nil || errors.As(err, new(configuration)) {
				return err
			}
			if created {
				t.Page.Created()
			}
			c.tableMade(err)
		case createWaitStep:
			delay := w.cfg.Pacer.Delay(c.schedule, c.attempt)
			w.cfg.Log.InfoContext(ctx, opCreateStream+" failed: trying again", append(w.about(t, c.verdict), "attempt", c.attempt,
				"of", c.schedule.Attempts, "backoff", delay)...)
			if err := w.cfg.Pacer.Pause(ctx, delay, "create a write stream of "+t.Name); err != nil {
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

// streamError is the failure of something on a target's stream.
func (w *Writer) streamError(t *Target, op string, offset int64, attempts int, v *verdict, cause error) *AppendError {
	e := &AppendError{Op: op, Destination: t.Dst, Stream: t.own.name, Offset: offset, Attempts: attempts,
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
