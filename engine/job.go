package engine

import (
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/stream"
)

// Job is what to run: records of a source, through a Func, into a sink.
type Job[In, Out any] struct {
	// Name identifies the job in its checkpoint store, across restarts and versions of the program. Any non-empty text
	// will do.
	Name string

	Source stream.Source[In]

	// Func runs on every lane, so several calls run at once, each on its own records. It may be nil where In and Out
	// are one type: records then pass unchanged, and in batches where the writer takes them.
	Func stream.Func[In, Out]

	Sink stream.Sink[Out]

	// Failures takes the records for which Func returned a *stream.RecordError. The zero value is stream.FailJob().
	// Records that the sink refuses go to the sink's own policy.
	Failures stream.FailurePolicy
}

func (j Job[In, Out]) check() error {
	var faults []error
	if j.Name == "" {
		faults = append(faults, errors.New("Job.Name is empty: a job is known by its name in the checkpoint store"))
	}
	if j.Source == nil {
		faults = append(faults, errors.New("Job.Source is nil"))
	}
	if j.Sink == nil {
		faults = append(faults, errors.New("Job.Sink is nil"))
	}
	if _, same := any(j.Sink).(stream.Sink[In]); j.Func == nil && j.Sink != nil && !same {
		faults = append(faults, fmt.Errorf("Job.Func is nil: records of type %T do not fit the sink, which takes %T",
			*new(In), *new(Out)))
	}
	return errors.Join(faults...)
}

func (j Job[In, Out]) failures() stream.FailurePolicy {
	if j.Failures == nil {
		return stream.FailJob()
	}
	return j.Failures
}

// twoPhase returns the sink's second phase, nil when it has none.
func (j Job[In, Out]) twoPhase() stream.TwoPhase { return stream.CommitsOf(j.Sink) }
