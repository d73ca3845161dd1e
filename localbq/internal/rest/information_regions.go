package rest

import (
	"slices"
	"strconv"
	"strings"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/partition"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// regionView is a view of a project in a location (BigQuery documentation, the page of each view).
type regionView struct {
	columns *schema.Schema
	rows    func(c *catalog, project, location string) ([][]any, error)
}

// regionViews are the views by name: those of query.RegionViews. What this service does not know of a job is NULL: the number of
// the project, slots, reservations, sessions. Columns that would be NULL as a whole and have members are not found by name:
// timeline, job_stages, query_info and those of BI Engine.
var regionViews = map[string]regionView{
	"SCHEMATA": {namedColumns("catalog_name", "schema_name", "schema_owner", "creation_time:TIMESTAMP", "last_modified_time:TIMESTAMP", "location", "ddl", "default_collation_name"),
		func(c *catalog, project, location string) (out [][]any, _ error) {
			for _, d := range c.datasets(project, location) {
				out = append(out, []any{project, d.Ref.Dataset, nil, d.Created, d.Modified, d.Location, nil, textOrNull(d.DefaultCollation)})
			}
			return out, nil
		}},
	"SCHEMATA_OPTIONS": {namedColumns("catalog_name", "schema_name", "option_name", "option_type", "option_value"),
		func(c *catalog, project, location string) (out [][]any, _ error) {
			for _, d := range c.datasets(project, location) {
				for _, o := range schemaOptionsOf(d) {
					out = append(out, []any{project, d.Ref.Dataset, o.name, o.kind, o.value})
				}
			}
			return out, nil
		}},
	"JOBS":            {jobColumns, (*catalog).jobRows},
	"JOBS_BY_PROJECT": {jobColumns, (*catalog).jobRows},
	"JOBS_BY_USER":    {jobColumns, (*catalog).ownJobRows},
}

// datasets are those of a project in a location, but for hidden ones.
func (c *catalog) datasets(project, location string) []*store.Dataset {
	return slices.DeleteFunc(c.server.Store.Datasets(project), func(d *store.Dataset) bool {
		return d.Hidden() || !strings.EqualFold(d.Location, location)
	})
}

func textOrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func schemaOptionsOf(d *store.Dataset) (out []tableOption) {
	add := func(set bool, name, kind, value string) {
		if set {
			out = append(out, tableOption{name, kind, value})
		}
	}
	add(d.DefaultPartitionExpirationMs != 0, "default_partition_expiration_days", "FLOAT64", days(d.DefaultPartitionExpirationMs))
	add(d.DefaultTableExpirationMs != 0, "default_table_expiration_days", "FLOAT64", days(d.DefaultTableExpirationMs))
	add(d.Description != "", "description", "STRING", sqlString(d.Description))
	add(d.FriendlyName != "", "friendly_name", "STRING", sqlString(d.FriendlyName))
	add(len(d.Labels) > 0, "labels", "ARRAY<STRUCT<STRING, STRING>>", sqlLabels(d.Labels))
	add(d.MaxTimeTravelHours != 168, "max_time_travel_hours", "INT64", strconv.FormatInt(d.MaxTimeTravelHours, 10))
	return out
}

// jobColumns are the columns of the views of jobs.
var jobColumns = &schema.Schema{Fields: slices.Concat(
	namedColumns("creation_time:TIMESTAMP", "project_id", "project_number:INT64", "user_email", "job_id", "job_type", "statement_type", "priority",
		"start_time:TIMESTAMP", "end_time:TIMESTAMP", "query", "state", "reservation_id", "total_bytes_processed:INT64", "total_slot_ms:INT64").Fields,
	[]*schema.Field{{Name: "error_result", Type: schema.Struct, Fields: namedColumns("reason", "location", "debug_info", "message").Fields}},
	namedColumns("cache_hit:BOOL").Fields,
	[]*schema.Field{
		{Name: "destination_table", Type: schema.Struct, Fields: tableColumns},
		{Name: "referenced_tables", Type: schema.Struct, Mode: schema.Repeated, Fields: tableColumns},
		{Name: "labels", Type: schema.Struct, Mode: schema.Repeated, Fields: namedColumns("key", "value").Fields},
	},
	namedColumns("total_bytes_billed:INT64", "transaction_id", "parent_job_id").Fields,
	[]*schema.Field{
		{Name: "session_info", Type: schema.Struct, Fields: namedColumns("session_id").Fields},
		{Name: "dml_statistics", Type: schema.Struct, Fields: namedColumns("inserted_row_count:INT64", "deleted_row_count:INT64", "updated_row_count:INT64").Fields},
	},
	namedColumns("total_modified_partitions:INT64", "job_creation_reason").Fields,
)}

var tableColumns = namedColumns("project_id", "dataset_id", "table_id").Fields

func (c *catalog) jobRows(project, location string) ([][]any, error) {
	return c.jobsWhere(project, location, func(*job) bool { return true })
}

func (c *catalog) ownJobRows(project, location string) ([][]any, error) {
	return c.jobsWhere(project, location, func(j *job) bool { return j.principal == c.principal })
}

func (c *catalog) jobsWhere(project, location string, wanted func(*job) bool) (out [][]any, _ error) {
	for _, j := range c.server.jobs.of(project) {
		if j.key.location != location || !wanted(j) {
			continue
		}
		row, err := jobRow(j)
		if err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, nil
}

func jobRow(j *job) ([]any, error) {
	config, err := j.task.resource(j)
	if err != nil {
		return nil, err
	}
	status, figures := j.status(), j.statistics()
	q := figures.Query
	if q == nil {
		q = &bqapi.JobStatistics2{}
	}
	_, _, over := j.over()
	counted := func(n int64) any {
		if !over {
			return nil
		}
		return n
	}
	var text, priority, failed, cacheHit, destination, dml any
	if config.Query != nil {
		text, priority, cacheHit = config.Query.Query, config.Query.Priority, q.CacheHit
	}
	if e := status.ErrorResult; e != nil {
		failed = members{e.Reason, textOrNull(e.Location), nil, e.Message}
	}
	if d := destinationOf(config); d != nil {
		destination = members{d.ProjectId, d.DatasetId, d.TableId}
	}
	if s := q.DmlStats; s != nil {
		dml = members{s.InsertedRowCount, s.DeletedRowCount, s.UpdatedRowCount}
	}
	referenced, labels := []any{}, []any{}
	for _, t := range q.ReferencedTables {
		referenced = append(referenced, members{t.ProjectId, t.DatasetId, t.TableId})
	}
	for key, value := range config.Labels {
		labels = append(labels, members{key, value})
	}
	started, ended := j.times()
	return []any{j.created, j.key.project, nil, j.principal, j.key.id, config.JobType, textOrNull(q.StatementType), priority,
		started, ended, text, status.State, nil, counted(figures.TotalBytesProcessed), nil, failed, cacheHit, destination, referenced, labels,
		counted(q.TotalBytesBilled), nil, nil, nil, dml, nil, "REQUESTED"}, nil
}

// times are when a job started and ended, nil where it has not.
func (j *job) times() (started, ended any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.started.IsZero() {
		started = j.started
	}
	if !j.ended.IsZero() {
		ended = j.ended
	}
	return started, ended
}

func destinationOf(c *bqapi.JobConfiguration) *bqapi.TableReference {
	switch {
	case c.Query != nil:
		return c.Query.DestinationTable
	case c.Load != nil:
		return c.Load.DestinationTable
	case c.Copy != nil:
		return c.Copy.DestinationTable
	}
	return nil
}

// partitionRows are the rows of PARTITIONS about a table: one for each partition that has rows, or one for the table.
func (c *catalog) partitionRows(t *store.Table) (out [][]any) {
	info := t.Info()
	if info.View != nil {
		return nil
	}
	stats := t.Stats()
	layout, ok := partition.Of(info.Definition)
	if !ok {
		return [][]any{{nil, stats.Rows, stats.Bytes, stats.Modified, "ACTIVE"}}
	}
	snapshot, err := t.Query(c.version)
	if err != nil { // it keeps no rows
		return nil
	}
	for _, s := range layout.Shares(t, snapshot) {
		out = append(out, []any{layout.ID(s.Key), s.Rows, s.Bytes, stats.Modified, "ACTIVE"})
	}
	return out
}

// fieldPaths are the rows of COLUMN_FIELD_PATHS about a column or a member of one, and about the members of it.
func fieldPaths(column, path string, f *schema.Field) [][]any {
	out := [][]any{{column, path, dataType(f), textOrNull(f.Description), textOrNull(f.Collation), textOrNull(f.RoundingMode)}}
	for _, m := range f.Fields {
		out = append(out, fieldPaths(column, path+"."+m.Name, m)...)
	}
	return out
}
