package job

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/copyrow"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/files"
)

// input is what is read.
func (r *Read) input() (bigquery.Input, error) {
	if r.Query != "" {
		return bigquery.FromQuery(r.ParentProject, r.Query), nil
	}
	dst, err := table.ParseDestination(r.Table)
	return bigquery.FromTable(dst), err
}

// options are the options of the source, but for its connection.
func (r *Read) options() bigquery.SourceOptions {
	o := bigquery.SourceOptions{
		ParentProject: r.ParentProject, MaterializeViews: r.MaterializeViews,
		QueryLocation: r.QueryLocation, QueryResultDataset: r.QueryResultDataset, QueryResultProject: r.QueryResultProject,
		QueryResultExpiration: r.QueryResultExpiration, ReuseQueryResultWithin: r.ReuseQueryResultWithin,
		SelectedFields: r.SelectedFields, RowRestriction: r.RowRestriction, Partitions: r.Partitions, SnapshotTime: r.SnapshotTime,
		SamplePercentage: r.SamplePercentage, Limit: r.Limit,
		MaxStreamCount: r.MaxStreamCount, PreferredMinStreamCount: r.PreferredMinStreamCount, StreamsPerLane: r.StreamsPerLane,
		CompressResponses: r.CompressResponses, TraceID: r.TraceID, CreateSessionTimeout: r.CreateSessionTimeout,
		MaxRecordsPerFetch: r.MaxRecordsPerFetch, MaxBytesPerFetch: int(r.MaxBytesPerFetch), FetchQueue: r.FetchQueue,
		RetryMaxAttempts: r.RetryMaxAttempts, StallTimeout: r.StallTimeout,
	}
	if r.QueryPriority == "batch" {
		o.QueryPriority = bigquery.QueryBatch
	}
	for _, p := range r.QueryParameters {
		o.QueryParameters = append(o.QueryParameters, bigquery.QueryParameter(p))
	}
	return o
}

// SourceConnection is how the job reaches what it reads, where that is BigQuery.
func (p *Parsed) SourceConnection(s Surroundings) bigquery.Connection {
	r := p.Source.BigQuery
	if s.Connection != nil || r.Connection == nil {
		return p.Connection(s)
	}
	c := r.Connection.options()
	if c.KeyFile != "" {
		c.KeyFile = p.path(c.KeyFile)
	}
	return c
}

// Reads is the table that the job reads, if it reads one.
func (p *Parsed) Reads() (table.Destination, bool) {
	if p.Source.BigQuery == nil || p.Source.BigQuery.Table == "" {
		return table.Destination{}, false
	}
	dst, err := table.ParseDestination(p.Source.BigQuery.Table)
	return dst, err == nil
}

var sourceOption = func() *regexp.Regexp {
	var names []string
	for f := range reflect.TypeFor[bigquery.SourceOptions]().Fields() {
		names = append(names, f.Name)
	}
	return regexp.MustCompile(`\b(` + strings.Join(names, "|") + `)\b`)
}()

const readKey = "source.bigquery"

// read checks what is read from BigQuery.
func (c checker) read(f *File) {
	r := f.Source.BigQuery
	if !c.one(readKey, "table", "query") {
		return
	}
	switch {
	case !c.sound(readKey):
		return
	case c.there(readKey+".table") && strings.ContainsAny(r.Table, "{}"):
		c.fault(readKey+".table", "%q has placeholders: expected one table", r.Table)
		return
	case c.there(readKey+".query") && strings.TrimSpace(r.Query) == "":
		c.fault(readKey+".query", "is blank: expected a query")
		return
	case r.Query != "" && r.ParentProject == "":
		c.fault(readKey, "has a query, and no parentProject, which runs and pays for it: add it")
		return
	}
	c.setZero(readKey, *r)
	in, err := r.input()
	if err != nil {
		c.fault(readKey+".table", "%v", err)
		return
	}
	o := r.options()
	if r.Connection != nil {
		o.Connection = r.Connection.options()
	}
	if err := o.Validate(in); err != nil && c.sound(readKey) {
		for line := range strings.Lines(err.Error()) {
			at, msg := sourceFault(line)
			c.fault(at, "%s", msg)
		}
	}
	c.copied(f)
}

// sourceFault is a fault of the source's options in the words of the job file.
func sourceFault(line string) (key, msg string) {
	msg = sourceOption.ReplaceAllStringFunc(strings.TrimSpace(line), func(name string) string { return readKey + "." + keyOf(name) })
	msg = connectionOption.ReplaceAllStringFunc(msg, func(name string) string { return readKey + ".connection." + keyOf(name) })
	first, rest, _ := strings.Cut(msg, " ")
	if !strings.HasPrefix(first, readKey) {
		return readKey, msg
	}
	key, index, indexed := strings.Cut(first, "[")
	if indexed {
		rest = "[" + index + " " + rest
	}
	return key, rest
}

var connectionOption = regexp.MustCompile(`^(GRPCEndpoint|RESTEndpoint|KeyFile|QuotaProject)\b`)

// copied checks what goes with rows of BigQuery, which tell their columns, and what does not.
func (c checker) copied(f *File) {
	const schema = "sink.bigquery.schema"
	b := f.Sink.BigQuery
	if b == nil {
		return
	}
	const who = "rows of BigQuery, which tell their columns"
	c.told(who)
	for _, key := range []string{".infer.json", ".infer.geography", ".infer.required"} {
		if c.there(schema + key) {
			c.fault(schema+key, "means nothing for %s", who)
		}
	}
	if at := "sink.bigquery.defaultStream.arrowBatches"; c.there(at) {
		c.fault(at, "needs Parquet files, whose rows are read in Arrow batches")
	}
	if b.Schema.Table && strings.ContainsAny(b.Table, "{}") && c.sound("sink.bigquery.table") {
		c.fault(schema+".table", "has the columns of one table, and the name of the sink's has placeholders: use infer, for the columns of what is read")
	}
	if from, err := table.ParseDestination(f.Source.BigQuery.Table); err == nil && from.String() == b.Table {
		c.fault("sink.bigquery.table", "is the table that is read: name another")
	}
}

// placeholders are the names in a pattern, each once.
func placeholders(pattern string) (names []string) {
	for _, m := range placeholder.FindAllStringSubmatch(pattern, -1) {
		if !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

var placeholder = regexp.MustCompile(`\{([^{}]*)\}`)

// copyFormat is that of rows read from BigQuery: the Bytes of a record are the row as it is written, and its Header the texts
// that it is routed by.
type copyFormat struct {
	ndjsonFormat
	routes []string
}

func (f copyFormat) field(buf []byte, r files.Record, name string) ([]byte, error) {
	rest := r.Header
	for _, route := range f.routes {
		n, size := binary.Uvarint(rest)
		if size <= 0 {
			break
		}
		rest = rest[size:]
		missing := n == 0
		n = max(n, 1) - 1
		if route == name && missing {
			return buf, errRoute
		}
		if route == name {
			return append(buf, rest[:n]...), nil
		}
		rest = rest[n:]
	}
	return buf, errRoute
}

var errRoute = errors.New("there is no value, or one that is neither text nor a whole number, a boolean or a date, and the row is routed by it")

// copied makes records of rows that are read, and rows of those.
type copied struct {
	encoder *copyrow.Encoder
	routes  []string
	json    *jsonrow.Writer
	back    *row.Decoder
	chunks  sync.Pool // *[]byte with room, of which each record takes a part for good
}

func newCopied(target *table.Schema, ignore bool, routes []string) (*copied, error) {
	e, err := copyrow.New(target, copyrow.Options{IgnoreUnknown: ignore})
	if err != nil {
		return nil, err
	}
	back, err := row.NewDecoder(target)
	if err != nil {
		return nil, err
	}
	return &copied{encoder: e, routes: routes, json: jsonrow.NewWriter(jsonrow.WriteOptions{}), back: back}, nil
}

const chunkBytes = 64 << 10

// Deserialize makes the record of a row. One that cannot be written is a record with that error: the failure policy decides
// about it, and a dead letter holds it as JSON.
func (c *copied) Deserialize(r *row.Row, emit func(files.Record) error) error {
	chunk, _ := c.chunks.Get().(*[]byte)
	if chunk == nil || cap(*chunk)-len(*chunk) < chunkBytes/8 {
		fresh := make([]byte, 0, chunkBytes)
		chunk = &fresh
	}
	b := *chunk
	rec := files.Record{Batch: c}
	start := len(b)
	b, err := c.encoder.Append(b, r)
	if e, ok := errors.AsType[*row.Error](err); ok && strings.HasPrefix(string(e.Kind), "C-") {
		return err // no row can be written
	}
	if rec.Err = err; err != nil {
		if b, err = c.json.AppendJSON(b[:start], r); err != nil {
			return err
		}
	}
	middle := len(b)
	b = c.appendRoutes(b, r)
	rec.Bytes, rec.Header = b[start:middle:middle], b[middle:len(b):len(b)]
	*chunk = b
	c.chunks.Put(chunk)
	return emit(rec)
}

func (c *copied) appendRoutes(b []byte, r *row.Row) []byte {
	var room [64]byte
	for _, name := range c.routes {
		text, err := copyrow.AppendField(room[:0], r, name)
		if err != nil {
			b = append(b, 0)
			continue
		}
		b = append(binary.AppendUvarint(b, uint64(len(text))+1), text...)
	}
	return b
}

// OriginalBytes is a record as JSON, for dead letters.
func (c *copied) OriginalBytes(r files.Record) []byte {
	if r.Err != nil {
		return r.Bytes
	}
	decoded, err := c.back.Decode(r.Bytes)
	if err != nil {
		return r.Bytes
	}
	text, err := c.json.AppendJSON(nil, decoded)
	if err != nil {
		return r.Bytes
	}
	return text
}

func (c *copied) Schema(table.Destination) (*table.Schema, error) { return c.encoder.Schema(), nil }

func (c *copied) Descriptor(table.Destination) (*descriptorpb.DescriptorProto, error) {
	return row.Descriptor(c.encoder.Schema())
}

func (c *copied) Fingerprint(table.Destination) uint64 { return 0 }

func (c *copied) AppendRow(buf []byte, _ table.Destination, r files.Record) ([]byte, error) {
	return append(buf, r.Bytes...), nil
}

// copiedRows makes the source, where this is no replay of its dead letters, and the rows of its records.
func (pl *Pipeline) copiedRows(ctx context.Context, to copyFormat, c bigquery.Connection, s Surroundings) (row.Serializer[files.Record], error) {
	p, r := pl.file, pl.file.Source.BigQuery
	in, err := r.input()
	if err != nil {
		return nil, err
	}
	o := r.options()
	o.Connection = p.SourceConnection(s)
	target, err := pl.copiedSchema(ctx, in, o, c)
	if err != nil {
		return nil, err
	}
	if err := p.namedColumns(target); err != nil {
		return nil, err
	}
	rows, err := newCopied(target, p.Sink.BigQuery.Schema.UnknownFields == "ignore", to.routes)
	if err != nil {
		return nil, fmt.Errorf("sink.bigquery.schema: %w", err)
	}
	if pl.Letters != nil {
		return jsonrow.New(func(r files.Record) []byte { return r.Bytes }, jsonrow.Fixed(target), jsonrow.Options{JSONColumns: jsonrow.Values})
	}
	pl.input, err = bigquery.NewSource(in, rows, o)
	return rows, err
}

// copiedSchema is what rows are written as: the columns of what is read, unless the job file says otherwise.
func (pl *Pipeline) copiedSchema(ctx context.Context, in bigquery.Input, o bigquery.SourceOptions, c bigquery.Connection) (*table.Schema, error) {
	b := pl.file.Sink.BigQuery
	switch {
	case b.Schema.File != "":
		return pl.file.schemaFile()
	case b.Schema.Table:
		dst, err := table.ParseDestination(b.Table)
		if err != nil {
			return nil, err
		}
		schema, err := bigquery.TableSchema(ctx, c, dst)
		if err != nil {
			return nil, fmt.Errorf("sink.bigquery.schema.table: %w", err)
		}
		return schema, nil
	}
	schema, err := bigquery.InputSchema(ctx, in, o)
	if err != nil {
		return nil, fmt.Errorf("source.bigquery: columns of what is read: %w", err)
	}
	if f := finer(schema.Fields); f != "" {
		return nil, fmt.Errorf("source.bigquery: the column %s has picoseconds, and rows are read to the microsecond: leave it out of selectedFields, "+
			"or name a schema file that has it as TIMESTAMP to cut them", f)
	}
	return schema, nil
}

// finer finds a column that would be cut.
func finer(fields []table.Field) string {
	for i := range fields {
		if fields[i].TimestampPrecision > 6 {
			return fields[i].Name
		}
		if below := finer(fields[i].Fields); below != "" {
			return fields[i].Name + "." + below
		}
	}
	return ""
}

// From is what the job reads of BigQuery, in words.
func (r *Read) From() string {
	what := "the table " + r.Table
	if r.Query != "" {
		what = "the query " + strings.Join(strings.Fields(r.Query), " ")
	}
	if r.Limit > 0 {
		what += fmt.Sprintf(", %d rows of it", r.Limit)
	}
	return cmp.Or(what, "nothing")
}
