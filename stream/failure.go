package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
)

// FailedRecord is a record that is wrong by itself: it cannot be routed, encoded, or the destination refuses it while
// taking its neighbours.
type FailedRecord struct {
	Connector   string // "bigquery"
	Destination string // "project.dataset.table", or Unresolved
	Reason      string // one sentence that names the field and says what was expected
	Err         error  // the cause, nil where there is none

	// Row is the encoded row, nil when encoding failed. Original is the record as it was read, nil when the record
	// cannot say (see the interface Original). Both are valid during the call only.
	Row      []byte
	Original []byte

	// At and Split say where the record was read: Split and At.Row together are the same after every restart, and no other
	// input row's. Split is "" from sinks that do not know.
	At    Location
	Split string
}

// Unresolved is the destination of a record that could not be routed.
const Unresolved = "unresolved"

// FailurePolicy decides what happens to failed records: FailJob, LogAndDrop, or a dead-letter queue, which is a policy
// whose handlers put records where somebody can look at them. Policies are values in options; handlers do the work.
type FailurePolicy interface {
	// NewHandler is called once for each writer, before anything else can fail.
	NewHandler(ctx context.Context, hc HandlerContext) (FailureHandler, error)
}

// HandlerContext is what a writer gives a new handler.
type HandlerContext struct {
	Job   string
	Lane  int
	Meter Meter
	Log   *slog.Logger
}

// FailureHandler takes the failed records of one writer. All calls come from the writer's goroutine.
//
// A record that fails again on every replay is handled at least once; duplicates after a restart are normal.
type FailureHandler interface {
	// Handle takes one record. nil means that the writer may go on without it; an error fails the job attempt.
	Handle(ctx context.Context, f *FailedRecord) error
	// Flush returns once everything handled before is durable. It is called at every barrier, after the writer's own
	// work, and its error fails the barrier.
	Flush(ctx context.Context) error
	// Close is called exactly once, last. It does not flush.
	Close() error
}

// ErrRecordFailed is found in the error of a job that its failure policy ended.
var ErrRecordFailed = errors.New("record failed")

// FailJob is the policy that ends the job at the first failed record. It is the default everywhere.
func FailJob() FailurePolicy { return failJob{} }

type failJob struct{}

func (failJob) NewHandler(context.Context, HandlerContext) (FailureHandler, error) {
	return failJob{}, nil
}

func (failJob) Handle(_ context.Context, f *FailedRecord) error {
	err := fmt.Errorf("%w: %s to %s: %s", ErrRecordFailed, f.Connector, f.Destination, f.Reason)
	if f.Err != nil {
		err = fmt.Errorf("%w: %s to %s: %w", ErrRecordFailed, f.Connector, f.Destination, f.Err)
	}
	return &PositionError{At: f.At, Err: err}
}
func (failJob) Flush(context.Context) error { return nil }
func (failJob) Close() error                { return nil }

// LogAndDrop is the policy that logs each failed record at level Warn, without its contents, and goes on.
func LogAndDrop() FailurePolicy { return logAndDrop{} }

type logAndDrop struct{}

func (logAndDrop) NewHandler(_ context.Context, hc HandlerContext) (FailureHandler, error) {
	return dropHandler{hc.Log}, nil
}

type dropHandler struct{ log *slog.Logger }

func (h dropHandler) Handle(ctx context.Context, f *FailedRecord) error {
	h.log.WarnContext(ctx, "record dropped", "connector", f.Connector, "destination", f.Destination,
		"at", f.At.String(), "reason", f.Reason)
	return nil
}
func (dropHandler) Flush(context.Context) error { return nil }
func (dropHandler) Close() error                { return nil }
