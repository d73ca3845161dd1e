package fileload_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"github.com/apache/arrow-go/v18/arrow/array"
	bqrest "google.golang.org/api/bigquery/v2"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/internal/fileload"
	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/internal/outcome"
	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/gcp"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

const runA = "0123456789abcdef0123456789abcdef"

// bench is a local BigQuery with a bucket, and committers for it. Tables have the column id, INT64, unless they are given others.
type bench struct {
	testing.TB
	bq     *localbq.Instance
	rest   *bqrest.Service
	bucket *storage.BucketHandle
	cfg    fileload.Config
	rows   *schemas
	meter  *meter
	log    *logs
	waits  *waits
}

// newBench starts a service with dataset d in project p.
func newBench(t testing.TB, c localbq.Config) *bench {
	t.Helper()
	ctx := context.Background()
	c.Project = "p"
	bq, err := localbq.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	files, err := storage.NewClient(ctx, bq.GCSClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(files.Close(), bq.Close()); err != nil {
			t.Error(err)
		}
	})
	rest, err := bqrest.NewService(ctx, bq.ClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{TB: t, bq: bq, rest: rest, bucket: files.Bucket("staged"), rows: &schemas{of: map[table.Destination]*table.Schema{}},
		meter: newMeter(), log: &logs{}, waits: &waits{}}
	if err := errors.Join(bq.CreateDataset("d"), b.bucket.Create(ctx, "p", nil)); err != nil {
		t.Fatal(err)
	}
	b.cfg = fileload.Config{
		Connection: gcp.Connection{RESTEndpoint: bq.REST(), GRPCEndpoint: bq.GRPC(), StorageEndpoint: bq.GCS()},
		Options: fileload.Options{
			StagingPath: "gs://staged/s", Limits: loadplan.ServiceLimits(), MaxDestinations: 8,
			Poll:         retry.Schedule{Initial: time.Second, Max: 30 * time.Second},
			SchemaRace:   retry.Schedule{Initial: 500 * time.Millisecond, Max: 10 * time.Second, Attempts: 10},
			RetryIDLimit: 5, CallTimeout: 2 * time.Minute, MinCheckpointInterval: time.Nanosecond,
		},
		Rows:   b.rows,
		Create: tableadmin.Create{Options: func(table.Destination) (table.CreateOptions, error) { return table.CreateOptions{}, nil }},
		Ledger: &outcome.Ledger{},
		Pacer:  retry.Pacer{Sleep: b.waits.sleep},
		Job:    "j", Meter: b.meter, Log: slog.New(b.log),
	}
	return b
}

// dst is table p.d.name.
func dst(name string) table.Destination {
	return table.Destination{Project: "p", Dataset: "d", Table: name}
}

func field(name string, t table.Type) table.Field { return table.Field{Name: name, Type: t} }

// columns are the schema that rows of a test have: the id, and others.
func columns(more ...table.Field) *table.Schema {
	return &table.Schema{Fields: append([]table.Field{field("id", table.Int64)}, more...)}
}

// schemas says what the rows of each destination are; by default they have an id.
type schemas struct {
	of     map[table.Destination]*table.Schema
	fails  error
	panics table.Destination
}

func (s *schemas) Schema(dst table.Destination) (*table.Schema, error) {
	if s.panics == dst {
		panic("no schema")
	}
	if got := s.of[dst]; got != nil {
		return got, s.fails
	}
	return columns(), s.fails
}

func (s *schemas) Descriptor(dst table.Destination) (*descriptorpb.DescriptorProto, error) {
	got, err := s.Schema(dst)
	if err != nil {
		return nil, err
	}
	return row.Descriptor(got)
}

func (s *schemas) Fingerprint(table.Destination) uint64 { return 0 }

// stage stages a file of rows with these ids, as the lane of that run would.
func (b *bench) stage(to table.Destination, name string, ids ...int64) loadplan.Committable {
	b.Helper()
	s, err := b.rows.Schema(to)
	if err != nil {
		b.Fatal(err)
	}
	return b.stageAs(to, name, s, ids...)
}

// stageAs stages rows with nothing but an id, as those of a schema.
func (b *bench) stageAs(to table.Destination, name string, s *table.Schema, ids ...int64) loadplan.Committable {
	b.Helper()
	d, err := row.Descriptor(s)
	if err != nil {
		b.Fatal(err)
	}
	plan, err := staging.Compile(s, d)
	if err != nil {
		b.Fatal(err)
	}
	var data bytes.Buffer
	w, err := staging.NewAvroFile(&data, plan)
	if err != nil {
		b.Fatal(err)
	}
	for _, id := range ids {
		if err := w.Write(protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(id))); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return b.put(to, name+".avro", int64(len(ids)), data.Bytes())
}

func (b *bench) put(to table.Destination, name string, rows int64, data []byte) loadplan.Committable {
	b.Helper()
	name = path.Join("s", runA, to.String(), name)
	w := b.bucket.Object(name).NewWriter(b.Context())
	_, err := w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		b.Fatal(err)
	}
	return loadplan.Committable{Run: runA, Destination: to, URI: "gs://staged/" + name, Bytes: int64(len(data)), Rows: rows,
		Profile: b.cfg.Options.Plan.Profile()}
}

// committer makes a committer in a process of its own.
func (b *bench) committer() *fileload.Committer { return fileload.NewCommitter(b.cfg) }

// commit commits in a process of its own.
func (b *bench) commit(cs ...loadplan.Committable) error {
	b.Helper()
	return b.commitWith(b.Context(), b.committer(), cs...)
}

func (b *bench) commitWith(ctx context.Context, c *fileload.Committer, cs ...loadplan.Committable) error {
	b.Helper()
	return errors.Join(c.Commit(ctx, b.encode(cs)), c.Close())
}

func (b *bench) encode(cs []loadplan.Committable) []stream.Committable {
	b.Helper()
	var out []stream.Committable
	for _, one := range cs {
		data, err := one.MarshalBinary()
		if err != nil {
			b.Fatal(err)
		}
		out = append(out, stream.Committable{Key: one.URI, Data: data})
	}
	return out
}

// must is commit, which succeeds.
func (b *bench) must(cs ...loadplan.Committable) {
	b.Helper()
	if err := b.commit(cs...); err != nil {
		b.Fatalf("commit: %v", err)
	}
}

// holds requires a table to have exactly the rows of these ids.
func (b *bench) holds(to table.Destination, want ...int64) {
	b.Helper()
	batches, err := b.bq.Batches(to.String())
	if err != nil {
		b.Errorf("table %s: %v", to, err)
		return
	}
	var got []int64
	for _, batch := range batches {
		at := batch.Schema().FieldIndices("id")
		for i := range int(batch.NumRows()) {
			got = append(got, batch.Column(at[0]).(*array.Int64).Value(i))
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		b.Errorf("table %s has the rows %v, want %v", to, got, want)
	}
}

// tables are the tables of a dataset.
func (b *bench) tables(dataset string) (names []string) {
	b.Helper()
	list, err := b.rest.Tables.List("p", dataset).MaxResults(10_000).Do()
	if err != nil {
		b.Fatal(err)
	}
	for _, t := range list.Tables {
		names = append(names, t.TableReference.TableId)
	}
	return names
}

// objects are the names of what is staged.
func (b *bench) objects() (names []string) {
	b.Helper()
	it := b.bucket.Objects(b.Context(), nil)
	for {
		o, err := it.Next()
		if err != nil {
			return names
		}
		names = append(names, o.Name)
	}
}

// calls are the calls to the service so far, such as jobs.insert, in the order they came.
func (b *bench) calls(of ...string) (names []string) {
	b.Helper()
	for r, err := range b.bq.Audit().Records() {
		if err != nil {
			b.Fatal(err)
		}
		if len(of) == 0 || slices.Contains(of, r.RPC) {
			names = append(names, r.RPC)
		}
	}
	return names
}

// job is a job of the service.
func (b *bench) job(id string) *bqrest.Job {
	b.Helper()
	j, err := b.rest.Jobs.Get("p", id).Location("US").Do()
	if err != nil {
		b.Fatalf("job %s: %v", id, err)
	}
	return j
}

// jobIDs are the ids of all jobs of project p, oldest first.
func (b *bench) jobIDs() (ids []string) {
	b.Helper()
	list, err := b.rest.Jobs.List("p").MaxResults(10_000).Do()
	if err != nil {
		b.Fatal(err)
	}
	for _, j := range slices.Backward(list.Jobs) {
		ids = append(ids, j.JobReference.JobId)
	}
	return ids
}

func (b *bench) arm(rules ...localbq.Fault) {
	b.Helper()
	if err := b.bq.Faults().Add(rules...); err != nil {
		b.Fatal(err)
	}
}

// failJob has a job fail, the first count of them that match.
func failJob(m localbq.FaultMatch, reason string, count int) localbq.Fault {
	m.Method = "job.running"
	return localbq.Fault{Match: m, Count: count, Action: localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 500, Reason: reason, Message: "scripted"}}}
}

// answer has a call answered with an error.
func answer(method string, m localbq.FaultMatch, code int, reason string, count int) localbq.Fault {
	m.Method = method
	return localbq.Fault{Match: m, Count: count, Action: localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: code, Reason: reason}}}
}

// leaves makes every file a leaf of its own, so that destinations with several go by way of temporary tables.
func (b *bench) leaves() { b.cfg.Options.Limits.FilesPerLoad = 1 }

// createTable makes a table with these columns.
func (b *bench) createTable(to table.Destination, s *table.Schema) {
	b.Helper()
	_, err := b.rest.Tables.Insert(to.Project, to.Dataset, &bqrest.Table{Schema: tableadmin.ToREST(s),
		TableReference: &bqrest.TableReference{ProjectId: to.Project, DatasetId: to.Dataset, TableId: to.Table}}).Do()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) table(to table.Destination) *bqrest.Table {
	b.Helper()
	t, err := b.rest.Tables.Get(to.Project, to.Dataset, to.Table).Do()
	if err != nil {
		b.Fatal(err)
	}
	return t
}

// waits are the waits of a pacer, which take no time worth speaking of.
type waits struct {
	mu  sync.Mutex // guards all
	all []time.Duration
}

func (w *waits) sleep(ctx context.Context, d time.Duration) error {
	w.mu.Lock()
	w.all = append(w.all, d)
	w.mu.Unlock()
	return retry.Sleep(ctx, min(d, 5*time.Millisecond))
}

// logs are what was logged.
type logs struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (l *logs) Enabled(context.Context, slog.Level) bool { return true }

func (l *logs) Handle(ctx context.Context, r slog.Record) error {
	var line strings.Builder
	if err := slog.NewTextHandler(&line, &slog.HandlerOptions{Level: slog.LevelDebug}).Handle(ctx, r); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line.String())
	return nil
}

func (l *logs) WithAttrs(attrs []slog.Attr) slog.Handler { return withAttrs{l, attrs} }
func (l *logs) WithGroup(string) slog.Handler            { return l }

// with are the lines that have all of these words.
func (l *logs) with(words ...string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			found = append(found, line)
		}
	}
	return found
}

type withAttrs struct {
	*logs
	attrs []slog.Attr
}

func (l withAttrs) Handle(ctx context.Context, r slog.Record) error {
	r = r.Clone()
	r.AddAttrs(l.attrs...)
	return l.logs.Handle(ctx, r)
}

func (l withAttrs) WithAttrs(attrs []slog.Attr) slog.Handler {
	return withAttrs{l.logs, append(slices.Clone(l.attrs), attrs...)}
}

// meter keeps what instruments show, and the most that gauges have shown.
type meter struct {
	mu         sync.Mutex // guards the maps
	last, most map[string]int64
}

func newMeter() *meter { return &meter{last: map[string]int64{}, most: map[string]int64{}} }

func (m *meter) Counter(i stream.Instrument, _ ...stream.Label) stream.Counter {
	return series{m, i.Name}
}
func (m *meter) Gauge(i stream.Instrument, _ ...stream.Label) stream.Gauge { return series{m, i.Name} }

// of is an instrument of sinks.
func (m *meter) of(name string) (last, most int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = "millrace.bigquery.sink." + name
	return m.last[name], m.most[name]
}

type series struct {
	m    *meter
	name string
}

func (s series) Add(n int64) { s.change(func(v int64) int64 { return v + n }) }
func (s series) Set(v int64) { s.change(func(int64) int64 { return v }) }

func (s series) change(f func(int64) int64) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	v := f(s.m.last[s.name])
	s.m.last[s.name] = v
	s.m.most[s.name] = max(s.m.most[s.name], v)
}
