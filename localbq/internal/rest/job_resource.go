package rest

import (
	"encoding/json"
	"strconv"
	"strings"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/store"
)

func (k jobKey) reference() *bqapi.JobReference {
	return &bqapi.JobReference{ProjectId: k.project, Location: k.location, JobId: k.id}
}

// jobResource is a job as the API answers it.
func (c *call) jobResource(j *job) (*bqapi.Job, error) {
	r := &bqapi.Job{
		Kind: "bigquery#job", Id: j.key.String(), JobReference: j.key.reference(), UserEmail: j.principal,
		SelfLink: c.link("projects", j.key.project, "jobs", j.key.id) + "?location=" + j.key.location,
		Status:   j.status(), Statistics: j.statistics(),
	}
	var err error
	if r.Configuration, err = j.task.resource(j); err != nil {
		return nil, err
	}
	r.Etag = listTag([]any{r.Id, r.Status, r.Statistics})
	return r, nil
}

// resource is the configuration with what the service has filled in.
func (c *queryConfig) resource(j *job) (*bqapi.JobConfiguration, error) {
	q := *c.JobConfigurationQuery
	q.UseLegacySql, q.ForceSendFields = new(false), []string{"UseLegacySql"}
	if c.raw != nil {
		if err := json.Unmarshal(c.raw, &q.QueryParameters); err != nil {
			return nil, err
		}
	}
	if q.Priority == "" {
		q.Priority = "INTERACTIVE"
	}
	r, _, over := j.over()
	if over && r != nil && r.change != nil && r.change.Target.Table != "" && !strings.HasPrefix(r.change.Kind, "DROP") {
		q.DestinationTable = tableReference(store.TableRef(r.change.Target))
	}
	if over && r != nil && r.into.Table != "" && q.DestinationTable == nil {
		q.DestinationTable = tableReference(r.into)
		q.WriteDisposition, q.CreateDisposition = "WRITE_TRUNCATE", "CREATE_IF_NEEDED"
	}
	return &bqapi.JobConfiguration{
		JobType: "QUERY", Query: &q, Labels: c.labels, JobTimeoutMs: c.timeoutMs, DryRun: c.dryRun,
	}, nil
}

func (j *job) status() *bqapi.JobStatus {
	s := &bqapi.JobStatus{State: j.state()}
	if result, failed, over := j.over(); over && failed != nil {
		s.ErrorResult = errorProto(failed)
		s.Errors = []*bqapi.ErrorProto{s.ErrorResult}
	} else if over && result != nil {
		for _, e := range result.errors {
			s.Errors = append(s.Errors, errorProto(e))
		}
	}
	return s
}

func (j *job) statistics() *bqapi.JobStatistics {
	s := &bqapi.JobStatistics{CreationTime: j.created.UnixMilli()}
	j.mu.Lock()
	if !j.started.IsZero() {
		s.StartTime = j.started.UnixMilli()
	}
	if !j.ended.IsZero() {
		s.EndTime = j.ended.UnixMilli()
	}
	j.mu.Unlock()
	if r, _, over := j.over(); over && r != nil {
		j.task.describe(s, r)
	}
	return s
}

// describe adds a query's figures.
func (c *queryConfig) describe(s *bqapi.JobStatistics, r *jobResult) {
	s.TotalBytesProcessed = r.bytes
	s.ForceSendFields = []string{"TotalBytesProcessed"}
	s.Query = r.statistics()
}

func (c *queryConfig) timeout() int64 { return c.timeoutMs }

func (r *jobResult) statistics() *bqapi.JobStatistics2 {
	s := &bqapi.JobStatistics2{
		CacheHit:      r.cacheHit,
		StatementType: r.statementType(), TotalBytesProcessed: r.bytes, TotalBytesBilled: billed(r.bytes),
		ForceSendFields: []string{"TotalBytesProcessed", "TotalBytesBilled", "CacheHit"},
	}
	if r.change != nil {
		r.change.describe(s)
	}
	for _, t := range r.tables {
		s.ReferencedTables = append(s.ReferencedTables, &bqapi.TableReference{ProjectId: t.Project, DatasetId: t.Dataset, TableId: t.Table})
	}
	return s
}

// dryRunResource is the answer to jobs.insert with dryRun: a job that never was.
func (c *call) dryRunResource(j *job, r *jobResult) (*bqapi.Job, error) {
	j.result = r
	close(j.done)
	out, err := c.jobResource(j)
	if err != nil {
		return nil, err
	}
	out.Id, out.SelfLink, out.JobReference.JobId = "", "", ""
	out.Statistics.Query.Schema = r.schema
	return out, nil
}

// queryAnswer is the answer of jobs.query and of jobs.getQueryResults, which differ in their kinds.
type queryAnswer struct {
	Kind                string               `json:"kind"`
	Etag                string               `json:"etag,omitempty"`
	Schema              *bqapi.TableSchema   `json:"schema,omitempty"`
	JobReference        *bqapi.JobReference  `json:"jobReference,omitempty"`
	Location            string               `json:"location,omitempty"`
	TotalRows           string               `json:"totalRows,omitempty"`
	PageToken           string               `json:"pageToken,omitempty"`
	Rows                json.RawMessage      `json:"rows,omitempty"`
	TotalBytesProcessed string               `json:"totalBytesProcessed,omitempty"`
	TotalBytesBilled    string               `json:"totalBytesBilled,omitempty"`
	JobComplete         bool                 `json:"jobComplete"`
	CacheHit            *bool                `json:"cacheHit,omitempty"`
	StatementType       string               `json:"statementType,omitempty"`
	NumDmlAffectedRows  *int64               `json:"numDmlAffectedRows,omitempty,string"`
	DmlStats            *bqapi.DmlStatistics `json:"dmlStats,omitempty"`
	CreationTime        string               `json:"creationTime,omitempty"`
	StartTime           string               `json:"startTime,omitempty"`
	EndTime             string               `json:"endTime,omitempty"`
}

// page adds rows of a result.
func (a *queryAnswer) page(r *jobResult, asked rowRange) error {
	snapshot, err := r.table.SnapshotVersion(r.version)
	if err != nil {
		return err
	}
	found, err := target{r.table.Ref(), r.partition}.source(r.table, snapshot)
	if err != nil {
		return err
	}
	a.Schema, a.TotalRows = r.schema, strconv.FormatInt(found.rows, 10)
	a.TotalBytesProcessed, a.CacheHit = strconv.FormatInt(r.bytes, 10), new(r.cacheHit)
	rows, n, err := asked.format.appendRows(snapshot.Info.Schema, found.batches, asked.start, asked.limit)
	if err != nil {
		return err
	}
	if n > 0 {
		a.Rows = rows
	}
	// Asked for no rows, BigQuery answers a token all the same.
	if next := asked.start + n; next < found.rows {
		a.PageToken = rowToken(snapshot.Version, next)
	}
	return nil
}
