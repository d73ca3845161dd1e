package fileload

import (
	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// configure says what a job of the plan does. Of a load job, columns is the schema it is told, and layout how a temporary table is laid
// out: as the one that its rows go to, which a copy asks for.
func (c *Config) configure(job *loadplan.Job, columns *table.Schema, layout table.CreateOptions) *bqrest.JobConfiguration {
	o := &c.Options.Jobs
	out := &bqrest.JobConfiguration{Labels: o.Labels, JobTimeoutMs: o.Timeout.Milliseconds(), Reservation: o.Reservation}
	switch job.Kind {
	case loadplan.LoadJob:
		out.Load = c.load(job, columns, layout)
	case loadplan.CopyJob:
		out.Copy = &bqrest.JobConfigurationTableCopy{
			SourceTables: references(job.Sources), DestinationTable: reference(job.Target),
			CreateDisposition: job.Create(), WriteDisposition: job.Write.String(), DestinationEncryptionConfiguration: o.encryption(),
		}
	case loadplan.QueryJob:
		out.Query = &bqrest.JobConfigurationQuery{
			Query: job.SQL, UseLegacySql: new(false), Priority: "INTERACTIVE", DestinationTable: reference(job.Target),
			CreateDisposition: job.Create(), WriteDisposition: job.Write.String(), SchemaUpdateOptions: c.schemaUpdates(job),
			DestinationEncryptionConfiguration: o.encryption(),
		}
	}
	return out
}

func (c *Config) load(job *loadplan.Job, columns *table.Schema, layout table.CreateOptions) *bqrest.JobConfigurationLoad {
	told := c.Options.told(job.Format, columns)
	out := &bqrest.JobConfigurationLoad{
		SourceUris: job.URIs, SourceFormat: told.SourceFormat, Schema: tableadmin.ToREST(told.Schema),
		UseAvroLogicalTypes: told.UseAvroLogicalTypes,
		DestinationTable:    reference(job.Target), CreateDisposition: job.Create(), WriteDisposition: job.Write.String(),
		SchemaUpdateOptions: c.schemaUpdates(job),
		DecimalTargetTypes:  c.Options.Jobs.DecimalTargetTypes, IgnoreUnknownValues: c.Options.Jobs.IgnoreUnknownValues,
		DestinationEncryptionConfiguration: c.Options.Jobs.encryption(),
	}
	if told.EnableListInference {
		out.ParquetOptions = &bqrest.ParquetOptions{EnableListInference: true}
	}
	if csv := told.CSV; csv != nil {
		out.FieldDelimiter, out.Encoding, out.NullMarker, out.Quote = csv.FieldDelimiter, csv.Encoding, csv.NullMarker, csv.Quote
		out.SkipLeadingRows, out.AllowQuotedNewlines, out.AllowJaggedRows = csv.SkipLeadingRows, csv.AllowQuotedNewlines, csv.AllowJaggedRows
		out.PreserveAsciiControlCharacters = csv.PreserveASCIIControlCharacters
	}
	if job.Temp {
		out.TimePartitioning, out.RangePartitioning, out.Clustering = tableadmin.Layout(layout)
	}
	return out
}

// told is what a load job is told about files of a format. Only who writes files in a format of their own knows that of theirs.
func (o *Options) told(f loadplan.Format, columns *table.Schema) staging.Load {
	if f == loadplan.Custom {
		return o.Custom.Load(columns)
	}
	return staging.LoadOf(f, columns)
}

func (c *Config) schemaUpdates(job *loadplan.Job) (options []string) {
	if job.SchemaUpdates && c.Update.AllowNewFields {
		options = append(options, "ALLOW_FIELD_ADDITION")
	}
	if job.SchemaUpdates && c.Update.AllowFieldRelaxation {
		options = append(options, "ALLOW_FIELD_RELAXATION")
	}
	return options
}

func (o *JobOptions) encryption() *bqrest.EncryptionConfiguration {
	if o.KMSKeyName == "" {
		return nil
	}
	return &bqrest.EncryptionConfiguration{KmsKeyName: o.KMSKeyName}
}

func reference(t table.Destination) *bqrest.TableReference {
	return &bqrest.TableReference{ProjectId: t.Project, DatasetId: t.Dataset, TableId: t.Table}
}

func references(ts []table.Destination) []*bqrest.TableReference {
	out := make([]*bqrest.TableReference, len(ts))
	for i := range ts {
		out[i] = reference(ts[i])
	}
	return out
}
