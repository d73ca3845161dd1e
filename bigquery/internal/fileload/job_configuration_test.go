package fileload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func TestConfigure(t *testing.T) {
	t.Parallel()
	to, temp := table.Destination{Project: "p", Dataset: "d", Table: "t"}, table.Destination{Project: "p", Dataset: "d", Table: "millrace_tmp_x_p0"}
	columns := &table.Schema{Fields: []table.Field{{Name: "id", Type: table.Int64}}}
	rest := &bqrest.TableSchema{Fields: []*bqrest.TableFieldSchema{{Name: "id", Type: "INTEGER", Mode: "NULLABLE"}}}
	days := table.CreateOptions{Partition: table.Partition{Type: table.PartitionDay, Field: "day", RequireFilter: true}, Cluster: []string{"id"},
		Description: "not for temporary tables"}
	told := JobOptions{Labels: map[string]string{"team": "x"}, KMSKeyName: "projects/k", Timeout: time.Minute, Reservation: "r",
		DecimalTargetTypes: []string{"NUMERIC", "STRING"}, IgnoreUnknownValues: true}
	kms := &bqrest.EncryptionConfiguration{KmsKeyName: "projects/k"}
	both := table.UnionOptions{AllowNewFields: true, AllowFieldRelaxation: true}
	native := []string{"ALLOW_FIELD_ADDITION", "ALLOW_FIELD_RELAXATION"}
	for name, c := range map[string]struct {
		options JobOptions
		update  table.UnionOptions
		job     loadplan.Job
		want    *bqrest.JobConfiguration
	}{
		"FL-83 direct load": {
			job: loadplan.Job{Kind: loadplan.LoadJob, Target: to, Write: loadplan.Append, SchemaUpdates: true, URIs: []string{"gs://b/a.avro"}},
			want: &bqrest.JobConfiguration{Load: &bqrest.JobConfigurationLoad{SourceUris: []string{"gs://b/a.avro"}, SourceFormat: "AVRO", Schema: rest,
				UseAvroLogicalTypes: true, DestinationTable: reference(to), CreateDisposition: "CREATE_NEVER", WriteDisposition: "WRITE_APPEND"}},
		},
		"FL-60 native options of a direct load, and everything that it can be told": {
			options: told, update: both,
			job: loadplan.Job{Kind: loadplan.LoadJob, Target: to, Write: loadplan.Append, SchemaUpdates: true, URIs: []string{"gs://b/a.avro"}},
			want: &bqrest.JobConfiguration{Labels: told.Labels, JobTimeoutMs: 60_000, Reservation: "r",
				Load: &bqrest.JobConfigurationLoad{SourceUris: []string{"gs://b/a.avro"}, SourceFormat: "AVRO", Schema: rest,
					UseAvroLogicalTypes: true, DestinationTable: reference(to), CreateDisposition: "CREATE_NEVER", WriteDisposition: "WRITE_APPEND",
					SchemaUpdateOptions: native, DecimalTargetTypes: told.DecimalTargetTypes, IgnoreUnknownValues: true, DestinationEncryptionConfiguration: kms}},
		},
		"FL-32 Parquet": {
			job: loadplan.Job{Kind: loadplan.LoadJob, Target: to, Write: loadplan.Empty, URIs: []string{"gs://b/a.parquet"}, Format: loadplan.Parquet},
			want: &bqrest.JobConfiguration{Load: &bqrest.JobConfigurationLoad{SourceUris: []string{"gs://b/a.parquet"}, SourceFormat: "PARQUET", Schema: rest,
				ParquetOptions: &bqrest.ParquetOptions{EnableListInference: true}, DestinationTable: reference(to),
				CreateDisposition: "CREATE_NEVER", WriteDisposition: "WRITE_EMPTY"}},
		},
		"load into a temporary table": {
			options: told, update: both,
			job: loadplan.Job{Kind: loadplan.LoadJob, Target: temp, Temp: true, Write: loadplan.Truncate, URIs: []string{"gs://b/a.avro"}},
			want: &bqrest.JobConfiguration{Labels: told.Labels, JobTimeoutMs: 60_000, Reservation: "r",
				Load: &bqrest.JobConfigurationLoad{SourceUris: []string{"gs://b/a.avro"}, SourceFormat: "AVRO", Schema: rest,
					UseAvroLogicalTypes: true, DestinationTable: reference(temp), CreateDisposition: "CREATE_IF_NEEDED", WriteDisposition: "WRITE_TRUNCATE",
					DecimalTargetTypes: told.DecimalTargetTypes, IgnoreUnknownValues: true, DestinationEncryptionConfiguration: kms,
					TimePartitioning: &bqrest.TimePartitioning{Type: "DAY", Field: "day"}, Clustering: &bqrest.Clustering{Fields: []string{"id"}}}},
		},
		"copy": {
			options: told, update: both,
			job: loadplan.Job{Kind: loadplan.CopyJob, Target: to, Write: loadplan.Append, Sources: []table.Destination{temp, temp}},
			want: &bqrest.JobConfiguration{Labels: told.Labels, JobTimeoutMs: 60_000, Reservation: "r",
				Copy: &bqrest.JobConfigurationTableCopy{SourceTables: []*bqrest.TableReference{reference(temp), reference(temp)}, DestinationTable: reference(to),
					CreateDisposition: "CREATE_NEVER", WriteDisposition: "WRITE_APPEND", DestinationEncryptionConfiguration: kms}},
		},
		"query": {
			options: told, update: both,
			job: loadplan.Job{Kind: loadplan.QueryJob, Target: to, Write: loadplan.TruncateData, SchemaUpdates: true, SQL: "SELECT * FROM `x`"},
			want: &bqrest.JobConfiguration{Labels: told.Labels, JobTimeoutMs: 60_000, Reservation: "r",
				Query: &bqrest.JobConfigurationQuery{Query: "SELECT * FROM `x`", UseLegacySql: new(false), Priority: "INTERACTIVE", DestinationTable: reference(to),
					CreateDisposition: "CREATE_NEVER", WriteDisposition: "WRITE_TRUNCATE_DATA", SchemaUpdateOptions: native, DestinationEncryptionConfiguration: kms}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := &Config{Update: c.update, Options: Options{Jobs: c.options}}
			if diff := cmp.Diff(c.want, cfg.configure(&c.job, columns, days), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	ref := jobRef{"p", "US", "j"}
	wrong := &bqrest.ErrorProto{Reason: "invalid", Message: "no"}
	for name, c := range map[string]struct {
		status *bqrest.JobStatus
		want   jobStatus
	}{
		"FL-67 no status":                    {nil, jobStatus{}},
		"FL-70 an error is no verdict":       {&bqrest.JobStatus{State: "RUNNING", ErrorResult: wrong, Errors: []*bqrest.ErrorProto{wrong}}, jobStatus{state: "RUNNING"}},
		"done, with errors that it got over": {&bqrest.JobStatus{State: "DONE", Errors: []*bqrest.ErrorProto{wrong}}, jobStatus{done: true, state: "DONE"}},
		"failed": {&bqrest.JobStatus{State: "DONE", ErrorResult: wrong, Errors: []*bqrest.ErrorProto{wrong, {Reason: "x", Location: "gs://b/o", Message: "more"}}},
			jobStatus{done: true, state: "DONE", failed: &JobError{ID: "j", Project: "p", Location: "US", Reason: "invalid", Message: "no",
				Errors: []JobFault{{Reason: "invalid", Message: "no"}, {Reason: "x", Location: "gs://b/o", Message: "more"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := statusOf(ref, &bqrest.Job{Status: c.status})
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(jobStatus{})); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("text", func(t *testing.T) {
		e := &JobError{ID: "j-r1", Project: "p", Location: "US", Reason: "invalid", Message: "no", Errors: []JobFault{{Message: "no"}, {Message: "line 3 is bad"}}}
		if want := "job j-r1 in p, US failed: invalid: no; line 3 is bad"; e.Error() != want {
			t.Errorf("%q, want %q", e.Error(), want)
		}
	})
}
