// Package engine runs a job in one process, over the contracts of package stream.
//
// # Model
//
// A job is N identical lanes. A lane is one goroutine that reads the rows of a split, passes their records through a Func
// and hands what comes out to a writer. The coordinator, on the goroutine that called [Run], hands splits to lanes that
// ask and takes checkpoints.
//
//	          ask, report                    ┌ reader → Func → writer    lane 0
//	coordinator ◀────────────────────────────┼ reader → Func → writer    lane 1
//	    │    ▲  ────────────────────────────▶└ reader → Func → writer    lane 2
//	    ▼    │  split, barrier, acknowledge
//	enumerator  store, committers
//
// # A checkpoint
//
//  1. The coordinator sends a barrier to every lane and hands out no splits from then on. A barrier is a call between two
//     rows; it wakes a lane that waits for rows.
//  2. Each lane notes its split and position, calls Flush, Prepare and Snapshot of its writer, reports, and goes on.
//  3. When all have reported, the coordinator takes the enumerator's snapshot and hands out splits again. A split is
//     therefore in the report of one lane, or in the snapshot, never in both and never in neither.
//  4. All of it, with every committable that is not known to be committed, is published in the [Store]: wholly or not at
//     all.
//  5. Only then the committers run, while lanes go on; and then readers that acknowledge hear of it.
//
// A checkpoint that cannot be stored costs nothing but time: what it would have committed goes with the next one.
//
// # What is guaranteed
//
// Every row read becomes a written, dead-lettered or skipped record at least once, whenever the process ends, and
// wherever; with a sink that commits in two phases, and a source that reads the same rows again, exactly once. That holds
// across restarts, upgrades and another number of lanes, as long as the store does. Every checkpoint proves that no
// record is unaccounted for (see stream.Tally), or ends the job.
//
// Two processes must not run one job with one store. When they do, the one that publishes second notices, commits
// nothing, and ends with a [ConflictError].
//
// # Failures
//
// An error of a source, Func or sink ends the attempt: everything is closed, and after a delay that [Restart] decides
// the next attempt goes on from the newest checkpoint in the store. Panics in their code, on the engine's goroutines, end
// the job at once, with the place of the record in a *stream.PositionError and the stack in the log.
//
// # Ending
//
// A job whose source is bounded ends by itself. [Handle].Stop, or a context that ends with the cause [ErrStop], stops
// one gracefully: a last checkpoint is taken, from which the next run of the job goes on. A context that ends otherwise
// aborts it.
package engine
