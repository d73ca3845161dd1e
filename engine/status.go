package engine

import (
	"time"

	"github.com/millrace-dev/millrace/stream"
)

// Status is how a run is doing. It is a copy: nobody changes it.
type Status struct {
	Job     string
	State   RunState
	Started time.Time

	// Tally and InputBytes are those of the newest checkpoint plus what has been done since. In between checkpoints
	// Tally.Lost() is the number of records in the writers' buffers.
	Tally      stream.Tally
	InputBytes int64
	// TotalBytes is how much there is to read, as far as is known; 0 where the source does not say.
	TotalBytes int64

	Lanes  []LaneStatus
	Splits SplitStatus

	// Checkpoint is the newest one published or restored, its ID 0 as long as there is none.
	Checkpoint CheckpointStatus
	// Recent are the newest that this run has published, at most 20, oldest first.
	Recent []CheckpointStatus
	// Checkpoints and FailedCheckpoints count those that this run has published and failed to publish.
	Checkpoints, FailedCheckpoints int

	ResumedFrom int64 // id of the checkpoint the run began with, 0 at a fresh start
	StartedAnew bool  // because the run that the store holds had finished
	Restarts    int
	// LastFailure is why the last attempt failed, nil before that.
	LastFailure   error
	LastFailureAt time.Time
}

// SplitStatus counts the splits of a run, over all attempts.
type SplitStatus struct {
	Assigned int64 // handed to lanes, those included that came back after a restart
	Finished int64 // read to their end
}

// RunState is what a run is at.
type RunState uint8

const (
	NotStarted RunState = iota
	Starting            // restoring, committing what was not, making readers and writers
	Running
	Stopping   // a graceful stop was asked for
	Restarting // waiting to try again after a failed attempt
	Ended
)

func (s RunState) String() string {
	return [...]string{"not started", "starting", "running", "stopping", "restarting", "ended"}[s]
}

// LaneStatus is how one lane is doing, as of its last batch.
type LaneStatus struct {
	Lane     int
	Doing    Doing
	Split    string // id of the open split, "" when there is none
	Position int64
	Tally    stream.Tally // since the attempt started
}

// Doing is what a lane is at.
type Doing uint8

const (
	LaneWaiting  Doing = iota // for a split
	LaneReading               // and writing
	LaneFlushing              // for a checkpoint
	LaneIdle                  // there is no more input for it
	LaneGone
)

func (d Doing) String() string {
	return [...]string{"waiting", "reading", "flushing", "idle", "gone"}[d]
}

// CheckpointStatus is a summary of a checkpoint.
type CheckpointStatus struct {
	ID        int64
	Taken     time.Time
	Savepoint bool
	Bytes     int           // size in the store; 0 for a restored one
	Aligned   time.Duration // from its start until all lanes had flushed and reported; 0 for a restored one
	Duration  time.Duration // from its start until it was published; 0 for a restored one
}
