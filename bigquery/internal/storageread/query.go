package storageread

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/gcp"
	"github.com/millrace-dev/millrace/internal/retry"
)

// Query is a statement whose result is read.
type Query struct {
	Project    string // runs and pays for the query
	SQL        string // empty in Config.Views, where the plan writes it
	Location   string // "" lets BigQuery infer it
	Batch      bool   // waits for idle resources
	Parameters []QueryParameter
	// Landing is where the result goes; the zero value is BigQuery's anonymous dataset.
	Landing Landing
	// ReuseWithin is how long attempts of a job share one run of the query; 0 runs it in each.
	ReuseWithin time.Duration
}

// QueryParameter is the value of @Name in a query, or of the next ? where parameters have no names.
type QueryParameter struct {
	Name string `json:"name,omitempty"`
	Type string `json:"type"` // of the value, or of each of Values, as GoogleSQL calls it
	// Value is the value's text; nil is NULL unless there are Values.
	Value *string `json:"value,omitempty"`
	// Values make the parameter an array; nil makes it none.
	Values []string `json:"values,omitempty"`
}

// Landing is the dataset a result is left in. The table is named like the query job.
type Landing struct {
	Project, Dataset string
	Expiration       time.Duration
}

// DefaultExpiration is how long a result is kept in a dataset that is named.
const DefaultExpiration = 24 * time.Hour

func (l Landing) named() bool { return l.Dataset != "" }

// runQuery runs the query, or finds a run of an earlier attempt, and answers where its result is. Cancelling ctx does not
// cancel the query.
//
// Without a landing the result is in BigQuery's anonymous dataset, kept for about a day, without charge, for the same
// identity only (BigQuery documentation, "Using cached query results").
func (c *Config) runQuery(ctx context.Context, a Attempt, q *Query) (table.Destination, error) {
	rest, err := c.Connection.REST(ctx)
	if err != nil {
		return table.Destination{}, ofSource(err)
	}
	defer rest.Close()
	r := queryRun{rest: rest, query: q, pacer: c.Pacer, log: a.Log, now: c.clock()}
	found, err := r.find(ctx, a.Job)
	if err != nil {
		return table.Destination{}, err
	}
	dst, err := found.job.wait(ctx)
	if err != nil {
		return table.Destination{}, err
	}
	a.Log.InfoContext(ctx, "the query has ended", "job_id", found.job.id, "destination", dst.String())
	r.expire(ctx, dst)
	if found.reattached {
		a.Meter.Counter(QueryJobsReattached).Add(1)
	} else {
		a.Meter.Counter(QueryJobsSubmitted).Add(1)
	}
	return dst, nil
}

// queryRun is one plan's way to a result.
type queryRun struct {
	rest  *gcp.REST
	query *Query
	pacer retry.Pacer
	log   *slog.Logger
	now   func() time.Time
}

// foundJob is the job whose result will be read.
type foundJob struct {
	job        *queryJob
	reattached bool // an earlier attempt submitted it
}

// find submits the query, or answers a job of an earlier attempt.
func (r *queryRun) find(ctx context.Context, name string) (foundJob, error) {
	switch {
	case r.query.ReuseWithin == 0:
	case name == "":
		r.log.WarnContext(ctx, "the job has no name, which query jobs are found again by: the query runs anew in each attempt")
	default:
		return r.reuse(ctx, name)
	}
	j := r.job(newJobID())
	return foundJob{job: j}, r.submit(ctx, j)
}

func (r *queryRun) job(id string) *queryJob {
	return &queryJob{rest: r.rest, query: r.query, pacer: r.pacer, log: r.log, id: id, location: r.query.Location}
}

func (r *queryRun) submit(ctx context.Context, j *queryJob) error {
	if err := j.submit(ctx); err != nil {
		return err
	}
	r.log.InfoContext(ctx, "submitted a query job", "job_id", j.id, "project", j.query.Project, "location", j.location)
	return nil
}

// expire says how long a result in a dataset that is named is kept. It has just been made, or is used again; without it
// the read goes on, and the table stays.
func (r *queryRun) expire(ctx context.Context, dst table.Destination) {
	if !r.query.Landing.named() {
		return
	}
	at := r.now().Add(cmp.Or(r.query.Landing.Expiration, DefaultExpiration))
	err := callsOf(r.pacer, r.log).Do(ctx, "set the expiration of "+dst.String(), func(ctx context.Context) error {
		_, err := r.rest.Tables.Patch(dst.Project, dst.Dataset, dst.Table, &bqrest.Table{ExpirationTime: at.UnixMilli()}).Context(ctx).Do()
		return err
	})
	if err != nil {
		r.log.WarnContext(ctx, "the result of the query will not expire by itself: delete it when the read is over", "destination", dst.String(), "error", err)
	}
}

// tableAt is the resource of a table.
func (r *queryRun) tableAt(ctx context.Context, dst table.Destination) (found *bqrest.Table, err error) {
	err = callsOf(r.pacer, r.log).Do(ctx, fmt.Sprintf("look at the table %s", dst), func(ctx context.Context) (err error) {
		found, err = r.rest.Tables.Get(dst.Project, dst.Dataset, dst.Table).Context(ctx).Do()
		return err
	})
	return found, err
}
