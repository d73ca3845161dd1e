package storageread

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/gcp"
	"github.com/millrace-dev/millrace/internal/retry"
)

var (
	// jobPoll paces the wait for a job, without a limit: queries may run for hours. Small queries end within
	// the first few waits.
	jobPoll = retry.Schedule{Initial: 50 * time.Millisecond, Max: 10 * time.Second}
	// jobCall paces calls that fail while the service has a bad moment: about two minutes in all.
	jobCall = retry.Schedule{Initial: 500 * time.Millisecond, Max: 30 * time.Second, Attempts: 10}
)

// restTimeout bounds one REST call.
const restTimeout = time.Minute

// runQuery runs the query and answers where its result is: a table of BigQuery's anonymous dataset, kept for about a
// day, without charge, for the same identity only (BigQuery documentation, "Using cached query results").
//
// Cancelling ctx does not cancel the query.
func (c *Config) runQuery(ctx context.Context, a Attempt) (table.Destination, error) {
	rest, err := c.Connection.REST(ctx)
	if err != nil {
		return table.Destination{}, ofSource(err)
	}
	defer rest.Close()
	j := queryJob{rest: rest, query: c.Query, pacer: c.Pacer, id: newJobID()}
	if err := j.submit(ctx); err != nil {
		return table.Destination{}, err
	}
	a.Log.InfoContext(ctx, "submitted a query job", "job_id", j.id, "project", j.query.Project, "location", j.location)
	dst, err := j.wait(ctx)
	if err != nil {
		return table.Destination{}, err
	}
	a.Log.InfoContext(ctx, "the query has ended", "job_id", j.id, "destination", dst.String())
	a.Meter.Counter(QueryJobsSubmitted).Add(1)
	return dst, nil
}

// newJobID is a job id that no other attempt has, so that a submission whose answer was lost can be repeated.
func newJobID() string {
	var b [16]byte
	rand.Read(b[:])
	return "millrace_bigquery_source_" + hex.EncodeToString(b[:])
}

// queryJob is one run of a query.
type queryJob struct {
	rest  *gcp.REST
	query *Query
	pacer retry.Pacer
	id    string
	// location is where the job runs, as the service answered; a regional job is found nowhere else.
	location string
}

// submit inserts the job. That the id exists already means an earlier call arrived.
func (j *queryJob) submit(ctx context.Context) error {
	job := &bqrest.Job{
		JobReference: &bqrest.JobReference{ProjectId: j.query.Project, JobId: j.id, Location: j.query.Location},
		Configuration: &bqrest.JobConfiguration{
			Query: &bqrest.JobConfigurationQuery{Query: j.query.SQL, UseLegacySql: new(false)},
		},
	}
	j.location = j.query.Location
	return j.repeat(ctx, "submit the query job "+j.id, func(ctx context.Context) error {
		got, err := j.rest.Jobs.Insert(j.query.Project, job).Context(ctx).Do()
		if isHTTP(err, http.StatusConflict) {
			return nil
		}
		if err == nil && got.JobReference != nil {
			j.location = got.JobReference.Location
		}
		return err
	})
}

// wait polls until the job is done. An error the job reports before that is no verdict.
func (j *queryJob) wait(ctx context.Context) (table.Destination, error) {
	for attempt := 1; ; attempt++ {
		job, err := j.get(ctx)
		if err != nil {
			return table.Destination{}, err
		}
		if job.Status != nil && job.Status.State == "DONE" {
			return j.result(job)
		}
		if err := j.pacer.Wait(ctx, jobPoll, attempt, "look at the query job "+j.id+" again"); err != nil {
			return table.Destination{}, err
		}
	}
}

func (j *queryJob) get(ctx context.Context) (job *bqrest.Job, err error) {
	err = j.repeat(ctx, "look at the query job "+j.id, func(ctx context.Context) (err error) {
		job, err = j.rest.Jobs.Get(j.query.Project, j.id).Location(j.location).Context(ctx).Do()
		return err
	})
	if isHTTP(err, http.StatusNotFound) {
		return nil, fmt.Errorf("the query job %s in location %q has disappeared: %w", j.id, j.location, err)
	}
	return job, err
}

// repeat makes a call until it succeeds or fails for good.
func (j *queryJob) repeat(ctx context.Context, what string, call func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		err := withTimeout(ctx, call)
		if err == nil {
			return nil
		}
		if !repeatable(ctx, err) || jobCall.Spent(attempt) {
			return fmt.Errorf("%s: %w", what, err)
		}
		if waited := j.pacer.Wait(ctx, jobCall, attempt, what+" again"); waited != nil {
			return errors.Join(waited, err)
		}
	}
}

func withTimeout(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, restTimeout)
	defer cancel()
	return call(ctx)
}

// result is the table a finished job names. It is never guessed.
func (j *queryJob) result(job *bqrest.Job) (table.Destination, error) {
	if e := job.Status.ErrorResult; e != nil {
		return table.Destination{}, &QueryJobError{Project: j.query.Project, Location: j.location, JobID: j.id,
			Reason: e.Reason, Message: e.Message, SQL: j.query.SQL}
	}
	if c := job.Configuration; c != nil && c.Query != nil && c.Query.DestinationTable != nil {
		t := c.Query.DestinationTable
		return table.Destination{Project: t.ProjectId, Dataset: t.DatasetId, Table: t.TableId}, nil
	}
	return table.Destination{}, fmt.Errorf("query job %s: %w", j.id, ErrNoResultTable)
}
