// Package stream holds the contracts that let a source, a sink and an engine meet without knowing each other.
//
// # Model
//
// A source has one [Enumerator], which hands out splits, and one [Reader] per lane, which reads them. A split is bytes
// plus a position: a number that grows with every input row, so that a reader can stop after any row and another one,
// in another process, can go on from there. A sink has one [Writer] per lane and, when its commit has two phases, a
// [Committer]. An engine moves records from readers to writers, takes checkpoints, and brings everything back after a
// failure.
//
//	          Split                 Record                State, Committable
//	Enumerator ────▶ Reader ─ Func ────────▶ Writer ───────────────▶ checkpoint ────▶ Committer
//	     ▲                                                               │
//	     └──────────── Return (a lane failed) ◀──── restore ◀────────────┘
//
// # A checkpoint
//
// For every lane, between two input rows: the engine notes the position of every split the lane holds, then calls
// [Writer].Flush, Prepare and Snapshot, in this order. It stores those positions, the states, the committables that are
// not known to be committed and the enumerator's snapshot, all or nothing. Only then does it hand the committables to
// the committer and tell readers that acknowledge ([Acknowledger]) that their rows are safe.
//
// # Who calls what, from where
//
// All calls on one Reader and on one Writer come from one goroutine, the lane. All calls on one Enumerator come from
// one goroutine, the coordinator. A Committer is called from one goroutine at a time, while lanes go on writing.
// Implementations therefore need no locks for their own state.
//
// # Failures
//
// Any error from a contract method, other than those its comment names, ends the job attempt: the engine closes every
// part and, as its restart policy allows, starts again from the newest checkpoint. A record that is wrong by itself is
// not such an error: the writer hands it to the [FailureHandler] and goes on.
//
// # Engines that are not ours
//
// The contracts assume no checkpointing engine around them. What crosses a process boundary is bytes with a version
// inside (split, state, committable, [EncodedBatch]); commits may repeat, in any order, for ever; a writer may be asked
// to go on from any earlier state while its predecessor still runs. docs/decisions/0002 says how each contract maps to
// Apache Beam.
//
// The suite in streamtest holds implementations to all of this.
package stream
