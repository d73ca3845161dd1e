package bigquery

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigquery/storage/managedwriter"
	"google.golang.org/api/option"

	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

// BenchmarkWriters compares the writers of both methods and the official one. All are given the same rows, encoded
// beforehand, and write them to a local service in the same process, whose tables keep nothing:
//
//	hot/managedwriter           one table; rows are collected to requests of 512 KiB
//	hot/records                 the sink, which takes rows one by one
//	hot/batches                 the sink, which takes them in batches of an Encoder
//	rotation/managedwriter      100 tables by turns, over shared connections; each row is appended as it comes
//	rotation/fetched            the same; what comes of a table in 1,000 rows is appended
//	rotation/collected          the same; rows are collected to requests of 512 KiB for each table
//	rotation/records            the sink
//	checkpoints/default         one table, a flush a second
//	checkpoints/exactly-once    the same with streams of the lane's own, made visible by a commit beside the lane
//	barrier/default             10 rows for each of 1,000 tables, and a flush
//	barrier/exactly-once        the same; commit_p99_ms is what making them visible takes
//
// The metrics: x_managedwriter and x_default are rows per second as multiples of the first of the group, B/B is bytes allocated
// for each byte sent, the service's included, p99_ms is of the flush.
func BenchmarkWriters(b *testing.B) {
	for _, l := range []*load{newLoad(b, "100B", 2, 38), newLoad(b, "1kB", 10, 98)} {
		for _, group := range []struct {
			name, unit string
			tables     int
			ways       []writerWay
		}{
			{"hot", "x_managedwriter", 1, []writerWay{{"managedwriter", collectedRows}, {"records", recordRows}, {"batches", encodedRows}}},
			{"rotation", "x_managedwriter", 100, []writerWay{{"managedwriter", singleRows}, {"fetched", fetchedRows}, {"collected", collectedRows}, {"records", recordRows}}},
			{"checkpoints", "x_default", 1, []writerWay{{"default", withCheckpoints(MethodDefault)}, {"exactly-once", withCheckpoints(MethodExactlyOnce)}}},
		} {
			var first float64
			for i, way := range group.ways {
				b.Run(l.name+"/"+group.name+"/"+way.name, func(b *testing.B) {
					rate := newWriterBench(b, l, group.tables).run(way.write)
					if i == 0 {
						first = rate
					}
					b.ReportMetric(rate/first, group.unit)
				})
			}
		}
	}
	l := newLoad(b, "100B", 2, 38)
	b.Run("barrier/default", func(b *testing.B) { newWriterBench(b, l, 1000).barriers(MethodDefault) })
	b.Run("barrier/exactly-once", func(b *testing.B) { newWriterBench(b, l, 1000).barriers(MethodExactlyOnce) })
}

type writerWay struct {
	name  string
	write func(*writerBench)
}

// writerBench is a service with tables.
type writerBench struct {
	*testing.B
	*load
	bq     *localbq.Instance
	tables []table.Destination
}

func newWriterBench(b *testing.B, l *load, tables int) *writerBench {
	b.Helper()
	bq, err := localbq.Start(b.Context(), localbq.Config{Project: "p", Modes: map[string]localbq.Mode{"*": localbq.ModeNull},
		Audit: localbq.AuditOptions{CountsOnly: true}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { bq.Close() })
	schema, err := l.json.Schema(tableT)
	if err == nil {
		err = bq.CreateDataset("d")
	}
	w := &writerBench{B: b, load: l, bq: bq}
	for i := range tables {
		dst := table.Destination{Project: "p", Dataset: "d", Table: fmt.Sprintf("t%d", i)}
		w.tables = append(w.tables, dst)
		if err == nil {
			err = bq.CreateTable("d."+dst.Table, tableadmin.ToREST(schema))
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	return w
}

// run measures a way to write and returns its rows per second.
func (w *writerBench) run(write func(*writerBench)) float64 {
	var before, after runtime.MemStats
	w.ReportAllocs()
	runtime.ReadMemStats(&before)
	start, processor := time.Now(), processorTime()
	write(w)
	seconds, rows := time.Since(start).Seconds(), float64(w.N)*rowsPerOp
	runtime.ReadMemStats(&after)
	var arrived int64
	for _, dst := range w.tables {
		n, err := w.bq.NumRows("d." + dst.Table)
		if err != nil {
			w.Fatal(err)
		}
		arrived += n
	}
	if arrived != int64(rows) {
		w.Fatalf("%d rows arrived of %.0f", arrived, rows)
	}
	w.ReportMetric(rows/seconds, "rows/s")
	w.ReportMetric(rows*float64(w.bytes)/seconds/1e6, "MB/s")
	w.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/(rows*float64(w.bytes)), "B/B")
	w.ReportMetric((processorTime()-processor).Seconds()*1e9/rows, "cpu_ns/row")
	return rows / seconds
}

// processorTime is what the process has used, 0 where the system does not say: on a machine with other work it compares
// better than time.
func processorTime() time.Duration {
	text, _ := os.ReadFile("/proc/self/stat")
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// managed opens a stream of the official writer for each table.
func (w *writerBench) managed() []*managedwriter.ManagedStream {
	w.Helper()
	var options []option.ClientOption
	if len(w.tables) > 1 {
		options = append(options, managedwriter.WithMultiplexing())
	}
	client, err := managedwriter.NewClient(context.Background(), "p", append(options, w.bq.GRPCClientOptions()...)...)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { client.Close() })
	var streams []*managedwriter.ManagedStream
	for _, dst := range w.tables {
		ms, err := client.NewManagedStream(context.Background(), managedwriter.WithDestinationTable(dst.Path()),
			managedwriter.WithType(managedwriter.DefaultStream), managedwriter.WithSchemaDescriptor(w.schema), managedwriter.WithMaxInflightRequests(100))
		if err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() { ms.Close() })
		streams = append(streams, ms)
	}
	return streams
}

// collectedRows collects rows to requests of 512 KiB for the official writer.
func collectedRows(w *writerBench) { w.viaManaged(512<<10, rowsPerOp) }

// singleRows appends each row by itself.
func singleRows(w *writerBench) { w.viaManaged(512<<10, len(w.tables)) }

// fetchedRows appends what a fetch of 1,000 rows has for each table.
func fetchedRows(w *writerBench) { w.viaManaged(512<<10, 1000) }

func (w *writerBench) viaManaged(most, fetch int) {
	ctx := context.Background()
	streams := w.managed()
	batches, sizes := make([][][]byte, len(streams)), make([]int, len(streams))
	var results []*managedwriter.AppendResult
	send := func(i int) {
		r, err := streams[i].AppendRows(ctx, batches[i])
		if err != nil {
			w.Fatal(err)
		}
		results = append(results, r)
		batches[i], sizes[i] = make([][]byte, 0, len(batches[i])), 0
	}
	for w.Loop() {
		for i := range rowsPerOp {
			to, encoded := i%len(streams), w.rows[i%len(w.rows)]
			if sizes[to]+len(encoded) > most {
				send(to)
			}
			batches[to], sizes[to] = append(batches[to], encoded), sizes[to]+len(encoded)
			if (i+1)%fetch != 0 {
				continue
			}
			for to := range streams {
				if len(batches[to]) > 0 {
					send(to)
				}
			}
		}
		for _, r := range results {
			if _, err := r.GetResult(ctx); err != nil {
				w.Fatal(err)
			}
		}
		results = results[:0]
	}
}

// routed is a row and the number of its table.
type routed struct {
	table int
	row   []byte
}

// routedRows copies rows that are encoded.
type routedRows struct{ *jsonrow.Serializer[[]byte] }

func (routedRows) AppendRow(buf []byte, _ table.Destination, r routed) ([]byte, error) {
	return append(buf, r.row...), nil
}

func (w *writerBench) sink(m Method) *Sink[routed] {
	w.Helper()
	to := To[routed](w.tables[0])
	if len(w.tables) > 1 {
		to = ResolverFunc[routed](func(_ context.Context, r *stream.Record[routed]) (table.Destination, error) {
			return w.tables[r.Value.table], nil
		})
	}
	sink, err := NewSink(to, row.Serializer[routed](routedRows{w.json}), SinkOptions{Method: m,
		Connection: Connection{GRPCEndpoint: w.bq.GRPC(), RESTEndpoint: w.bq.REST()}})
	if err != nil {
		w.Fatal(err)
	}
	return sink
}

func (w *writerBench) writer(s *Sink[routed]) stream.Writer[routed] {
	w.Helper()
	writer := newBenchWriter(w.B, s)
	w.Cleanup(func() { writer.Close() })
	return writer
}

// put writes n rows to the tables by turns.
func (w *writerBench) put(writer stream.Writer[routed], n int) {
	r := &stream.Record[routed]{At: stream.Position{Split: "f"}}
	for i := range n {
		r.Value, r.At.Row = routed{i % len(w.tables), w.rows[i%len(w.rows)]}, int64(i)
		if err := writer.Write(w.Context(), r); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *writerBench) flush(writer stream.Writer[routed]) {
	if err := writer.Flush(w.Context(), false); err != nil {
		w.Fatal(err)
	}
}

func recordRows(w *writerBench) {
	writer := w.writer(w.sink(MethodDefault))
	for w.Loop() {
		w.put(writer, rowsPerOp)
		w.flush(writer)
	}
}

func encodedRows(w *writerBench) {
	sink := w.sink(MethodDefault)
	encoder, err := sink.NewEncoder(w.Context(), stream.WriterContext{Job: "j", Lanes: 1, Meter: stream.NoMeter, Log: quiet})
	if err != nil {
		w.Fatal(err)
	}
	defer encoder.Close()
	// A batch is sent again and again, as the official writer's rows are: its rows and how many there are.
	var full stream.EncodedBatch
	encoded, rows := 0, 0
	emit := func(b stream.EncodedBatch) error { full, rows = b, encoded; return nil }
	for rows == 0 {
		encoded++
		if err := encoder.Encode(w.Context(), &stream.Record[routed]{Value: routed{0, w.rows[encoded%len(w.rows)]}}, emit); err != nil {
			w.Fatal(err)
		}
	}
	writer := w.writer(sink)
	for w.Loop() {
		for range rowsPerOp / rows {
			if err := writer.(stream.EncodedWriter).WriteEncoded(w.Context(), full); err != nil {
				w.Fatal(err)
			}
		}
		w.put(writer, rowsPerOp%rows)
		w.flush(writer)
	}
}

// withCheckpoints flushes once a second, and commits while it goes on, as an engine does.
func withCheckpoints(m Method) func(*writerBench) {
	return func(w *writerBench) {
		sink := w.sink(m)
		writer := w.writer(sink)
		commits := make(chan []stream.Committable, 1)
		done := make(chan struct{})
		go func() { // ends with the channel, joined below
			defer close(done)
			committer, err := sink.NewCommitter(w.Context(), stream.CommitterContext{Log: quiet})
			if err != nil {
				w.Error(err)
				return
			}
			defer committer.Close()
			for cs := range commits {
				if err := committer.Commit(w.Context(), cs); err != nil {
					w.Error(err)
				}
			}
		}()
		last, id := time.Now(), int64(0)
		checkpoint := func() {
			w.flush(writer)
			if m == MethodExactlyOnce {
				commits <- w.promise(writer, id)
			}
			last, id = time.Now(), id+1
		}
		for w.Loop() {
			w.put(writer, rowsPerOp)
			if time.Since(last) >= time.Second {
				checkpoint()
			}
		}
		checkpoint()
		close(commits)
		<-done
	}
}

func (w *writerBench) promise(writer stream.Writer[routed], checkpoint int64) []stream.Committable {
	cs, err := writer.Prepare(w.Context(), checkpoint)
	if err == nil {
		_, err = writer.Snapshot(w.Context(), checkpoint)
	}
	if err != nil {
		w.Fatal(err)
	}
	return cs
}

// barriers measures flushes with something to send for every table.
func (w *writerBench) barriers(m Method) {
	sink := w.sink(m)
	writer := w.writer(sink)
	committer, err := sink.NewCommitter(w.Context(), stream.CommitterContext{Log: quiet})
	if err != nil {
		w.Fatal(err)
	}
	defer committer.Close()
	var flushes, commits []time.Duration
	barrier := func() {
		w.put(writer, 10*len(w.tables))
		start := time.Now()
		w.flush(writer)
		flushed := time.Now()
		flushes = append(flushes, flushed.Sub(start))
		if m == MethodExactlyOnce {
			if err := committer.Commit(w.Context(), w.promise(writer, int64(len(flushes)))); err != nil {
				w.Fatal(err)
			}
			commits = append(commits, time.Since(flushed))
		}
	}
	barrier() // opens everything
	w.ReportMetric(float64(flushes[0].Microseconds())/1000, "first_ms")
	flushes, commits = nil, nil
	for w.Loop() {
		barrier()
	}
	w.ReportMetric(percentile(flushes, 0.99), "p99_ms")
	if len(commits) > 0 {
		w.ReportMetric(percentile(commits, 0.99), "commit_p99_ms")
	}
}

// percentile answers in milliseconds.
func percentile(all []time.Duration, p float64) float64 {
	slices.Sort(all)
	return float64(all[int(p*float64(len(all)-1))].Microseconds()) / 1000
}
