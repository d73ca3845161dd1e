package storagewrite

import (
	"context"
	"errors"
	"fmt"
)

// recoverHead mends the oldest append of a target's stream, which has failed.
func (w toBuffered) recoverHead(ctx context.Context, t *Target, e entry, v *verdict) error {
	if ctx.Err() != nil {
		return w.latch(context.Cause(ctx)) // the batch is in nobody's hands
	}
	r := w.newRecovery()
	if !r.doubts(v, e.call.sends) {
		w.appendFailed(&t.Place, v)
	}
	r.renewed = e.via != t.own.handle
	r.failed(e.batch, e.call.offset, v, e.call.sends)
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
	was := t.own.probe
	t.own.probe = r.doubtful()
	if was && !t.own.probe && t.own.name == probing {
		w.cfg.Log.InfoContext(ctx, "stream goes on from where it was left", "destination", t.Name, "stream", probing, "offset", t.own.next)
	}
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
		t.own.leave(r.offset)
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
		if err := w.cfg.Pacer.Pause(ctx, delay, "append to "+t.Name+" again"); err != nil {
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
		r.sent(classifyError(err), 0)
		return nil
	}
	t.own.schema = b.schema
	if *handed {
		w.appendedAgain(&t.Place)
	} else {
		*handed = true
		w.handed(t, b)
	}
	if err := wait(ctx, c); err != nil {
		return err
	}
	v := judgeAt(c)
	doubt := v != nil && r.doubts(v, c.sends)
	r.sent(v, c.sends)
	switch {
	case v == nil:
		w.acked(entry{target: t, batch: b, call: c}) // the batch may be filled again from here on
	case !doubt:
		w.appendFailed(&t.Place, v)
	}
	return nil
}

// collectBehind waits for one more append behind the one that failed. What it met is that failure's doing, so it is not
// counted.
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
