package storageread

import (
	"errors"
	"fmt"
	"strings"
	"time"

	rpccode "google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
)

var (
	// ErrRetriesExhausted is found in the error of a stream that gave no row in as many attempts as RetryMaxAttempts
	// allows.
	ErrRetriesExhausted = errors.New("no row in as many attempts as are allowed")
	// ErrSessionExpired is found in the error of a read that failed after the session's end.
	ErrSessionExpired = errors.New("the read session has expired")
	// ErrNoResultTable is found in the error of a query that ended well and left no table to read, such as a script or a
	// statement that changes data.
	ErrNoResultTable = errors.New("the query left no result table")
)

// ReadError says that a stream cannot be read on. It ends the job attempt.
type ReadError struct {
	Stream   string
	Offset   int64      // row of the stream that would have been next
	Code     codes.Code // of the cause; OK when it has none
	Attempts int        // calls since the last row, this one included; 0 when it was not a call that failed
	Expired  time.Time  // when the session had expired by then; zero when it had not
	Err      error
}

func (e *ReadError) Error() string {
	var facts []string
	if e.Code != codes.OK {
		facts = append(facts, "status "+rpccode.Code(e.Code).String())
	}
	if e.Attempts == 1 {
		facts = append(facts, "1 attempt")
	} else if e.Attempts > 1 {
		facts = append(facts, fmt.Sprintf("%d attempts", e.Attempts))
	}
	s := fmt.Sprintf("read stream %s at offset %d failed", e.Stream, e.Offset)
	if len(facts) > 0 {
		s += " (" + strings.Join(facts, ", ") + ")"
	}
	s += ": " + e.Err.Error()
	if !e.Expired.IsZero() {
		s += fmt.Sprintf(". The session expired at %s: a session lives six hours from its creation, and a restart goes on"+
			" with the same expired session, so the job must be started over; more lanes or fewer columns make the read shorter",
			e.Expired.UTC().Format(time.RFC3339Nano))
	}
	return s
}

func (e *ReadError) Unwrap() error { return e.Err }

// Is makes errors.Is find ErrSessionExpired.
func (e *ReadError) Is(target error) bool {
	return target == ErrSessionExpired && !e.Expired.IsZero()
}

// Permanent reports whether a restart would meet the error again.
func (e *ReadError) Permanent() bool { return permanent(e.Err) }

// PlanError says that no read session could be made.
type PlanError struct {
	What string // "p.d.t", or the query
	Hint string // what to do, "" where there is nothing to add
	Err  error
}

func (e *PlanError) Error() string {
	s := "failed to plan the BigQuery read of " + e.What + ": "
	if e.Hint != "" {
		s += e.Hint + ": "
	}
	return s + e.Err.Error()
}

func (e *PlanError) Unwrap() error { return e.Err }

// Permanent reports whether a restart would meet the error again.
func (e *PlanError) Permanent() bool { return permanent(e.Err) }

// QueryJobError says that a query ended badly.
type QueryJobError struct {
	Project, Location, JobID string
	Reason                   string // BigQuery's word, such as "invalidQuery"
	Message                  string
	SQL                      string
}

func (e *QueryJobError) Error() string {
	return fmt.Sprintf("query job %s:%s.%s failed (%s): %s; the query was: %s",
		e.Project, e.Location, e.JobID, e.Reason, e.Message, e.SQL)
}
