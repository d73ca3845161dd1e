package rest

import (
	"context"
	"sync"
	"time"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// jobKey names a job. Jobs of one id in two locations are two jobs.
type jobKey struct{ project, location, id string }

// task is what a job does.
type task interface {
	// run carries it out. An error is the job's.
	run(ctx context.Context, s *Server, j *job) (*jobResult, error)
	// resource is the configuration with what the service has filled in.
	resource(j *job) (*bqapi.JobConfiguration, error)
	// describe adds the figures of the task's type.
	describe(s *bqapi.JobStatistics, r *jobResult)
	// timeout is jobTimeoutMs; 0 is none.
	timeout() int64
}

// job is a job. What is not guarded by mu does not change.
type job struct {
	key       jobKey
	principal string
	task      task
	config    *queryConfig // the task of a query; nil for others
	kept      *keptJob     // what the store has of it; nil where nothing
	created   time.Time
	cancel    context.CancelCauseFunc
	done      chan struct{} // closed when the job is over

	mu      sync.Mutex // guards the fields below until done is closed
	started time.Time
	ended   time.Time
	failed  error
	result  *jobResult // of a query that succeeded
}

// jobResult is what a job left behind.
type jobResult struct {
	// table is that of a query, and into its name; nil for a dry run, and where it was gone when the service was started again.
	table *store.Table
	into  store.TableRef
	// partition is the one of table that the rows are in; "" is all of it.
	partition string
	version   int64 // at which its rows are the result
	rows      int64
	schema    *bqapi.TableSchema
	bytes     int64
	tables    []query.Ref
	// cacheHit says that an earlier job made it.
	cacheHit bool
	change   *change // of a statement that is no query
	moved    moved   // by jobs that are no queries
	errors   []error // that the job got over
	// recorded says that the store has the outcome, with the rows.
	recorded bool
}

// finish ends the job, once. The end is not before its rows are visible to a snapshot at that time, which clients know by
// the millisecond; settle keeps later rows out of that snapshot.
func (j *job) finish(at time.Time, r *jobResult, err error, settle func(time.Time)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if rounded := at.Truncate(time.Millisecond); !rounded.Equal(at) {
		at = rounded.Add(time.Millisecond)
	}
	if r != nil {
		if visible := store.TimeOf(r.version); at.Before(visible) {
			at = visible.Truncate(time.Millisecond).Add(time.Millisecond)
		}
		settle(at)
	}
	if j.started.IsZero() {
		j.started = at
	}
	j.ended, j.result, j.failed = at, r, err
	close(j.done)
}

func (j *job) start(at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.started = at
}

// over is a job's outcome; ok is false while it runs.
func (j *job) over() (result *jobResult, failed error, ok bool) {
	select {
	case <-j.done:
		return j.result, j.failed, true
	default:
		return nil, nil, false
	}
}

// state is PENDING, RUNNING or DONE.
func (j *job) state() string {
	if _, _, over := j.over(); over {
		return "DONE"
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.started.IsZero() {
		return "PENDING"
	}
	return "RUNNING"
}
