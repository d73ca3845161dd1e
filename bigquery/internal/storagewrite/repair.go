package storagewrite

import (
	"fmt"

	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/internal/retry"
)

// step is what a repair asks its driver to do next. Behind each stands the method that tells the repair how it went.
type step uint8

const (
	stepCollect   step = iota // wait for the destination's next unanswered append: sibling, or collected when there is none
	stepRoute                 // hand the refused rows of the batch to the failure handler: routed
	stepCreate                // create the table: created
	stepReconcile             // change the table to take the rows: reconciled
	stepRebuild               // open a new handle: rebuilt
	stepAppend                // append the batch and wait for the answer: appended
	stepWait                  // wait as the schedule says: waited
	stepDone                  // nothing is left to repair
	stepFail                  // err ends the writer
)

// repair is what follows a failure on one destination: a state machine without I/O. Its driver asks for the step, does
// it, reports, and asks again, until stepDone or stepFail.
//
// A repair begins with a failed batch (failed) or a handle that could not be opened (unopened). It first waits for every
// other append of the destination, so that no live one is torn down with the old handle; then it creates or changes the
// table if that is what the failure asked for; then it opens a new handle and appends what has to be appended again, one
// batch at a time, in rounds.
//
// Two things take time to reach the write service. A new table is there within seconds, so waiting for it stays within the
// budget of recovery: a denial that never ends looks the same. New columns take half a minute, now and then hours, and
// get the long budget of schemaWait, which transient failures in between keep.
type repair struct {
	may        allowed
	schedule   retry.Schedule // in force
	recovery   retry.Schedule // for what passes by itself, and for tables that were created
	schemaWait retry.Schedule // for tables that were changed

	step          step
	batches       []*batch // to be appended again, in order of sending
	first         action   // what the first failure asks for, done once every append of the destination is in
	tableCreated  bool     // or attempted: a repair creates at most once
	schemaUpdated bool     // or found to be right: a repair reconciles at most once
	unchanged     error    // why the table could not be changed
	told          bool     // the driver's: that rows wait for the table's new columns
	attempt       int      // the round, from 1; 0 before the first

	routing  *batch   // with stepRoute
	verdict  *verdict // with stepRoute: the refusal; else the failure that matters most now
	after    step     // where to go after stepRoute
	op       string   // what the verdict is about
	err      error    // with stepFail
	original *verdict // what began the repair
}

// failed begins a repair with a batch that failed.
func (r *repair) failed(b *batch, v *verdict) {
	r.original, r.op = v, opAppend
	r.first = choose(v, r.may)
	r.fold(b, v)
}

// unopened begins a repair with a handle that could not be opened; there is nothing in flight and no batch.
func (r *repair) unopened(v *verdict) {
	r.original, r.op, r.verdict = v, opOpen, v
	switch r.first = choose(v, r.may); r.first {
	case actionCreateTable:
		r.step = stepCreate
	case actionRetry:
		r.nextRound()
	default:
		r.fail(v, nil)
	}
}

// refresh begins a repair of nothing that failed: the rows to come have another schema, and o is what became of the table.
func (r *repair) refresh(o tableadmin.Outcome) {
	if o != tableadmin.Unchanged {
		r.updated(o)
	}
	r.nextRound()
}

// fold takes in one failed batch.
func (r *repair) fold(b *batch, v *verdict) {
	r.verdict = v
	switch choose(v, r.may) {
	case actionFail:
		r.fail(v, nil)
	case actionRoute:
		r.routing, r.step, r.after = b, stepRoute, stepCollect
	default:
		r.batches = append(r.batches, b)
		r.step = stepCollect
	}
}

// sibling reports that another append of the destination failed.
func (r *repair) sibling(b *batch, v *verdict) { r.fold(b, v) }

// collected reports that no append of the destination is out any more.
func (r *repair) collected() {
	switch r.first {
	case actionCreateTable:
		r.step = stepCreate
	case actionReconcile:
		r.step = stepReconcile
	default:
		r.nextRound()
	}
}

// routed reports what a batch has left without its refused rows, nil for nothing, and how many it lost.
func (r *repair) routed(left *batch, lost int) {
	if r.after == stepCollect {
		if left != nil {
			r.batches = append(r.batches, left)
		}
		r.step = stepCollect
		return
	}
	if lost == 0 {
		r.fail(r.verdict, fmt.Errorf("%w: %w", ErrNoProgress, r.verdict.err))
		return
	}
	if left == nil {
		r.batches = r.batches[1:]
	} else {
		r.batches[0] = left
	}
	r.proceed()
}

// created reports how the creation of the table went.
func (r *repair) created(err error) {
	r.tableCreated = true
	if err != nil {
		r.unmended(err)
		return
	}
	if r.attempt == 0 {
		r.nextRound()
		return
	}
	// There is nothing to wait for: what the last round lacked is there now. The round counts all the same.
	if r.retryOrFail(); r.step == stepWait {
		r.nextRound()
	}
}

// reconciled reports how the change of the table went.
func (r *repair) reconciled(o tableadmin.Outcome, err error) {
	if err != nil {
		r.unchanged = err
		r.tableCreated = r.tableCreated || o == tableadmin.Created
		r.unmended(err)
		return
	}
	r.updated(o)
	if r.attempt == 0 {
		r.nextRound()
		return
	}
	r.retryOrFail()
}

// updated takes note of a reconciliation: what the service has to hear of takes its time from now on.
func (r *repair) updated(o tableadmin.Outcome) {
	r.schemaUpdated, r.schedule = true, r.schemaWait
	r.tableCreated = r.tableCreated || o == tableadmin.Created
}

// unmended ends the repair with the failure of what was to be done about one.
func (r *repair) unmended(err error) {
	why := r.verdict
	if r.attempt == 0 {
		why = r.original
	}
	r.fail(why, fmt.Errorf("%w; it was needed because of: %w", err, why.err))
}

// nextRound begins a round of appends with a new handle.
func (r *repair) nextRound() {
	r.attempt++
	r.step = stepRebuild
}

// rebuilt reports whether the new handle could be opened.
func (r *repair) rebuilt(v *verdict) {
	if v == nil {
		r.proceed()
		return
	}
	r.op = opOpen
	r.judge(v)
}

// proceed goes on with the first batch that is left.
func (r *repair) proceed() {
	r.step = stepAppend
	if len(r.batches) == 0 {
		r.step = stepDone
	}
}

// appended reports the answer to the first batch.
func (r *repair) appended(v *verdict) {
	switch {
	case v == nil:
		r.batches = r.batches[1:]
		r.proceed()
	case choose(v, r.may) == actionReconcile && !r.schemaUpdated:
		r.verdict, r.op, r.step = v, opReAppend, stepReconcile
	case v.kind == KindRows:
		r.verdict, r.routing, r.after, r.step = v, r.batches[0], stepAppend, stepRoute
		r.op = opReAppend
	default:
		r.op = opReAppend
		r.judge(v)
	}
}

// judge decides about a failure within a round.
func (r *repair) judge(v *verdict) {
	r.verdict = v
	if v.missing() && r.may.create && !r.tableCreated {
		r.step = stepCreate
		return
	}
	r.retryOrFail()
}

// retryOrFail waits for another round when the failure is worth one and the budget allows it.
//
// A missing table is worth one only once the table was created, and a missing column once the table was changed: either
// then has to reach the write service.
func (r *repair) retryOrFail() {
	v := r.verdict
	mismatch := r.schemaUpdated && v.kind == KindSchemaMismatch
	missing := r.tableCreated && v.missing()
	switch {
	case mismatch:
		r.schedule = r.schemaWait
	case missing:
		r.schedule = r.recovery
	}
	retriable := choose(v, allowed{}) == actionRetry || missing || mismatch
	switch {
	case !retriable:
		r.fail(v, nil)
	case r.schedule.Spent(r.attempt):
		r.fail(v, fmt.Errorf("%w: %w", retry.ErrBudgetSpent, v.err))
	default:
		r.step = stepWait
	}
}

// waited reports that the wait between two rounds is over.
func (r *repair) waited() { r.nextRound() }

// fail ends the repair; cause is v's own unless there is more to say.
func (r *repair) fail(v *verdict, cause error) {
	r.step, r.verdict = stepFail, v
	if cause == nil {
		cause = v.err
	}
	r.err = cause
}
