package rest

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// insertJob is jobs.insert.
func (s *Server) insertJob(c *call) (any, error) {
	var body struct {
		Reference     *bqapi.JobReference        `json:"jobReference"`
		Configuration map[string]json.RawMessage `json:"configuration"`
	}
	var object map[string]json.RawMessage
	if err := c.body(&object); err != nil {
		return nil, err
	}
	if err := jobFields.check(object, "job"); err != nil {
		return nil, err
	}
	if err := recast(object, &body); err != nil {
		return nil, err
	}
	key, err := c.jobKey(body.Reference)
	if err != nil {
		return nil, err
	}
	if err := configurationFields.check(body.Configuration, "job.configuration"); err != nil {
		return nil, err
	}
	if body.Configuration["query"] == nil {
		return s.insertTransfer(c, key, body.Configuration)
	}
	config, err := readConfiguration(body.Configuration)
	if err != nil {
		return nil, err
	}
	if config.dryRun {
		return s.dryRun(c, key, config)
	}
	j, err := s.submit(c, key, config)
	if err != nil {
		return nil, err
	}
	return c.jobResource(j)
}

// jobKey is the name that the client gives a job.
func (c *call) jobKey(r *bqapi.JobReference) (jobKey, error) {
	key := jobKey{project: c.project()}
	if r == nil {
		return key, nil
	}
	if r.ProjectId != "" && r.ProjectId != c.project() {
		return key, refusal.New(refusal.Invalid, "jobReference.projectId %s differs from the project of the request, %s", r.ProjectId, c.project())
	}
	key.location, key.id = r.Location, r.JobId
	return key, nil
}

func readConfiguration(object map[string]json.RawMessage) (*queryConfig, error) {
	var fields map[string]json.RawMessage
	if err := decode(object["query"], &fields); err != nil {
		return nil, err
	}
	if err := queryFields.check(fields, "job.configuration.query"); err != nil {
		return nil, err
	}
	config, err := readQuery(fields, queryFields)
	if err != nil {
		return nil, err
	}
	var outer bqapi.JobConfiguration
	if err := recast(configurationFields.keep(object), &outer); err != nil {
		return nil, err
	}
	config.labels, config.timeoutMs, config.dryRun, config.object = outer.Labels, outer.JobTimeoutMs, outer.DryRun, object
	return config, nil
}

// submit starts a job, in the location that its datasets are in where the client names none.
func (s *Server) submit(c *call, key jobKey, config *queryConfig) (*job, error) {
	if err := s.permit(c, "bigquery.jobs.create", "projects/"+key.project, key); err != nil {
		return nil, err
	}
	if key.location == "" {
		key.location = s.locate(key.project, config)
	}
	var kept *keptJob
	if key.id != "" { // one that nobody named is not asked for after a restart
		kept = &keptJob{Configuration: config.object}
	}
	return s.jobs.submit(key, c.principal, config, kept)
}

// locate is the location of the dataset a query writes, else of its default dataset, else of the first table it reads,
// else US.
func (s *Server) locate(project string, config *queryConfig) string {
	for _, ref := range config.datasets() {
		ref.Project = cmp.Or(ref.Project, project)
		if d, err := s.Store.Dataset(ref); err == nil {
			return d.Location
		}
	}
	if s.Queries == nil {
		return "US"
	}
	return s.locateByTables(project, config)
}

func (c *queryConfig) datasets() []store.DatasetRef {
	var out []store.DatasetRef
	if t := c.DestinationTable; t != nil {
		out = append(out, store.DatasetRef{Project: t.ProjectId, Dataset: t.DatasetId})
	}
	if d := c.DefaultDataset; d != nil {
		out = append(out, store.DatasetRef{Project: d.ProjectId, Dataset: d.DatasetId})
	}
	return out
}

// dryRun plans a query and keeps nothing.
func (s *Server) dryRun(c *call, key jobKey, config *queryConfig) (any, error) {
	j, r, err := s.plan(c, key, config)
	if err != nil {
		return nil, err
	}
	return c.dryRunResource(j, r)
}

func (s *Server) plan(c *call, key jobKey, config *queryConfig) (*job, *jobResult, error) {
	if s.Queries == nil {
		return nil, nil, refusal.New(refusal.NotImplemented, "local BigQuery cannot run queries: %s", s.NoQueries)
	}
	if key.location == "" {
		key.location = s.locate(key.project, config)
	}
	key.location = normalLocation(key.location)
	found := s.catalog(c.principal)
	found.location = key.location
	statement := s.statement(key.project, c.principal, config)
	statement.DryRun = true
	r, err := s.Queries.Run(c.r.Context(), statement, found)
	if err != nil {
		return nil, nil, err
	}
	j := &job{key: key, principal: c.principal, task: config, config: config, created: s.Clock.Now(), done: make(chan struct{})}
	return j, planned(r), nil
}

func (s *Server) getJob(c *call) (any, error) {
	j, err := s.jobs.find(c.project(), c.param("location"), c.r.PathValue("job"))
	if err != nil {
		return nil, err
	}
	r, err := c.jobResource(j)
	if err != nil {
		return nil, err
	}
	return tagged{r.Etag, r}, nil
}

func (s *Server) cancelJob(c *call) (any, error) {
	j, err := s.jobs.find(c.project(), c.param("location"), c.r.PathValue("job"))
	if err != nil {
		return nil, err
	}
	j.cancel(errCancelled)
	r, err := c.jobResource(j)
	return map[string]any{"kind": "bigquery#jobCancelResponse", "job": r}, err
}

func (s *Server) deleteJob(c *call) (any, error) {
	j, err := s.jobs.find(c.project(), c.param("location"), c.r.PathValue("job"))
	if err != nil {
		return nil, err
	}
	if j.state() != "DONE" {
		return nil, refusal.New(refusal.Invalid, "Job %s is still running: cancel it first", j.key)
	}
	return noContent{}, s.jobs.remove(j)
}

func (s *Server) listJobs(c *call) (any, error) {
	if err := c.unsupportedParams("minCreationTime", "maxCreationTime"); err != nil {
		return nil, err
	}
	all, err := c.flag("allUsers")
	if err != nil {
		return nil, err
	}
	var found []*job
	states := c.r.URL.Query()["stateFilter"]
	for _, j := range s.jobs.of(c.project()) {
		switch {
		case !all && j.principal != c.principal, c.param("parentJobId") != "":
		case len(states) > 0 && !oneOf(strings.ToLower(j.state()), states...):
		default:
			found = append(found, j)
		}
	}
	// The newest come first: a key that grows as jobs get older.
	items, next, err := page(c, found, func(j *job) string {
		return strconv.FormatInt(1<<62-j.created.UnixMicro(), 10) + j.key.id
	})
	if err != nil {
		return nil, err
	}
	out := &bqapi.JobList{Kind: "bigquery#jobList", NextPageToken: next}
	for _, j := range items {
		listed, err := listedJob(j, c.param("projection") == "full")
		if err != nil {
			return nil, err
		}
		out.Jobs = append(out.Jobs, listed)
	}
	out.Etag = listTag(out.Jobs)
	return out, nil
}

func listedJob(j *job, full bool) (*bqapi.JobListJobs, error) {
	status := j.status()
	out := &bqapi.JobListJobs{
		Kind: "bigquery#job", Id: j.key.String(), JobReference: j.key.reference(), UserEmail: j.principal,
		State: status.State, Status: status, ErrorResult: status.ErrorResult, Statistics: j.statistics(),
	}
	if !full {
		return out, nil
	}
	var err error
	out.Configuration, err = j.task.resource(j)
	return out, err
}

// defaultWait is how long jobs.query and jobs.getQueryResults wait where the client does not say (BigQuery documentation,
// timeoutMs); maxWait is the longest they do.
const (
	defaultWait = 10 * time.Second
	maxWait     = 200 * time.Second
)

// queryJob is jobs.query: a job and the first page of its result.
func (s *Server) queryJob(c *call) (any, error) {
	var object map[string]json.RawMessage
	if err := c.body(&object); err != nil {
		return nil, err
	}
	if err := requestFields.check(object, "queryRequest"); err != nil {
		return nil, err
	}
	var body bqapi.QueryRequest
	outer := requestFields.keep(object)
	delete(outer, "queryParameters")
	if err := recast(outer, &body); err != nil {
		return nil, err
	}
	config, err := readQuery(object, requestFields)
	if err != nil {
		return nil, err
	}
	config.labels, config.timeoutMs, config.dryRun = body.Labels, body.JobTimeoutMs, body.DryRun
	key := jobKey{project: c.project(), location: body.Location}
	if config.dryRun {
		return s.dryQuery(c, key, config)
	}
	j, err := s.jobs.once(c.r.Context(), requestKey{c.project(), c.principal, body.RequestId}, func() (*job, error) { return s.submit(c, key, config) })
	if err != nil {
		return nil, err
	}
	asked := rowRange{limit: -1}
	if object["maxResults"] != nil {
		asked.limit = body.MaxResults
	}
	if f := body.FormatOptions; f != nil {
		if asked.format, err = formatOf(f.UseInt64Timestamp, f.TimestampOutputFormat); err != nil {
			return nil, err
		}
	}
	return s.answerQuery(c, j, waitOf(body.TimeoutMs, object["timeoutMs"] != nil), asked, "bigquery#queryResponse")
}

func waitOf(ms int64, given bool) time.Duration {
	if !given {
		return defaultWait
	}
	return min(time.Duration(ms)*time.Millisecond, maxWait)
}

func (s *Server) dryQuery(c *call, key jobKey, config *queryConfig) (any, error) {
	j, r, err := s.plan(c, key, config)
	if err != nil {
		return nil, err
	}
	return &queryAnswer{
		Kind: "bigquery#queryResponse", Schema: r.schema, JobReference: &bqapi.JobReference{ProjectId: key.project, Location: j.key.location},
		Location: j.key.location, TotalBytesProcessed: strconv.FormatInt(r.bytes, 10), JobComplete: true, CacheHit: new(false), StatementType: r.statementType(),
	}, nil
}

// queryResults is jobs.getQueryResults: a page of a job's result.
func (s *Server) queryResults(c *call) (any, error) {
	j, err := s.jobs.find(c.project(), c.param("location"), c.r.PathValue("job"))
	if err != nil {
		return nil, err
	}
	asked, err := c.rowRange()
	if err != nil {
		return nil, err
	}
	ms, err := c.number("timeoutMs")
	if err != nil {
		return nil, err
	}
	return s.answerQuery(c, j, waitOf(ms, ms >= 0), asked, "bigquery#getQueryResultsResponse")
}

// answerQuery waits for a job and answers its outcome as far as there is one.
func (s *Server) answerQuery(c *call, j *job, wait time.Duration, asked rowRange, kind string) (any, error) {
	if j.config == nil {
		return nil, refusal.New(refusal.Invalid, "Cannot retrieve query results of job %s, which is no query job", j.key)
	}
	if err := s.jobs.wait(c.r.Context(), j, wait); err != nil {
		return nil, err
	}
	out := &queryAnswer{Kind: kind, JobReference: j.key.reference(), Location: j.key.location}
	r, failed, over := j.over()
	switch {
	case !over:
		return out, nil
	case failed != nil:
		return nil, failed
	}
	out.JobComplete, out.StatementType = true, "SELECT"
	out.TotalBytesBilled = strconv.FormatInt(billed(r.bytes), 10)
	out.CreationTime, out.StartTime, out.EndTime = millis(j.created), millis(j.started), millis(j.ended)
	if r.change != nil {
		r.change.answer(out)
		return out, nil
	}
	if current, err := s.Store.Table(r.into); err != nil {
		return nil, err
	} else if r.table == nil || current.Instance() != r.table.Instance() {
		return nil, refusal.New(refusal.NotFound, "Not found: Table %s", r.into)
	}
	if err := out.page(r, asked); err != nil {
		return nil, err
	}
	out.Etag = strconv.FormatInt(r.version, 36)
	return out, nil
}
