package job

import (
	"errors"
	"fmt"
	"strconv"
	"sync"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/arrowrow"
	"github.com/millrace-dev/millrace/bigquery/row/csvrow"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/files"
	"github.com/millrace-dev/millrace/files/parquetfile"
)

// format is what a job does differently for each format of its files. Schemas are those of jsonrow for all of them: a schema,
// and what records call its columns.
type format interface {
	// source completes the options of the source.
	source(o *files.Options)
	// field appends the text of a record's field, which the record is routed by.
	field(buf []byte, r files.Record, name string) ([]byte, error)
	// rows makes the serializer. Fields without a column are dropped where ignore says so.
	rows(schemas jsonrow.Schemas, ignore bool) (row.Serializer[files.Record], error)
	// inference begins to learn the columns of one table.
	inference(s Schema) (inference, error)
}

// inference learns what the columns of one table are.
type inference interface {
	// add learns from a record. Errors that learnable says are the record's own are left to the job.
	add(r files.Record) error
	schema() (*jsonrow.Inferred, error)
}

func (f *Files) format() format {
	switch f.Format {
	case "avro":
		return avroFormat{}
	case "csv":
		return csvFormat{f.CSV.options(), f.CSV.fileOptions()}
	case "parquet":
		return parquetFormat{}
	case "protobuf":
		return protobufFormat{}
	}
	return ndjsonFormat{}
}

type ndjsonFormat struct{}

func (ndjsonFormat) source(*files.Options) {}

func (ndjsonFormat) field(buf []byte, r files.Record, name string) ([]byte, error) {
	return jsonrow.AppendField(buf, r.Bytes, name)
}

func (ndjsonFormat) rows(schemas jsonrow.Schemas, ignore bool) (row.Serializer[files.Record], error) {
	return jsonrow.New(func(r files.Record) []byte { return r.Bytes }, schemas, jsonrow.Options{IgnoreUnknownFields: ignore})
}

func (ndjsonFormat) inference(s Schema) (inference, error) {
	return jsonInference{jsonrow.NewInference(jsonrow.InferOptions{Rest: s.Rest, TimesAsStrings: s.Infer.Text, JSONPaths: s.Infer.JSON})}, nil
}

type jsonInference struct{ *jsonrow.Inference }

func (i jsonInference) add(r files.Record) error           { return i.Add(r.Bytes) }
func (i jsonInference) schema() (*jsonrow.Inferred, error) { return i.Schema() }

// avroFormat differs in the source only: whole files go to one table, and Pipeline.avroRows makes their rows.
type avroFormat struct{ ndjsonFormat }

func (avroFormat) source(o *files.Options) { o.Format = files.Avro }

type csvFormat struct {
	cells csvrow.Options
	file  files.CSVOptions
}

// options are the options of cells, as far as they are sound.
func (c *CSV) options() csvrow.Options {
	if c == nil {
		return csvrow.Options{}
	}
	return csvrow.Options{
		Delimiter: character(c.Delimiter), Quote: character(c.Quote), NoQuotes: c.NoQuotes,
		NullMarkers: c.NullMarkers, AllowJaggedRows: c.AllowJaggedRows, TimestampNumbers: timestampNumbers[c.TimestampNumbers],
	}
}

func (c *CSV) fileOptions() files.CSVOptions {
	if c == nil {
		return files.CSVOptions{}
	}
	return files.CSVOptions{Delimiter: character(c.Delimiter), Quote: character(c.Quote), NoQuotes: c.NoQuotes, NoHeader: c.NoHeader, SkipRows: c.SkipRows}
}

// character is the one character of a text, 0 for the default.
func character(s string) byte {
	if s == "" {
		return 0
	}
	return s[0]
}

var timestampNumbers = map[string]csvrow.TimestampNumbers{
	"": csvrow.RejectNumbers, "reject": csvrow.RejectNumbers, "seconds": csvrow.Seconds, "millis": csvrow.Millis, "micros": csvrow.Micros,
}

func (f csvFormat) source(o *files.Options) { o.Format, o.CSV = files.CSV, f.file }

func (f csvFormat) field(buf []byte, r files.Record, name string) ([]byte, error) {
	if r.Header == nil {
		return buf, errors.New("a file without a header has no names that a table could be found by")
	}
	return csvrow.AppendField(buf, r.Header, r.Bytes, name, f.cells)
}

func (f csvFormat) rows(schemas jsonrow.Schemas, ignore bool) (row.Serializer[files.Record], error) {
	o := f.cells
	o.IgnoreUnknown = ignore
	read := func(r files.Record) (header, record []byte) { return r.Header, r.Bytes }
	return csvrow.New(read, csvrow.PerDestination(func(dst table.Destination) (*csvrow.Mapping, error) {
		m, err := schemas.Mapping(dst)
		if err != nil {
			return nil, err
		}
		out := csvrow.Fixed(m.Schema)
		if m.Keys != nil {
			out.Names = m.Keys.Names
		}
		return out, nil
	}), o)
}

func (f csvFormat) inference(Schema) (inference, error) {
	inf, err := csvrow.NewInference(f.cells)
	return csvInference{inf}, err
}

type csvInference struct{ *csvrow.Inference }

func (i csvInference) add(r files.Record) error {
	err := i.Add(r.Header, r.Bytes)
	if err != nil {
		err = inHeader(err, r)
	}
	return err
}

func (i csvInference) schema() (*jsonrow.Inferred, error) {
	m, err := i.Schema()
	if err != nil {
		return nil, err
	}
	out := &jsonrow.Inferred{Mapping: &jsonrow.Mapping{Schema: m.Schema}, Documents: i.Records()}
	if m.Names == nil {
		return out, nil
	}
	out.Mapping.Keys = &jsonrow.Keys{Names: m.Names}
	for k, f := range m.Schema.Fields {
		if name := m.Names[k]; name != f.Name {
			out.Choices = append(out.Choices, jsonrow.Choice{Path: name, Decision: jsonrow.Renamed, Column: f.Name, Type: f.Type,
				Why: "the cell " + strconv.Itoa(k+1) + " of the header is no name that every write method takes, or names a column before"})
		}
	}
	return out, nil
}

type parquetFormat struct{}

func (parquetFormat) source(o *files.Options) {
	o.Format, o.Container = files.Parquet, parquetfile.Open
}

// arrowRow is the row that a record of a Parquet file is.
func arrowRow(r files.Record) arrowrow.Row {
	b, _ := r.Batch.(*arrowrow.Batch)
	return arrowrow.Row{Batch: b, Index: r.Index}
}

func (parquetFormat) field(buf []byte, r files.Record, name string) ([]byte, error) {
	return arrowrow.AppendField(buf, arrowRow(r), name)
}

func (parquetFormat) rows(schemas jsonrow.Schemas, ignore bool) (row.Serializer[files.Record], error) {
	return &parquetRows{schemas: schemas, ignore: ignore, known: map[table.Destination]*arrowrow.Serializer{}}, nil
}

func (parquetFormat) inference(s Schema) (inference, error) {
	return &arrowInference{options: arrowrow.Options{JSON: s.Infer.JSON, Geography: s.Infer.Geography, DeriveRequired: s.Infer.Required}}, nil
}

// parquetRows makes rows of the rows of Parquet files, whose schema the first record of a table tells.
type parquetRows struct {
	schemas jsonrow.Schemas
	ignore  bool

	mu    sync.RWMutex // guards known
	known map[table.Destination]*arrowrow.Serializer
}

func (p *parquetRows) Schema(dst table.Destination) (*table.Schema, error) {
	m, err := p.schemas.Mapping(dst)
	if err != nil {
		return nil, err
	}
	return m.Schema, nil
}

func (p *parquetRows) Descriptor(dst table.Destination) (*descriptorpb.DescriptorProto, error) {
	s, err := p.Schema(dst)
	if err != nil {
		return nil, err
	}
	return row.Descriptor(s)
}

func (p *parquetRows) Fingerprint(table.Destination) uint64 { return 0 }

func (p *parquetRows) AppendRow(buf []byte, dst table.Destination, r files.Record) ([]byte, error) {
	rec := arrowRow(r)
	s, err := p.of(dst, rec)
	if err != nil {
		return buf, err
	}
	return s.AppendRow(buf, dst, rec)
}

// Columns answers the batch of a record where it can go as it is. What is wrong with its columns AppendRow tells.
func (p *parquetRows) Columns(dst table.Destination, r files.Record) (row.Columns, int) {
	rec := arrowRow(r)
	s, err := p.of(dst, rec)
	if err != nil {
		return nil, 0
	}
	return s.Columns(dst, rec)
}

// Unpack makes rows of a batch that went as it was.
func (p *parquetRows) Unpack(dst table.Destination, schema, batch []byte, each func(row []byte, err error) error) error {
	s := p.get(dst)
	if s == nil {
		return fmt.Errorf("no batch for %s has been met", dst)
	}
	return s.Unpack(dst, schema, batch, each)
}

func (p *parquetRows) get(dst table.Destination) *arrowrow.Serializer {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.known[dst]
}

// of is the serializer of a table, which the first record tells.
func (p *parquetRows) of(dst table.Destination, rec arrowrow.Row) (*arrowrow.Serializer, error) {
	if s := p.get(dst); s != nil {
		return s, nil
	}
	return p.learn(dst, rec)
}

func (p *parquetRows) learn(dst table.Destination, rec arrowrow.Row) (*arrowrow.Serializer, error) {
	t, err := p.Schema(dst)
	if err != nil {
		return nil, err
	}
	s, err := arrowrow.New(rec.Batch.Schema(), arrowrow.Options{Schema: t, IgnoreUnknownFields: p.ignore})
	if err != nil {
		return nil, fmt.Errorf("columns of the file and of %s: %w", dst, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := p.known[dst]; first != nil { // another lane was faster
		return first, nil
	}
	p.known[dst] = s
	return s, nil
}

// arrowInference takes the schema of the first batch.
type arrowInference struct {
	options arrowrow.Options
	columns *table.Schema
	n       int
}

func (i *arrowInference) add(r files.Record) (err error) {
	if i.columns == nil {
		i.columns, err = arrowrow.SchemaOf(arrowRow(r).Batch.Schema(), i.options)
	}
	i.n++
	return err
}

func (i *arrowInference) schema() (*jsonrow.Inferred, error) {
	return &jsonrow.Inferred{Mapping: &jsonrow.Mapping{Schema: i.columns}, Documents: i.n}, nil
}
