package bigquery

import (
	"context"
	"math"
	"runtime/metrics"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/bigquery/storage/managedwriter"
	"google.golang.org/api/option"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// BenchmarkWriters compares the sink with the official writer, and exactly-once with the default stream. Each line is a race: the
// two take turns, so that what else the machine does meets both. Both are given the same rows, encoded beforehand, and write them
// to a local service whose tables keep nothing:
//
//	hot/records             one table; the sink takes rows one by one, the official writer is given requests of 512 KiB
//	hot/batches             the same; the sink takes batches of an Encoder
//	apart/records, batches  the same, with the service in a process of its own
//	rotation/single         100 tables by turns, over shared connections; the official writer appends each row as it comes
//	rotation/fetched        the same; it appends what comes of a table in 1,000 rows
//	rotation/collected      the same; its caller collects requests of 512 KiB for each table, as the sink does by itself
//	checkpoints             one table, a checkpoint a second: exactly-once, made visible before the clock stops, and the default stream
//	barrier/default         10 rows for each of 1,000 tables, and a flush
//	barrier/exactly-once    the same; commit_p99_ms is what making them visible takes
//
// The metrics: rows/s, cpu_ns/row and B/B, bytes allocated for each byte sent, are of the first of the two, base_rows/s and
// base_cpu_ns/row of the second, and x is the median of the turns' ratios of rows per second. They count what the process does, the
// service included unless it is apart; then service_cpu_ns/row is what both cost the service. p99_ms is of the flush.
func BenchmarkWriters(b *testing.B) {
	for _, l := range []*load{newLoad(b, "100B", 2, 38), newLoad(b, "1kB", 10, 98)} {
		for _, r := range []race{
			{"hot/records", 1, false, recordRows, collectedRows},
			{"hot/batches", 1, false, encodedRows, collectedRows},
			{"apart/records", 1, true, recordRows, collectedRows},
			{"apart/batches", 1, true, encodedRows, collectedRows},
			{"rotation/single", 100, false, recordRows, singleRows},
			{"rotation/fetched", 100, false, recordRows, fetchedRows},
			{"rotation/collected", 100, false, recordRows, collectedRows},
			{"checkpoints", 1, false, withCheckpoints(MethodExactlyOnce), withCheckpoints(MethodDefault)},
		} {
			b.Run(l.name+"/"+r.name, func(b *testing.B) { newWriterBench(b, l, r.tables, r.apart).run(r.ours, r.base) })
		}
	}
	l := newLoad(b, "100B", 2, 38)
	b.Run("barrier/default", func(b *testing.B) { newWriterBench(b, l, 1000, false).barriers(MethodDefault) })
	b.Run("barrier/exactly-once", func(b *testing.B) { newWriterBench(b, l, 1000, false).barriers(MethodExactlyOnce) })
}

// race is two ways to write to so many tables.
type race struct {
	name       string
	tables     int
	apart      bool
	ours, base way
}

// way opens a writer and returns what writes about bytes, waits until they are taken, and says how many rows that was.
type way func(w *writerBench) (turn func(bytes int) int)

// turnBytes is what each writes in a turn, long enough for what a turn leaves to be collected to be small.
const turnBytes = 100 << 20

// writerBench is a service with tables.
type writerBench struct {
	*testing.B
	*load
	*benchService
	records []stream.Record[routed] // reused
}

func newWriterBench(b *testing.B, l *load, tables int, apart bool) *writerBench {
	b.Helper()
	records := make([]stream.Record[routed], 512)
	for i := range records {
		records[i].At.Split = "f"
	}
	return &writerBench{b, l, startBenchService(b, l.table, tables, apart), records}
}

// run lets two ways take turns.
func (w *writerBench) run(ours, base way) {
	laps := [2]*laps{{turn: ours(w)}, {turn: base(w)}}
	want, _ := w.arrived()
	for _, l := range laps {
		want += int64(l.turn(turnBytes / 10)) // opens everything
	}
	_, before := w.arrived()
	var ratios []float64
	for w.Loop() {
		var rates [2]float64
		for i, l := range laps {
			rates[i] = l.next()
		}
		ratios = append(ratios, rates[0]/rates[1])
	}
	arrived, after := w.arrived()
	for _, l := range laps {
		want += int64(l.rows)
	}
	if arrived != want {
		w.Fatalf("%d rows arrived of %d", arrived, want)
	}
	slices.Sort(ratios)
	w.ReportMetric(ratios[len(ratios)/2], "x")
	laps[0].report(w, "")
	w.ReportMetric(laps[0].allocated/(laps[0].rows*float64(w.bytes)), "B/B")
	laps[1].report(w, "base_")
	if after > 0 {
		w.ReportMetric(float64(after-before)/(laps[0].rows+laps[1].rows), "service_cpu_ns/row")
	}
}

// laps are the turns of one way.
type laps struct {
	turn            func(bytes int) int
	rows, allocated float64
	seconds, cpu    time.Duration
}

func (l *laps) next() (rate float64) {
	start, cpu, allocated := time.Now(), processorTime(), allocatedBytes()
	rows := float64(l.turn(turnBytes))
	took := time.Since(start)
	l.rows, l.seconds, l.cpu = l.rows+rows, l.seconds+took, l.cpu+processorTime()-cpu
	l.allocated += allocatedBytes() - allocated
	return rows / took.Seconds()
}

func (l *laps) report(w *writerBench, prefix string) {
	w.ReportMetric(l.rows/l.seconds.Seconds(), prefix+"rows/s")
	w.ReportMetric(float64(l.cpu)/l.rows, prefix+"cpu_ns/row")
}

func allocatedBytes() float64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return float64(sample[0].Value.Uint64())
}

// managed opens a stream of the official writer for each table.
func (w *writerBench) managed() []*managedwriter.ManagedStream {
	w.Helper()
	var options []option.ClientOption
	if len(w.tables) > 1 {
		options = append(options, managedwriter.WithMultiplexing())
	}
	client, err := managedwriter.NewClient(context.Background(), "p", append(options, w.clientOptions()...)...)
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
func collectedRows(w *writerBench) func(int) int { return w.viaManaged(math.MaxInt, turnBytes) }

// singleRows appends each row by itself, and fewer of them: it takes long.
func singleRows(w *writerBench) func(int) int { return w.viaManaged(len(w.tables), turnBytes/50) }

// fetchedRows appends what a fetch of 1,000 rows has for each table.
func fetchedRows(w *writerBench) func(int) int { return w.viaManaged(1000, turnBytes/10) }

func (w *writerBench) viaManaged(fetch, most int) func(int) int {
	ctx := context.Background()
	streams := w.managed()
	batches, sizes := make([][][]byte, len(streams)), make([]int, len(streams))
	var results []*managedwriter.AppendResult
	send := func(to int) {
		if len(batches[to]) == 0 {
			return
		}
		r, err := streams[to].AppendRows(ctx, batches[to])
		if err != nil {
			w.Fatal(err)
		}
		results = append(results, r)
		batches[to], sizes[to] = make([][]byte, 0, len(batches[to])), 0
	}
	return func(bytes int) int {
		n := min(bytes, most) / w.bytes
		for i := range n {
			to, encoded := i%len(streams), w.rows[i%len(w.rows)]
			if sizes[to]+len(encoded) > 512<<10 {
				send(to)
			}
			batches[to], sizes[to] = append(batches[to], encoded), sizes[to]+len(encoded)
			if (i+1)%fetch == 0 {
				for to := range streams {
					send(to)
				}
			}
		}
		for to := range streams {
			send(to)
		}
		for _, r := range results {
			if _, err := r.GetResult(ctx); err != nil {
				w.Fatal(err)
			}
		}
		results = results[:0]
		return n
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
		Connection: w.connection})
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

// put writes n rows to the tables by turns, in runs as an engine does.
func (w *writerBench) put(writer stream.Writer[routed], n int) {
	ctx, run := context.Background(), w.records
	many := writer.(stream.RecordsWriter[routed])
	for i := 0; i < n; {
		run = run[:min(cap(run), n-i)]
		for j := range run {
			run[j].Value, run[j].At.Row = routed{i % len(w.tables), w.rows[i%len(w.rows)]}, int64(i)
			i++
		}
		if _, err := many.WriteRecords(ctx, run); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *writerBench) flush(writer stream.Writer[routed]) {
	if err := writer.Flush(w.Context(), false); err != nil {
		w.Fatal(err)
	}
}

func recordRows(w *writerBench) func(int) int {
	writer := w.writer(w.sink(MethodDefault))
	return func(bytes int) int {
		n := bytes / w.bytes
		w.put(writer, n)
		w.flush(writer)
		return n
	}
}

func encodedRows(w *writerBench) func(int) int {
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
	return func(bytes int) int {
		batches := bytes / w.load.bytes / rows
		for range batches {
			if err := writer.(stream.EncodedWriter).WriteEncoded(w.Context(), full); err != nil {
				w.Fatal(err)
			}
		}
		w.flush(writer)
		return batches * rows
	}
}

// withCheckpoints writes for a second and takes a checkpoint.
func withCheckpoints(m Method) way {
	return func(w *writerBench) func(int) int {
		sink := w.sink(m)
		writer := w.writer(sink)
		committer, err := sink.NewCommitter(w.Context(), stream.CommitterContext{Log: quiet})
		if err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() { committer.Close() })
		id := int64(0)
		return func(int) (n int) {
			for start := time.Now(); time.Since(start) < time.Second; n += rowsPerFetch {
				w.put(writer, rowsPerFetch)
			}
			w.flush(writer)
			id++
			if err := committer.Commit(w.Context(), w.promise(writer, id)); err != nil {
				w.Fatal(err)
			}
			return n
		}
	}
}

// rowsPerFetch is how often the time is looked at.
const rowsPerFetch = 10_000

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
