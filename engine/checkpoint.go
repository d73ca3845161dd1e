package engine

import (
	"time"

	"github.com/millrace-dev/millrace/stream"
)

// Checkpoint is everything needed to go on with a job in another process.
type Checkpoint struct {
	Job   string
	ID    int64 // grows from checkpoint to checkpoint of a job, not always by one
	Run   RunID // the run that took it
	Taken time.Time
	Lanes int // of the run that took it

	// Savepoint checkpoints are kept until somebody deletes them.
	Savepoint bool
	// Finished says that the input has ended and that everything is committed: there is nothing to go on with.
	Finished bool
	// Stopped says that the run was stopped after it, in good order.
	Stopped bool

	// Tally is what became of all records from the start of the job up to here, over all runs and restarts.
	Tally stream.Tally
	// InputBytes is how much of the source the readers had fetched.
	InputBytes int64

	Enumerator   []byte
	Splits       []HeldSplit
	States       []stream.State
	Committables []HeldCommittable // prepared, and not known to be committed
}

// RunID tells the runs of a job apart. It is random.
type RunID [16]byte

// HeldSplit is a split that a lane was reading, at the position of the first row that is not in the checkpoint.
type HeldSplit struct {
	Lane  int
	Split stream.Split
}

// HeldCommittable is a committable, the lane that prepared it, and what for.
type HeldCommittable struct {
	Lane        int
	Checkpoint  int64 // that it was prepared for; 0 when it was stored by a version that did not say
	Committable stream.Committable
}
