package rest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/load"
	"github.com/millrace-dev/millrace/localbq/internal/load/csvfile"
	"github.com/millrace-dev/millrace/localbq/internal/objects"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// loadFields are what a load job may carry.
var loadFields = fieldsOf(
	`sourceUris schema destinationTable destinationTableProperties createDisposition writeDisposition nullMarker nullMarkers
	fieldDelimiter skipLeadingRows encoding quote maxBadRecords allowQuotedNewlines sourceFormat allowJaggedRows
	ignoreUnknownValues autodetect schemaUpdateOptions timePartitioning rangePartitioning clustering useAvroLogicalTypes
	decimalTargetTypes parquetOptions preserveAsciiControlCharacters`,
	"schemaInline schemaInlineFormat")

// loadConfig is the configuration of a load job.
type loadConfig struct {
	common
	*bqapi.JobConfigurationLoad
	columns *schema.Schema // asked for; nil is none
	reading load.Config
	upload  *load.Source // the file that came with the job; nil reads sourceUris
}

func readLoad(c common, object map[string]json.RawMessage) (*loadConfig, error) {
	if err := loadFields.check(object, "job.configuration.load"); err != nil {
		return nil, err
	}
	l := &loadConfig{common: c, JobConfigurationLoad: &bqapi.JobConfigurationLoad{}}
	if err := recast(loadFields.keep(object), l.JobConfigurationLoad); err != nil {
		return nil, err
	}
	if l.SourceFormat == "" {
		l.SourceFormat = load.CSV
	}
	if l.WriteDisposition == "" {
		l.WriteDisposition = "WRITE_APPEND"
	}
	if l.CreateDisposition == "" {
		l.CreateDisposition = "CREATE_IF_NEEDED"
	}
	var err error
	if l.columns, err = schema.FromREST(l.Schema); err != nil {
		return nil, err
	}
	if l.columns != nil && len(l.columns.Fields) == 0 {
		l.columns = nil
	}
	if err := l.readOptions(object); err != nil {
		return nil, err
	}
	return l, l.checkFields()
}

// readOptions reads what formats are read by.
func (l *loadConfig) readOptions(object map[string]json.RawMessage) error {
	l.reading = load.Config{
		Format: l.SourceFormat, Schema: l.columns, Autodetect: l.Autodetect, MaxBadRecords: l.MaxBadRecords,
		IgnoreUnknown: l.IgnoreUnknownValues, Logical: l.UseAvroLogicalTypes,
		AddFields:   slices.Contains(l.SchemaUpdateOptions, "ALLOW_FIELD_ADDITION"),
		RelaxFields: slices.Contains(l.SchemaUpdateOptions, "ALLOW_FIELD_RELAXATION"),
		CSV: csvfile.Options{
			Delimiter: l.FieldDelimiter, Skip: l.SkipLeadingRows, NullMarkers: l.NullMarkers, Quote: l.Quote,
			QuotedNewlines: l.AllowQuotedNewlines, Jagged: l.AllowJaggedRows, Latin1: l.Encoding == "ISO-8859-1", ControlCharacters: l.PreserveAsciiControlCharacters,
		},
	}
	if l.NullMarker != "" {
		l.reading.CSV.NullMarkers = append(l.reading.CSV.NullMarkers, l.NullMarker)
	}
	for _, name := range l.DecimalTargetTypes {
		t, ok := schema.ParseType(name)
		if !ok || t != schema.Numeric && t != schema.BigNumeric && t != schema.String {
			return refusal.New(refusal.Invalid, "Invalid value for decimalTargetTypes: %s is not a valid value", name)
		}
		l.reading.Decimals = append(l.reading.Decimals, t)
	}
	if object["parquetOptions"] == nil {
		return nil
	}
	var inner map[string]json.RawMessage
	if err := decode(object["parquetOptions"], &inner); err != nil {
		return err
	}
	if err := fieldsOf("enableListInference enumAsString", "").check(inner, "job.configuration.load.parquetOptions"); err != nil {
		return err
	}
	if p := l.ParquetOptions; p != nil {
		l.reading.ListInference, l.reading.EnumAsString = p.EnableListInference, p.EnumAsString
	}
	return nil
}

// maxURIs is the most sourceUris of a job (BigQuery documentation, "Quotas and limits", "Load jobs").
const maxURIs = 10_000

func (l *loadConfig) checkFields() error {
	if err := checkDestination(l.DestinationTable); err != nil {
		return err
	}
	if err := checkDispositions(l.CreateDisposition, l.WriteDisposition, "WRITE_APPEND", "WRITE_EMPTY", "WRITE_TRUNCATE", "WRITE_TRUNCATE_DATA"); err != nil {
		return err
	}
	switch l.SourceFormat {
	case load.Avro, load.Parquet, load.JSON, load.CSV:
	case "ORC", "DATASTORE_BACKUP":
		return refusal.New(refusal.NotImplemented, "local BigQuery does not implement load jobs of format %s", l.SourceFormat)
	default:
		return refusal.New(refusal.Invalid, "Invalid value for sourceFormat: %s is not a valid value", l.SourceFormat)
	}
	switch {
	case len(l.SourceUris) > maxURIs:
		return refusal.New(refusal.Invalid, "Too many sourceUris: %d, at most %d are allowed", len(l.SourceUris), maxURIs)
	case l.SourceFormat == load.Parquet && l.columns != nil && load.Names(l.columns.Fields, schema.JSON):
		return refusal.New(refusal.Invalid, "Unsupported field type: JSON")
	case !oneOf(l.Encoding, "", "UTF-8", "ISO-8859-1"):
		return refusal.New(refusal.NotImplemented, "local BigQuery does not implement encoding %s of load jobs", l.Encoding)
	case l.MaxBadRecords < 0 || l.SkipLeadingRows < 0:
		return refusal.New(refusal.Invalid, "maxBadRecords and skipLeadingRows must not be negative")
	}
	for _, o := range l.SchemaUpdateOptions {
		if !oneOf(o, "ALLOW_FIELD_ADDITION", "ALLOW_FIELD_RELAXATION") {
			return refusal.New(refusal.Invalid, "Invalid value for schemaUpdateOptions: %s is not a valid value", o)
		}
	}
	if len(l.SchemaUpdateOptions) > 0 && l.replaces() {
		return refusal.New(refusal.Invalid, "Schema update options should only be specified with WRITE_APPEND disposition, or with WRITE_TRUNCATE disposition on a table partition.")
	}
	for _, uri := range l.SourceUris {
		if _, _, err := splitURI(uri); err != nil {
			return err
		}
	}
	if l.columns == nil {
		return nil
	}
	return l.columns.Check()
}

// replaces reports whether the job, if it writes, leaves nothing of the table's schema.
func (l *loadConfig) replaces() bool {
	return oneOf(l.WriteDisposition, "WRITE_EMPTY", "WRITE_TRUNCATE") && !strings.Contains(l.DestinationTable.TableId, "$")
}

// splitURI takes gs://bucket/object apart. The object may have one star.
func splitURI(uri string) (bucket, object string, err error) {
	rest, ok := strings.CutPrefix(uri, "gs://")
	bucket, object, slash := strings.Cut(rest, "/")
	switch {
	case !ok || !slash || bucket == "" || object == "":
		return "", "", refusal.New(refusal.Invalid, "Invalid URI %q: expected gs://bucket/object", uri)
	case strings.Contains(bucket, "*"):
		return "", "", refusal.New(refusal.Invalid, "Wildcards are not supported in the bucket name: %q", uri)
	case strings.Count(object, "*") > 1:
		return "", "", refusal.New(refusal.Invalid, "Only one wildcard is allowed in a URI: %q", uri)
	}
	return bucket, object, nil
}

func (l *loadConfig) tables(project string) []store.TableRef {
	return []store.TableRef{tableRef(l.DestinationTable, project)}
}

// check refuses a new REQUIRED column before there is a job, as BigQuery does (measured by another connector against the
// service, 2026-08).
func (l *loadConfig) check(s *Server, project string) error {
	if l.columns == nil || l.replaces() {
		return nil
	}
	ref := tableRef(l.DestinationTable, project)
	t, err := s.Store.Table(ref)
	if err != nil {
		return nil // the job makes it, or says that it is not there
	}
	if name := load.AddsRequired(t.Info().Schema, l.columns); name != "" {
		return refusal.New(refusal.Invalid, "Provided Schema does not match Table %s. Cannot add required fields to an existing schema. (field: %s)", ref, name)
	}
	return nil
}

func (l *loadConfig) resource(*job) (*bqapi.JobConfiguration, error) {
	out := l.configuration("LOAD")
	out.Load = l.JobConfigurationLoad
	return out, nil
}

func (l *loadConfig) describe(s *bqapi.JobStatistics, r *jobResult) {
	m := r.moved
	s.Load = &bqapi.JobStatistics3{
		InputFiles: m.Files, InputFileBytes: m.FileBytes, OutputRows: m.Rows, OutputBytes: m.Bytes, BadRecords: m.BadRecords,
		ForceSendFields: []string{"InputFiles", "InputFileBytes", "OutputRows", "OutputBytes", "BadRecords"},
	}
}

// run reads the files and writes their rows.
func (l *loadConfig) run(ctx context.Context, s *Server, j *job) (*jobResult, error) {
	sources, err := l.sources(ctx, s, j)
	if err != nil {
		return nil, err
	}
	var out *jobResult
	err = settled(func() error {
		out, err = l.attempt(ctx, s, j, sources)
		return err
	})
	return out, err
}

// sources are the files to read, as listed once.
func (l *loadConfig) sources(ctx context.Context, s *Server, j *job) ([]load.Source, error) {
	if l.upload != nil {
		return []load.Source{*l.upload}, nil
	}
	if s.Objects == nil {
		return nil, refusal.New(refusal.NotImplemented, "local BigQuery has no Cloud Storage here to load from")
	}
	var found []objects.Object
	for _, uri := range l.SourceUris {
		matches, err := s.match(ctx, uri)
		if err != nil {
			return nil, err
		}
		found = append(found, matches...)
	}
	out := make([]load.Source, len(found))
	for i, o := range found {
		out[i] = load.Source{URI: "gs://" + o.Bucket + "/" + o.Name, Size: o.Size, Open: func() (load.File, error) {
			r, err := s.Objects.Open(ctx, o.Bucket, o.Name, o.Generation)
			if refusal.Is(err, refusal.NotFound) {
				return nil, refusal.New(refusal.NotFound, "Not found: URI gs://%s/%s", o.Bucket, o.Name)
			}
			return r, err
		}}
	}
	if s.Reads != nil {
		s.Reads(j.key.String(), found)
	}
	return out, nil
}

// match is the objects that a URI names.
func (s *Server) match(ctx context.Context, uri string) ([]objects.Object, error) {
	bucket, pattern, err := splitURI(uri)
	if err != nil {
		return nil, err
	}
	prefix, suffix, star := strings.Cut(pattern, "*")
	listed, err := s.Objects.List(ctx, bucket, prefix)
	if err != nil && !refusal.Is(err, refusal.NotFound) {
		return nil, err
	}
	listed = slices.DeleteFunc(listed, func(o objects.Object) bool {
		if !star {
			return o.Name != pattern
		}
		return len(o.Name) < len(prefix)+len(suffix) || !strings.HasSuffix(o.Name, suffix)
	})
	if len(listed) == 0 {
		return nil, refusal.New(refusal.NotFound, "Not found: URI %s", uri)
	}
	return listed, nil
}

// attempt reads the files for the table as it is now, and writes it if it is so still.
func (l *loadConfig) attempt(ctx context.Context, s *Server, j *job, sources []load.Source) (*jobResult, error) {
	to := targetOf(l.DestinationTable, j.key.project)
	ref := to.ref
	t, err := s.destination(j, to, l.CreateDisposition, l.WriteDisposition)
	if err != nil {
		return nil, err
	}
	c := l.reading
	c.Table, c.Now = ref.String(), s.Clock.Now()
	var info *store.Info // what the files are read for, and what the table must still be when they are written
	if t != nil {
		info = t.Info()
		c.Existing = info.Schema
		if l.WriteDisposition == "WRITE_TRUNCATE" && l.replaces() && (c.Schema != nil || c.Autodetect || oneOf(c.Format, load.Avro, load.Parquet)) {
			c.Existing = nil
		}
	}
	read, err := load.Run(ctx, c, sources)
	if err != nil {
		return nil, err
	}
	out := &jobResult{errors: read.Errors, moved: moved{
		Files: int64(len(sources)), FileBytes: read.Bytes, Rows: read.Rows, BadRecords: read.Bad, Bytes: store.BatchBytes(read.Schema, read.Batches),
	}}
	rows := store.Rows{Batches: read.Batches, Truncate: strings.HasPrefix(l.WriteDisposition, "WRITE_TRUNCATE"), Empty: l.WriteDisposition == "WRITE_EMPTY"}
	if t != nil {
		l.shape(info, read.Schema, &rows)
	} else {
		rows.Definition = l.definition(read.Schema)
	}
	if err := to.place(t, &rows); err != nil {
		return nil, err
	}
	if t == nil {
		return out, s.create(j, ref, rows, out)
	}
	return out, s.write(j, t, rows, out)
}

// shape gives rows the definition that the table has afterwards.
func (l *loadConfig) shape(info *store.Info, columns *schema.Schema, rows *store.Rows) {
	rows.Info, rows.Since = info, info
	if columns == info.Schema {
		return
	}
	if l.WriteDisposition != "WRITE_TRUNCATE" || !l.replaces() {
		rows.Definition = info.Definition.Clone()
		rows.Definition.Schema = columns
		return
	}
	// The table keeps what is no part of its schema and not said anew.
	d := l.definition(columns)
	if d.Partition == nil && d.Ranges == nil {
		d.Partition, d.Ranges, d.RequirePartitionFilter = info.Partition, info.Ranges, info.RequirePartitionFilter
	}
	if d.Clustering == nil {
		d.Clustering = info.Clustering
	}
	d.ExpirationMs = info.ExpirationMs
	rows.Definition = d
}

// definition is that of a table that the job makes.
func (l *loadConfig) definition(columns *schema.Schema) *schema.Definition {
	d, err := definition(&bqapi.Table{TimePartitioning: l.TimePartitioning, RangePartitioning: l.RangePartitioning, Clustering: l.Clustering})
	if err != nil {
		panic(err) // only a schema or a view can be wrong
	}
	d.Schema = columns
	if p := l.DestinationTableProperties; p != nil {
		d.Description, d.FriendlyName, d.Labels, d.ExpirationMs = p.Description, p.FriendlyName, p.Labels, 0
	}
	return d
}
