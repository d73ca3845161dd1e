package fileload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	bqrest "google.golang.org/api/bigquery/v2"
	"google.golang.org/api/googleapi"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/internal/restcall"
	"github.com/millrace-dev/millrace/internal/gcp"
	"github.com/millrace-dev/millrace/internal/retry"
)

// jobRef names a job. An id without its location is looked for in multi-regions only (BigQuery documentation, jobs.get).
type jobRef struct{ project, location, id string }

// jobStatus is what is known of a job. The zero value is nothing, which the service answers too.
type jobStatus struct {
	done   bool
	state  string    // PENDING, RUNNING, DONE
	failed *JobError // only of one that is done: an error before that is no verdict
	// rows is what a load job that is done has written, where the answer says it.
	rows    int64
	counted bool
	// kind and target are what the job is, where the answer says it.
	kind   string
	target *bqrest.TableReference
}

// jobFields are what an answer is to hold: a load job's configuration has the name of every file.
const jobFields = "jobReference,status,statistics/load/outputRows,configuration(jobType,load/destinationTable,copy/destinationTable,query/destinationTable)"

// jobCalls paces calls about jobs that fail in passing; how long to go on is CallTimeout.
var jobCalls = retry.Schedule{Initial: 500 * time.Millisecond, Max: 30 * time.Second}

// jobs makes calls about jobs.
type jobs struct {
	rest  *gcp.REST
	calls restcall.Caller
}

// get asks for a job. The error of one that is not there is restcall.ErrAbsent.
func (j *jobs) get(ctx context.Context, ref jobRef) (jobStatus, error) {
	var job *bqrest.Job
	err := j.calls.Do(ctx, "look for job "+ref.id, func(ctx context.Context) (err error) {
		job, err = j.rest.Jobs.Get(ref.project, ref.id).Location(ref.location).Fields(jobFields).Context(ctx).Do()
		return err
	})
	if err != nil {
		return jobStatus{}, err
	}
	return statusOf(ref, job), nil
}

// insert submits a job. met says that there is one of its id, which may be this one: an answer that was lost is not the end of a
// submission.
func (j *jobs) insert(ctx context.Context, ref jobRef, c *bqrest.JobConfiguration) (s jobStatus, met bool, err error) {
	body := &bqrest.Job{
		JobReference:  &bqrest.JobReference{ProjectId: ref.project, JobId: ref.id, Location: ref.location},
		Configuration: c,
	}
	var job *bqrest.Job
	err = j.calls.Do(ctx, "submit job "+ref.id, func(ctx context.Context) (err error) {
		job, err = j.rest.Jobs.Insert(ref.project, body).Fields(jobFields).Context(ctx).Do()
		return err
	})
	if err != nil {
		answer, ok := errors.AsType[*googleapi.Error](err)
		return jobStatus{}, ok && answer.Code == http.StatusConflict, err
	}
	return statusOf(ref, job), false, nil
}

func statusOf(ref jobRef, job *bqrest.Job) jobStatus {
	s := job.Status
	if s == nil {
		return jobStatus{}
	}
	out := jobStatus{done: s.State == "DONE", state: s.State}
	out.describe(job.Configuration)
	if job.Statistics != nil && job.Statistics.Load != nil && out.done {
		out.rows, out.counted = job.Statistics.Load.OutputRows, true
	}
	if e := s.ErrorResult; out.done && e != nil {
		out.failed = &JobError{ID: ref.id, Project: ref.project, Location: ref.location, Reason: e.Reason, Message: e.Message}
		for _, one := range s.Errors {
			out.failed.Errors = append(out.failed.Errors, JobFault{one.Reason, one.Location, one.Message})
		}
	}
	return out
}

func (s *jobStatus) describe(c *bqrest.JobConfiguration) {
	if c == nil {
		return
	}
	s.kind = c.JobType
	switch {
	case c.Load != nil:
		s.target = c.Load.DestinationTable
	case c.Copy != nil:
		s.target = c.Copy.DestinationTable
	case c.Query != nil:
		s.target = c.Query.DestinationTable
	}
}

// jobTypes are what the service calls the kinds of jobs (BigQuery REST reference, JobConfiguration.jobType).
var jobTypes = [...]string{loadplan.LoadJob: "LOAD", loadplan.CopyJob: "COPY", loadplan.QueryJob: "QUERY"}

// isOf says what a job that was found under the id of a planned one is instead. Ids have the run and a hash of the files in them, so
// somebody must have made it so; its success says nothing of the rows. Projects are not compared: a project has a name and a number.
func (s *jobStatus) isOf(j *jobRun) error {
	is := s.target
	switch want := reference(j.Target); {
	case s.kind != "" && s.kind != jobTypes[j.Kind]:
		return misconfiguration{fmt.Errorf("job %s is a job of type %s, expected one of type %s: who else submits jobs under such ids?", j.id(), s.kind, jobTypes[j.Kind])}
	case is != nil && (is.DatasetId != want.DatasetId || is.TableId != want.TableId):
		return misconfiguration{fmt.Errorf("job %s writes to %s.%s.%s, expected %s: who else submits jobs under such ids?", j.id(), is.ProjectId, is.DatasetId, is.TableId, j.Target)}
	}
	return nil
}
