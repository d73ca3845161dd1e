package storageread

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/bigquery/internal/restcall"
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

// jobPrefix begins the id of every query job of a source.
const jobPrefix = "millrace_bigquery_source_"

// callsOf makes calls of the REST service, again where they fail in passing.
func callsOf(p retry.Pacer, log *slog.Logger) restcall.Caller {
	return restcall.Caller{Schedule: jobCall, Pacer: p, Log: log}
}

// newJobID is a job id that no other attempt has, so that a submission whose answer was lost can be repeated.
func newJobID() string {
	var b [16]byte
	rand.Read(b[:])
	return jobPrefix + hex.EncodeToString(b[:])
}

// queryJob is one run of a query.
type queryJob struct {
	rest  *gcp.REST
	query *Query
	pacer retry.Pacer
	log   *slog.Logger
	id    string
	// location is where the job runs, as the service answered; a regional job is found nowhere else.
	location string
	// taken says that somebody has used the id before.
	taken bool
}

// submit inserts the job. That the id exists already means an earlier call arrived, of this attempt or of another one.
func (j *queryJob) submit(ctx context.Context) error {
	job := &bqrest.Job{
		JobReference:  &bqrest.JobReference{ProjectId: j.query.Project, JobId: j.id, Location: j.query.Location},
		Configuration: &bqrest.JobConfiguration{Query: j.configuration()},
	}
	j.location, j.taken = j.query.Location, false
	return refused(j.calls().Do(ctx, "submit the query job "+j.id, func(ctx context.Context) error {
		got, err := j.rest.Jobs.Insert(j.query.Project, job).Context(ctx).Do()
		if isHTTP(err, http.StatusConflict) {
			j.taken = true
			return nil
		}
		if err == nil && got.JobReference != nil {
			j.location = got.JobReference.Location
		}
		return err
	}))
}

// refusedQuery is the answer to a query that BigQuery made no job of.
type refusedQuery struct{ err error }

func (r *refusedQuery) Error() string { return r.err.Error() }
func (r *refusedQuery) Unwrap() error { return r.err }

func refused(err error) error {
	if err == nil {
		return nil
	}
	return &refusedQuery{err}
}

func (j *queryJob) configuration() *bqrest.JobConfigurationQuery {
	q := j.query
	c := &bqrest.JobConfigurationQuery{Query: q.SQL, UseLegacySql: new(false)}
	if q.Batch {
		c.Priority = "BATCH"
	}
	if l := q.Landing; l.named() {
		c.DestinationTable = &bqrest.TableReference{ProjectId: l.Project, DatasetId: l.Dataset, TableId: j.id}
		c.WriteDisposition = "WRITE_TRUNCATE"
	}
	for i := range q.Parameters {
		c.QueryParameters = append(c.QueryParameters, q.Parameters[i].resource())
		c.ParameterMode = "POSITIONAL"
		if q.Parameters[0].Name != "" {
			c.ParameterMode = "NAMED"
		}
	}
	return c
}

func (p *QueryParameter) resource() *bqrest.QueryParameter {
	out := &bqrest.QueryParameter{Name: p.Name, ParameterType: &bqrest.QueryParameterType{Type: p.Type}, ParameterValue: &bqrest.QueryParameterValue{}}
	if p.Values == nil {
		if p.Value != nil {
			out.ParameterValue.Value, out.ParameterValue.ForceSendFields = *p.Value, []string{"Value"}
		} else {
			out.ParameterValue.NullFields = []string{"Value"}
		}
		return out
	}
	out.ParameterType = &bqrest.QueryParameterType{Type: "ARRAY", ArrayType: out.ParameterType}
	out.ParameterValue.ForceSendFields = []string{"ArrayValues"}
	out.ParameterValue.ArrayValues = []*bqrest.QueryParameterValue{}
	for _, v := range p.Values {
		out.ParameterValue.ArrayValues = append(out.ParameterValue.ArrayValues, &bqrest.QueryParameterValue{Value: v, ForceSendFields: []string{"Value"}})
	}
	return out
}

// wait polls until the job is done. An error the job reports before that is no verdict.
func (j *queryJob) wait(ctx context.Context) (table.Destination, error) {
	for attempt := 1; ; attempt++ {
		job, err := j.get(ctx)
		if isHTTP(err, http.StatusNotFound) {
			return table.Destination{}, fmt.Errorf("the query job %s in location %q has disappeared: %w", j.id, j.location, err)
		}
		if err != nil {
			return table.Destination{}, err
		}
		if done(job) {
			return j.result(job)
		}
		if err := j.pacer.Wait(ctx, jobPoll, attempt, "look at the query job "+j.id+" again"); err != nil {
			return table.Destination{}, err
		}
	}
}

func (j *queryJob) calls() restcall.Caller { return callsOf(j.pacer, j.log) }

func done(job *bqrest.Job) bool { return job.Status != nil && job.Status.State == "DONE" }

func (j *queryJob) get(ctx context.Context) (job *bqrest.Job, err error) {
	err = j.calls().Do(ctx, "look at the query job "+j.id, func(ctx context.Context) (err error) {
		job, err = j.rest.Jobs.Get(j.query.Project, j.id).Location(j.location).Context(ctx).Do()
		return err
	})
	return job, err
}

// result is the table a finished job names. It is never guessed.
func (j *queryJob) result(job *bqrest.Job) (table.Destination, error) {
	if err := j.failure(job); err != nil {
		return table.Destination{}, err
	}
	if c := job.Configuration; c != nil && c.Query != nil && c.Query.DestinationTable != nil {
		t := c.Query.DestinationTable
		return table.Destination{Project: t.ProjectId, Dataset: t.DatasetId, Table: t.TableId}, nil
	}
	return table.Destination{}, fmt.Errorf("query job %s: %w", j.id, ErrNoResultTable)
}

// failure is what a finished job failed with, nil when it did not.
func (j *queryJob) failure(job *bqrest.Job) error {
	if e := job.Status.ErrorResult; e != nil {
		return &QueryJobError{Project: j.query.Project, Location: j.location, JobID: j.id,
			Reason: e.Reason, Message: e.Message, SQL: j.query.SQL}
	}
	return nil
}

// ResultSchema asks BigQuery what the columns of the query's result are, which runs and costs nothing.
func (c *Config) ResultSchema(ctx context.Context) (*bqrest.TableSchema, error) {
	rest, err := c.Connection.REST(ctx)
	if err != nil {
		return nil, ofSource(err)
	}
	defer rest.Close()
	j := &queryJob{query: c.Query}
	job := &bqrest.Job{
		JobReference:  &bqrest.JobReference{ProjectId: c.Query.Project, Location: c.Query.Location},
		Configuration: &bqrest.JobConfiguration{DryRun: true, Query: j.configuration()},
	}
	job.Configuration.Query.DestinationTable, job.Configuration.Query.WriteDisposition = nil, "" // which has no name yet
	var got *bqrest.Job
	err = callsOf(c.Pacer, slog.New(slog.DiscardHandler)).Do(ctx, "ask for the columns of "+c.what(), func(ctx context.Context) (err error) {
		got, err = rest.Jobs.Insert(c.Query.Project, job).Context(ctx).Do()
		return err
	})
	if err = refused(err); err != nil {
		if hint := c.hint(err); hint != "" {
			err = fmt.Errorf("%s: %w", hint, err)
		}
		return nil, err
	}
	if s := got.Statistics; s != nil && s.Query != nil && s.Query.Schema != nil {
		return s.Query.Schema, nil
	}
	return nil, fmt.Errorf("ask for the columns of %s: %w", c.what(), ErrNoResultTable)
}
