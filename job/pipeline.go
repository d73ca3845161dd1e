package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/deadletter/filequeue"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/files"
	"github.com/millrace-dev/millrace/stream"
)

func compareText(a, b string) int { return cmp.Compare(a, b) }

// Surroundings are what a job finds where it runs, as opposed to what its file says.
type Surroundings struct {
	// Connection, when set, takes the place of the file's: the command points it at a local service.
	Connection *bigquery.Connection
	// CreateDatasets makes datasets too, as create.datasets does.
	CreateDatasets bool
	// Stdin is what the path "-" reads.
	Stdin io.Reader
}

// Pipeline is a job that is ready to run.
type Pipeline struct {
	file   *Parsed
	name   string                      // what its checkpoints are kept under
	source *files.Source               // nil where no files are read
	input  stream.Source[files.Record] // the source, or the letters of a replay
	sink   *bigquery.Sink[files.Record]
	looked *scan // through the input for schemas, nil where it was not
	policy stream.FailurePolicy

	serializer row.Serializer[files.Record]
	queues     []string // the files of dead letters that a replay reads, absolute

	// Inferred is what was decided about each table, by name, when the job infers schemas.
	Inferred []Inferred
	// DeadLetters is the file that takes records that cannot be written, DeadLetterTable the table, DeadLetterTopic the topic; ""
	// where there is none.
	DeadLetters, DeadLetterTable, DeadLetterTopic string
	// Letters is what a replay reads, nil in any other job.
	Letters *filequeue.Replay
}

// looked is an input that can also be looked through before the job.
type looked interface {
	Records(ctx context.Context) iter.Seq2[*stream.Record[files.Record], error]
}

// records are those of the input, which is never BigQuery here: its rows tell their columns.
func (pl *Pipeline) records() looked { return pl.input.(looked) }

// Prepare makes a job file ready to run. Schemas that are to be inferred are inferred here, which reads the input; those
// of tables are read from the service.
func (p *Parsed) Prepare(ctx context.Context, s Surroundings) (*Pipeline, error) {
	pl, err := p.prepare(ctx, s)
	if err != nil {
		return nil, p.inPaths(p.Keyed(err))
	}
	return pl, nil
}

// Connection is how the job reaches BigQuery.
func (p *Parsed) Connection(s Surroundings) bigquery.Connection {
	if s.Connection != nil {
		return *s.Connection
	}
	c := p.Sink.BigQuery.Connection.options()
	if c.KeyFile != "" {
		c.KeyFile = p.path(c.KeyFile)
	}
	return c
}

func (p *Parsed) prepare(ctx context.Context, s Surroundings) (*Pipeline, error) {
	pl := &Pipeline{file: p, name: p.Job}
	if p.Source.Files != nil {
		var err error
		if pl.source, err = p.source(s.Stdin); err != nil {
			return nil, err
		}
		pl.input = pl.source
	}
	return pl, pl.build(ctx, s)
}

// build makes the sink.
func (pl *Pipeline) build(ctx context.Context, s Surroundings) error {
	p := pl.file
	b := p.Sink.BigQuery
	records, err := p.records()
	if err != nil {
		return err
	}
	to, fixed, err := resolver(b.Table, records)
	if err != nil {
		return err
	}
	connection := p.Connection(s)
	if pl.policy == nil {
		if pl.policy, err = pl.failures(b.Failures, connection, s); err != nil {
			return err
		}
	}
	var rows row.Serializer[files.Record]
	switch records := records.(type) {
	case copyFormat:
		rows, err = pl.copiedRows(ctx, records, connection, s)
	case avroFormat:
		rows, err = pl.avroRows(ctx, connection, s)
	case protobufFormat:
		rows, err = pl.protobufRows(records, fixed)
	default:
		rows, err = pl.plainRows(ctx, records, to, fixed, connection, s)
	}
	if err != nil {
		return err
	}
	pl.serializer = rows
	if _, batches := rows.(row.Columnar[files.Record]); !batches { // those are read whole, or not at all
		pl.serializer = whole{rows}
	}
	o := b.sinkOptions()
	o.Connection, o.Failures = connection, pl.policy
	o.Create.Datasets = o.Create.Datasets || s.CreateDatasets
	pl.sink, err = bigquery.NewSink(to, pl.serializer, o)
	return err
}

// records is the format of the files, with what it takes to look into records.
func (p *Parsed) records() (format, error) {
	switch {
	case p.Source.BigQuery != nil:
		return copyFormat{routes: placeholders(p.Sink.BigQuery.Table)}, nil
	case p.Source.Files.Format == "protobuf":
		return p.protobuf()
	}
	return p.Source.Files.format(), nil
}

// plainRows makes the serializer of a format whose records take the schemas of their tables.
func (pl *Pipeline) plainRows(ctx context.Context, records format, to bigquery.Resolver[files.Record], fixed bool, c bigquery.Connection, s Surroundings) (row.Serializer[files.Record], error) {
	schemas, err := pl.schemas(ctx, to, fixed, c, s)
	if err != nil {
		return nil, err
	}
	rows, err := records.rows(schemas, pl.file.Sink.BigQuery.Schema.UnknownFields == "ignore")
	if err != nil {
		return nil, fmt.Errorf("sink.bigquery.schema: %w", err)
	}
	return rows, nil
}

// whole refuses records that could not be read whole, and says why, rather than what is wrong with their beginning.
type whole struct {
	row.Serializer[files.Record]
}

func (w whole) AppendRow(buf []byte, dst table.Destination, r files.Record) ([]byte, error) {
	if r.Err != nil {
		return buf, r.Err
	}
	buf, err := w.Serializer.AppendRow(buf, dst, r)
	if err != nil {
		err = inHeader(err, r)
	}
	return buf, err
}

// inHeader says in which line the header stands that an error is about: the record, which is what has a place, is another.
func inHeader(err error, r files.Record) error {
	e, ok := err.(*row.Error)
	if !ok || e.Kind != row.KindHeader || r.HeaderLine == 0 {
		return err
	}
	placed := *e
	placed.Msg = fmt.Sprintf("in line %d, %s", r.HeaderLine, e.Msg)
	return &placed
}

func (p *Parsed) source(stdin io.Reader) (*files.Source, error) {
	f := p.Source.Files
	paths := make([]string, len(f.Paths))
	for i, path := range f.Paths {
		paths[i] = p.path(path)
	}
	src, err := files.NewSource(paths, f.options())
	if err == nil && stdin != nil {
		src.WithStdin(stdin)
	}
	return src, err
}

// options are the options of the source.
func (f *Files) options() files.Options {
	o := files.Options{MaxRecordBytes: int(f.MaxRecordBytes), MaxBlockBytes: int(f.MaxBlockBytes), SplitBytes: int64(f.SplitBytes)}
	f.format().source(&o)
	return o
}

// path is where a path in the job file leads: relative ones begin at the folder that the file is in.
func (p *Parsed) path(s string) string {
	if s == files.Stdin || filepath.IsAbs(s) {
		return s
	}
	return filepath.Join(filepath.Dir(p.Name), s)
}

// resolver makes the resolver of a table name with or without placeholders, which stand for fields of records.
func resolver(pattern string, records format) (to bigquery.Resolver[files.Record], fixed bool, err error) {
	if !strings.ContainsAny(pattern, "{}") {
		dst, err := table.ParseDestination(pattern)
		return bigquery.To[files.Record](dst), true, err
	}
	to, err = bigquery.AppendTemplate(pattern, func(buf []byte, r files.Record, name string) ([]byte, error) {
		if r.Err != nil {
			return buf, r.Err
		}
		return records.field(buf, r, name)
	})
	return to, false, err
}

// schemas answers what the rows of each table look like.
func (pl *Pipeline) schemas(ctx context.Context, to bigquery.Resolver[files.Record], fixed bool, c bigquery.Connection, s Surroundings) (jsonrow.Schemas, error) {
	schema := pl.file.Sink.BigQuery.Schema
	switch {
	case schema.File != "":
		return pl.fromFile(schema)
	case schema.Table:
		return pl.fromTables(ctx, to, fixed, c)
	case pl.Letters != nil:
		return pl.ofLetters(ctx, to, fixed, *schema.Infer, c)
	}
	return pl.infer(ctx, to, fixed, *schema.Infer, s)
}

func (pl *Pipeline) fromFile(s Schema) (jsonrow.Schemas, error) {
	parsed, err := pl.file.schemaFile()
	if err != nil {
		return nil, err
	}
	return withRest(jsonrow.Fixed(parsed), s.Rest), nil
}

// withRest adds the column for everything that has none, unless the schema has it.
func withRest(m *jsonrow.Mapping, rest string) *jsonrow.Mapping {
	if rest == "" {
		return m
	}
	grown := *m
	grown.Rest = rest
	if m.Schema.Field(rest) == nil {
		grown.Schema = &table.Schema{Fields: append(m.Schema.Fields[:len(m.Schema.Fields):len(m.Schema.Fields)], table.Field{Name: rest, Type: table.JSON})}
	}
	return &grown
}

// fromTables reads the schemas of the tables that the input leads to.
func (pl *Pipeline) fromTables(ctx context.Context, to bigquery.Resolver[files.Record], fixed bool, c bigquery.Connection) (jsonrow.Schemas, error) {
	known := map[table.Destination]*jsonrow.Mapping{}
	destinations := []table.Destination{}
	if fixed {
		dst, err := table.ParseDestination(pl.file.Sink.BigQuery.Table)
		if err != nil {
			return nil, err
		}
		destinations = append(destinations, dst)
	} else {
		if pl.ReadsStdin() {
			return nil, errors.New("sink.bigquery.schema.table: standard input cannot be looked through for the tables that its records go to: " +
				"read files, give a schema file, or infer the schemas")
		}
		s := &scan{source: pl.records(), to: to}
		if err := s.run(ctx); err != nil {
			return nil, err
		}
		destinations = s.destinations()
	}
	for _, dst := range destinations {
		schema, err := bigquery.TableSchema(ctx, c, dst)
		if err != nil {
			return nil, fmt.Errorf("sink.bigquery.schema.table: %w", err)
		}
		known[dst] = pl.describedBy(schema)
	}
	return lookup(known), nil
}

// describedBy maps the columns of a table that exists.
func (pl *Pipeline) describedBy(schema *table.Schema) *jsonrow.Mapping {
	m := jsonrow.Fixed(schema)
	m.Keys = jsonrow.DescribedKeys(schema)
	m.Rest = pl.file.Sink.BigQuery.Schema.Rest
	return m
}

// inferring begins to look for schemas.
func (pl *Pipeline) inferring(to bigquery.Resolver[files.Record], fixed bool, in Infer) *scan {
	b := pl.file.Sink.BigQuery
	return &scan{source: pl.records(), to: to, fixed: fixed, sample: cmp.Or(in.Sample, defaultSample), limit: int64(in.Scan),
		options: pl.file.Source.Files.options(),
		infer: func() (inference, error) {
			return pl.file.Source.Files.format().inference(b.Schema)
		}}
}

func (pl *Pipeline) infer(ctx context.Context, to bigquery.Resolver[files.Record], fixed bool, in Infer, s Surroundings) (jsonrow.Schemas, error) {
	sc := pl.inferring(to, fixed, in)
	if pl.ReadsStdin() {
		if err := sc.peek(ctx, pl.source, s.Stdin); err != nil {
			return nil, err
		}
	}
	if err := sc.run(ctx); err != nil {
		return nil, err
	}
	var err error
	pl.looked = sc
	if pl.Inferred, err = sc.schemas(pl.file); err != nil {
		return nil, err
	}
	known := map[table.Destination]*jsonrow.Mapping{}
	for _, inf := range pl.Inferred {
		known[inf.Destination] = inf.Mapping
	}
	return lookup(known), nil
}

// defaultSample is how many records of each table are looked at, as in the example of the design.
const defaultSample = 1000

// ReadsStdin reports that the job reads standard input, which can be done once: it can neither be started again nor resumed.
func (pl *Pipeline) ReadsStdin() bool {
	return pl.Letters == nil && pl.file.readsStdin()
}

// lookup answers for the tables that were met. A record of another table fails by itself.
func lookup(known map[table.Destination]*jsonrow.Mapping) jsonrow.Schemas {
	return jsonrow.PerDestination(func(dst table.Destination) (*jsonrow.Mapping, error) {
		if m := known[dst]; m != nil {
			return m, nil
		}
		return nil, &row.Error{Kind: row.KindSchema, Offset: -1, Msg: "no schema is known for this table, since no good record for it was met before the job began; " +
			"raise schema.infer.scan, or give a schema file"}
	})
}

// Connection is the one that the job file names.
func (pl *Pipeline) Connection() Connection { return pl.file.Sink.BigQuery.Connection }

// Tables is what has been done to each table so far, by name. It may be called while the job runs.
func (pl *Pipeline) Tables() []bigquery.DestinationReport { return pl.sink.Report() }

// Reading is how the read of BigQuery is going, nil where something else is read. It may be called while the job runs.
func (pl *Pipeline) Reading() *bigquery.SourceReport {
	s, ok := pl.input.(*bigquery.Source[files.Record])
	if !ok {
		return nil
	}
	r := s.Report()
	return &r
}

// RunOptions say how to run, beyond what the file says. Zero values leave the file's word.
type RunOptions struct {
	Parallelism int
	Store       string // URL of the checkpoint store
	From        engine.From
	Handle      *engine.Handle
	Meter       stream.Meter
	Log         *slog.Logger
}

// Run runs the job to its end. See engine.Run for what stops it. An *InvalidError says that files are not there, before
// anything was read.
func (pl *Pipeline) Run(ctx context.Context, o RunOptions) (engine.Result, error) {
	f := pl.file
	if o.Handle == nil {
		o.Handle = new(engine.Handle)
	}
	told, err := pl.tell(o)
	if err != nil {
		return engine.Result{Job: f.Job}, err
	}
	opts := engine.Options{
		Lanes:      cmp.Or(o.Parallelism, f.Parallelism),
		Checkpoint: engine.Checkpointing{Every: f.Checkpoint.Every, URL: cmp.Or(o.Store, f.StoreURL()), Keep: f.Checkpoint.Keep},
		Restart:    f.Restart.options(),
		From:       o.From,
		Handle:     o.Handle,
		Meter:      o.Meter,
		Log:        o.Log,
	}
	if f.Sink.BigQuery.Commits() {
		if err := checkLasting(opts.Checkpoint.URL); err != nil {
			return engine.Result{}, fmt.Errorf("checkpoint store: %w", err)
		}
	}
	if pl.ReadsStdin() {
		opts.Restart = engine.Restart{Policy: engine.NoRestart} // what was read of it is gone
	}
	if pl.ReadsStdin() && opts.Checkpoint.URL != "" && o.Store == "" && f.Checkpoint.Store == "" {
		opts.Checkpoint.URL = "" // nothing to go on with: standard input is read once
	}
	r, err := engine.Run(ctx, engine.Job[files.Record, files.Record]{Name: pl.name, Source: pl.input, Sink: pl.sink, Failures: pl.policy}, opts)
	if r.Tally.Read == 0 {
		err = f.inPaths(err)
	}
	err = f.Keyed(err)
	told.end(ctx, r, err)
	return r, err
}

// StoreURL is where the checkpoints are, with a relative folder made absolute.
func (p *Parsed) StoreURL() string {
	url := cmp.Or(p.Checkpoint.Store, "file://.millrace/checkpoints")
	folder, ok := strings.CutPrefix(url, "file://")
	if !ok || strings.HasPrefix(folder, "/") {
		return url
	}
	abs, err := filepath.Abs(p.path(filepath.FromSlash(folder)))
	if err != nil {
		return url
	}
	return "file://" + escapePercent(filepath.ToSlash(abs))
}

// escapePercent keeps a folder with a percent sign or a question mark in its name from being read as something else.
func escapePercent(s string) string {
	return strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23").Replace(s)
}
