package engine

import (
	"time"

	"github.com/millrace-dev/millrace/stream"
)

// Result is what a run came to. It is filled in as far as the run got, also beside an error.
type Result struct {
	Job     string
	Outcome Outcome

	ResumedFrom int64 // id of the checkpoint the run began with, 0 when it began at the start
	StartedAnew bool  // it began at the start because the run that the store holds had finished
	Checkpoint  int64 // id of the newest checkpoint, 0 when there is none
	Checkpoints int   // how many this run published
	Restarts    int

	// Tally is what became of all records from the start of the job, over restarts and resumed runs, as of the newest
	// checkpoint; with an error, plus the record that ended the run. What an attempt did after its last checkpoint does
	// not count: it is done again.
	Tally      stream.Tally
	InputBytes int64

	Duration time.Duration
}

// Outcome is how a run ended.
type Outcome uint8

const (
	Failed      Outcome = iota // with the error beside the Result
	Finished                   // the input ended, and everything is committed
	Stopped                    // gracefully; the next run goes on
	NothingToDo                // From was a finished run
)

func (o Outcome) String() string {
	return [...]string{"failed", "finished", "stopped", "nothing to do"}[o]
}
