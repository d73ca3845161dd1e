package rest

import (
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/export"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

var extractFields = fieldsOf("sourceTable destinationUri destinationUris destinationFormat compression fieldDelimiter printHeader useAvroLogicalTypes", "")

// extractConfig is the configuration of an extract job.
type extractConfig struct {
	common
	*bqapi.JobConfigurationExtract
	options export.Options
}

func readExtract(c common, object map[string]json.RawMessage) (*extractConfig, error) {
	if err := extractFields.check(object, "job.configuration.extract"); err != nil {
		return nil, err
	}
	e := &extractConfig{common: c, JobConfigurationExtract: &bqapi.JobConfigurationExtract{}}
	if err := recast(extractFields.keep(object), e.JobConfigurationExtract); err != nil {
		return nil, err
	}
	if e.DestinationFormat == "" {
		e.DestinationFormat = export.CSV
	}
	if e.Compression == "" {
		e.Compression = "NONE"
	}
	e.options = export.Options{
		Format: e.DestinationFormat, Compression: e.Compression, Delimiter: e.FieldDelimiter, Logical: e.UseAvroLogicalTypes,
		NoHeader: e.PrintHeader != nil && !*e.PrintHeader,
	}
	return e, e.checkFields()
}

func (e *extractConfig) uris() []string {
	if e.DestinationUri != "" {
		return append([]string{e.DestinationUri}, e.DestinationUris...)
	}
	return e.DestinationUris
}

func (e *extractConfig) checkFields() error {
	if err := checkTable(e.SourceTable, "sourceTable"); err != nil {
		return err
	}
	if err := e.options.Check(); err != nil {
		return refusal.New(refusal.Invalid, "%v", err)
	}
	if len(e.uris()) == 0 {
		return refusal.New(refusal.Required, "Required parameter is missing: destinationUris")
	}
	for _, uri := range e.uris() {
		if _, _, err := splitURI(uri); err != nil {
			return err
		}
	}
	return nil
}

func (e *extractConfig) check(s *Server, _ string) error {
	if s.Objects == nil {
		return refusal.New(refusal.NotImplemented, "local BigQuery has no Cloud Storage here to extract to")
	}
	return nil
}

func (e *extractConfig) tables(project string) []store.TableRef {
	return []store.TableRef{tableRef(e.SourceTable, project)}
}

func (e *extractConfig) resource(*job) (*bqapi.JobConfiguration, error) {
	out := e.configuration("EXTRACT")
	out.Extract = e.JobConfigurationExtract
	return out, nil
}

func (e *extractConfig) describe(s *bqapi.JobStatistics, r *jobResult) {
	s.TotalBytesProcessed = r.moved.Bytes
	s.Extract = &bqapi.JobStatistics4{DestinationUriFileCounts: r.moved.Counts, InputBytes: r.moved.Bytes, ForceSendFields: []string{"InputBytes"}}
}

// run writes the table as it is at the start. Several URIs share its rows. A job that is run again after its process was killed
// writes the same objects anew.
func (e *extractConfig) run(ctx context.Context, s *Server, j *job) (*jobResult, error) {
	from, err := s.source(j, e.SourceTable, s.Store.Version())
	if err != nil {
		return nil, err
	}
	if err := e.options.CheckColumns(from.info.Schema); err != nil {
		return nil, refusal.New(refusal.Invalid, "%v", err)
	}
	if err := e.faithful(from.info.Schema.Fields); err != nil {
		return nil, err
	}
	out := &jobResult{moved: moved{Rows: from.rows, Bytes: store.BatchBytes(from.info.Schema, from.batches)}}
	for range e.uris() {
		out.moved.Counts = append(out.moved.Counts, 1)
	}
	return out, e.writeAll(ctx, s, from.info.Schema, from.batches, from.rows)
}

// writeAll writes all files before any of them appears, or none.
func (e *extractConfig) writeAll(ctx context.Context, s *Server, columns *schema.Schema, batches []arrow.RecordBatch, rows int64) error {
	writing, abandon := context.WithCancelCause(ctx)
	defer abandon(nil)
	var files []io.Closer
	var failed error
	n := int64(len(e.uris()))
	for i, uri := range e.uris() {
		w, err := e.write(writing, s, uri, columns, between(batches, rows*int64(i)/n, rows*int64(i+1)/n))
		if w != nil {
			files = append(files, w)
		}
		if err != nil {
			failed = err
			abandon(err) // what is closed now does not appear
			break
		}
	}
	for _, w := range files {
		if err := w.Close(); failed == nil {
			failed = err
		}
	}
	return failed
}

// faithful refuses Avro without logical types where a column needs one: BigQuery then writes something else.
func (e *extractConfig) faithful(fields []*schema.Field) error {
	if e.options.Format != export.Avro || e.options.Logical {
		return nil
	}
	for _, t := range []schema.Type{schema.Date, schema.Time, schema.DateTime, schema.Timestamp} {
		for _, f := range fields {
			if f.Type == t {
				return refusal.New(refusal.NotImplemented, "local BigQuery does not implement extract jobs of %s columns to AVRO without useAvroLogicalTypes (field: %s)", t, f.Name)
			}
		}
	}
	for _, f := range fields {
		if err := e.faithful(f.Fields); err != nil {
			return err
		}
	}
	return nil
}

// write begins an object, which its Close makes visible. A star stands for the number of the file.
func (e *extractConfig) write(ctx context.Context, s *Server, uri string, columns *schema.Schema, rows []arrow.RecordBatch) (io.Closer, error) {
	bucket, name, err := splitURI(uri)
	if err != nil {
		return nil, err
	}
	w, err := s.Objects.Create(ctx, bucket, strings.Replace(name, "*", "000000000000", 1))
	if refusal.Is(err, refusal.NotFound) {
		return nil, refusal.New(refusal.NotFound, "Not found: URI %s", uri)
	}
	if err != nil {
		return nil, err
	}
	return w, export.Write(w, columns, rows, e.options)
}

// between is the rows from first to before end.
func between(batches []arrow.RecordBatch, first, end int64) []arrow.RecordBatch {
	var out []arrow.RecordBatch
	at := int64(0)
	for _, b := range batches {
		from, to := max(first-at, 0), min(end-at, b.NumRows())
		if from < to {
			out = append(out, b.NewSlice(from, to))
		}
		at += b.NumRows()
	}
	return out
}
