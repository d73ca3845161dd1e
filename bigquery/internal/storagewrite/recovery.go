package storagewrite

import (
	"fmt"

	"github.com/millrace-dev/millrace/internal/retry"
)

// recoveryStep is what a recovery asks its driver to do next. Behind each stands the method that tells it how that went.
type recoveryStep uint8

const (
	recoverSend      recoveryStep = iota // append the first batch at its offset and wait for the answer: sent
	recoverCollect                       // wait for the stream's next unanswered append: behind, or collected when there is none
	recoverRoute                         // hand the refused rows of the first batch to the failure handler: routed
	recoverReconcile                     // give the table the columns that it lacks: reconciled
	recoverReopen                        // close the connection and open another one to the same stream: reopened
	recoverAbandon                       // close the connection and create a new stream: abandoned
	recoverWait                          // wait as the schedule says: waited
	recoverDone                          // the batches are in the stream, up to offset
	recoverFail                          // err ends the writer
)

// recoveryMode is why batches are appended one by one.
type recoveryMode uint8

const (
	// modeResend: the oldest unanswered batch failed, those behind it are still out. It goes to where it was to go.
	modeResend recoveryMode = iota
	// modeReplay: rows were refused, or the stream was abandoned. What is left goes to offsets counted anew, so nothing should be
	// there, and nothing missing before.
	modeReplay
	// modeProbe: the first batch after a restore shows whether the stream still ends where the state says.
	modeProbe
)

// recovery is what follows a failure on a buffered stream, and the first append after a restore: a state machine without
// I/O. Its driver asks for the step, does it, reports, and asks again, until recoverDone or recoverFail.
type recovery struct {
	updates    bool           // tables may be given new columns
	schedule   retry.Schedule // in force
	schemaWait retry.Schedule // in force once the table was reconciled

	step    recoveryStep
	mode    recoveryMode
	batches []*batch // to be appended, in order
	offset  int64    // of the first of them, or of what comes next
	attempt int      // sends of the first batch that count against the schedule

	wired     bool // an earlier send of the first batch was written to a connection
	moving    bool // what is left goes to a new stream
	moves     int  // new streams since the last batch was taken
	renewed   bool // the batch failed on a connection before the one there is now
	reopen    bool // the connection is of no use any more
	reconcile bool // the table was reconciled
	refused   bool // rows were
	verdict   *verdict
	err       error // with recoverFail
}

// failed begins with the oldest unanswered batch of a stream, which failed at offset. sends says how often it was written to a
// connection.
func (r *recovery) failed(b *batch, offset int64, v *verdict, sends int) {
	r.mode, r.batches, r.offset = modeResend, []*batch{b}, offset
	r.judge(v, sends)
}

// restored begins with the first batch after a restore.
func (r *recovery) restored(b *batch, offset int64) {
	r.mode, r.batches, r.offset = modeProbe, []*batch{b}, offset
	r.reopen = true // there is no connection yet
	r.next()
}

// next goes on to the next send.
func (r *recovery) next() {
	switch {
	case len(r.batches) == 0:
		r.step = recoverDone
	case r.reopen:
		r.step = recoverReopen
	default:
		r.attempt++
		r.step = recoverSend
	}
}

// sent reports the answer to the first batch, nil for success. sends says how often it was written to a connection this time.
func (r *recovery) sent(v *verdict, sends int) {
	if v == nil {
		r.offset += int64(r.batches[0].count)
		r.batches = r.batches[1:]
		r.attempt, r.moves, r.wired, r.verdict = 0, 0, false, nil
		if r.mode == modeProbe {
			r.mode = modeReplay
		}
		r.next()
		return
	}
	r.judge(v, sends)
}

// doubts reports whether the answer that the offset is taken leaves open by whom: by these rows, when an earlier send of them
// arrived and its answer was lost; or by those of another process that goes on from the same checkpoint and was quicker, when it
// did not arrive. So it is no success. A probe's offset is taken by somebody else as a rule.
func (r *recovery) doubts(v *verdict, sends int) bool {
	return r.mode != modeProbe && v.exists() && (r.wired || sends > 1)
}

// judge decides about the failure of the first batch, which was written to a connection so often this time.
func (r *recovery) judge(v *verdict, sends int) {
	doubt := r.doubts(v, sends)
	r.verdict, r.wired = v, r.wired || sends > 0
	switch {
	case doubt && r.schedule.Spent(r.moves+1):
		r.fail(fmt.Errorf("%w: %w", retry.ErrBudgetSpent, v.err))
	case doubt:
		// Everything before it was acknowledged, so it is known whose that is. It goes to a new stream with everything behind
		// it; what this one holds from here on is never promised.
		r.moves++
		r.moving, r.step = true, recoverCollect
	case v.kind == KindRows:
		// Nothing of the request was written.
		r.step = recoverRoute
	case v.kind == KindSchemaMismatch && r.updates:
		r.mismatch()
	case r.mode == modeProbe && (v.kind == KindOffset || v.kind == KindStaleStream):
		r.step = recoverAbandon
	case v.kind == KindDeadHandle:
		r.reopen = r.attempt > 0 || !r.renewed
		r.retryOrFail()
	case v.kind == KindTransient, r.mode == modeResend && v.beyond():
		// Beyond the end is what an append behind a failed one meets. That one is mended by now.
		r.retryOrFail()
	case r.mode == modeResend && v.exists():
		r.fail(fmt.Errorf("%w: rows of somebody else are where this append was to go: %w", ErrInconsistentStream, v.err))
	default:
		r.fail(v.err)
	}
}

// mismatch reconciles the table once and then waits for the service to hear of it.
func (r *recovery) mismatch() {
	r.reopen = true // a connection keeps the schema that it was opened with
	if r.reconcile {
		r.retryOrFail()
		return
	}
	r.reconcile = true
	r.schedule = r.schemaWait
	r.attempt = 0
	r.step = recoverReconcile
}

// retryOrFail waits for another send when the budget allows it. The failure that began a recovery costs nothing and is
// followed by a send at once.
func (r *recovery) retryOrFail() {
	switch {
	case r.attempt == 0:
		r.next()
	case r.schedule.Spent(r.attempt):
		r.fail(fmt.Errorf("%w: %w", retry.ErrBudgetSpent, r.verdict.err))
	default:
		r.step = recoverWait
	}
}

// waited reports that a wait is over.
func (r *recovery) waited() { r.next() }

// routed reports what the first batch has left without its refused rows, nil for nothing, and how many it lost.
func (r *recovery) routed(left *batch, lost int) {
	if lost == 0 && (r.mode == modeReplay || r.refused) {
		r.fail(fmt.Errorf("%w: %w", ErrNoProgress, r.verdict.err))
		return
	}
	r.batches = r.batches[1:]
	if left != nil {
		r.batches = append([]*batch{left}, r.batches...)
	}
	r.attempt, r.wired, r.refused = 0, false, true
	switch r.mode {
	case modeReplay, modeProbe:
		// Rows are looked at before their offset is: whether a restored stream ends there is still to be seen.
		r.next()
	default:
		r.mode = modeReplay
		r.step = recoverCollect
	}
}

// behind reports the answer to an append behind the one that failed. Where that one's rows were refused, it was to go where the
// stream does not reach, so it cannot have been taken.
func (r *recovery) behind(b *batch, v *verdict) {
	if r.moving {
		r.batches = append(r.batches, b)
		return
	}
	if v == nil || v.exists() {
		r.fail(fmt.Errorf("%w: an append was taken behind one that was refused", ErrInconsistentStream))
		return
	}
	r.batches = append(r.batches, b)
	r.reopen = r.reopen || v.kind == KindDeadHandle
}

// collected reports that no append of the stream is out any more.
func (r *recovery) collected() {
	if r.moving {
		r.step = recoverAbandon
		return
	}
	r.next()
}

// reconciled reports how reconciling the table went.
func (r *recovery) reconciled(err error) {
	if err != nil {
		r.fail(err)
		return
	}
	r.next()
}

// reopened reports whether the stream could be opened.
func (r *recovery) reopened(v *verdict) {
	if v == nil {
		r.reopen = false
		r.next()
		return
	}
	if r.mode == modeProbe {
		r.verdict, r.step = v, recoverAbandon
		return
	}
	r.attempt++
	r.verdict = v
	if v.kind != KindTransient && v.kind != KindDeadHandle {
		r.fail(v.err)
		return
	}
	r.retryOrFail()
}

// abandoned reports that there is a new stream: nothing is in it, and nothing that was ever promised is beyond what the
// old one is known to hold.
func (r *recovery) abandoned() {
	r.moving = false
	r.mode, r.offset, r.attempt, r.wired, r.reopen = modeReplay, 0, 0, false, false
	r.next()
}

// doubtful reports whether a restored stream may still end elsewhere: all rows of its first batch were refused.
func (r *recovery) doubtful() bool { return r.mode == modeProbe }

func (r *recovery) fail(err error) { r.step, r.err = recoverFail, err }
