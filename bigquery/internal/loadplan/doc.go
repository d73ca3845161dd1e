// Package loadplan decides what the load jobs of one commit are, without running any: from the committables of staged files it
// makes a [Plan] of load, copy and query jobs, complete and checked before a table or a job is touched.
//
//	plan, err := loadplan.Build(config, loadplan.ServiceLimits(), slices.Values(committables))
//	for phase := range plan.Phases(limits) { // loads, copies level by level, final copies, queries
//	    for _, wave := range phase.Waves { … submit all of it, then await all of it … }
//	}
//
// It does no input or output and knows no clock. The same committables in any order give the same plan, and the id of every job is
// a function of the committables alone: who commits them again, in another process, finds the jobs of the first time.
//
// # What makes ids unique
//
// An id or a temporary table of one commit means the same files whenever it is met. Ids of load jobs hash the files they name,
// but temporary tables are named after their destination, the run and the checkpoint, and the copy out of them after their names.
// So two commits of one run must carry different checkpoints: a run may make at most one commit that is not stamped
// ([Checkpoint] is its zero value), and no commit with the same checkpoint as another unless it holds the same committables. An
// engine that stamps every checkpoint but the last one of a batch job keeps that. Two sinks of one program need runs of their own.
//
// Within one plan no two names are equal, also where tables have been named so that the few digits of their hashes are. Who plans
// destinations apart from each other, each group of files by itself, does without that.
package loadplan
