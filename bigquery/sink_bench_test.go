package bigquery

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"cloud.google.com/go/bigquery/storage/managedwriter"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/row/structrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

// load is documents and the rows they become.
type load struct {
	name   string
	docs   [][]byte
	rows   [][]byte
	bytes  int // of a row, on average
	table  *table.Schema
	json   *jsonrow.Serializer[[]byte]
	schema *descriptorpb.DescriptorProto
	// structs runs the rows, as Go structs, through the sink on so many lanes.
	structs func(lanes int) func(*testing.B, *localbq.Instance, *load)
}

type small struct {
	ID      int64     `bigquery:"id" json:"id"`
	At      time.Time `bigquery:"at" json:"at"`
	Column0 string    `bigquery:"column_0" json:"column_0"`
	Column1 string    `bigquery:"column_1" json:"column_1"`
}

type large struct {
	ID      int64     `bigquery:"id" json:"id"`
	At      time.Time `bigquery:"at" json:"at"`
	Column0 string    `bigquery:"column_0" json:"column_0"`
	Column1 string    `bigquery:"column_1" json:"column_1"`
	Column2 string    `bigquery:"column_2" json:"column_2"`
	Column3 string    `bigquery:"column_3" json:"column_3"`
	Column4 string    `bigquery:"column_4" json:"column_4"`
	Column5 string    `bigquery:"column_5" json:"column_5"`
	Column6 string    `bigquery:"column_6" json:"column_6"`
	Column7 string    `bigquery:"column_7" json:"column_7"`
	Column8 string    `bigquery:"column_8" json:"column_8"`
	Column9 string    `bigquery:"column_9" json:"column_9"`
}

// benchStructs makes structs of a load's documents, and checks that their rows are the same.
func benchStructs[S any](b *testing.B, l *load) func(lanes int) func(*testing.B, *localbq.Instance, *load) {
	b.Helper()
	serializer, err := structrow.New[*S](structrow.Options{})
	if err != nil {
		b.Fatal(err)
	}
	records := make([]*S, len(l.docs))
	for i, doc := range l.docs {
		records[i] = new(S)
		if err := json.Unmarshal(doc, records[i]); err != nil {
			b.Fatal(err)
		}
		if encoded, err := serializer.AppendRow(nil, tableT, records[i]); err != nil || !bytes.Equal(encoded, l.rows[i]) {
			b.Fatalf("row %d: got %q, %v, want %q", i, encoded, err, l.rows[i])
		}
	}
	return func(lanes int) func(*testing.B, *localbq.Instance, *load) {
		return func(b *testing.B, bq *localbq.Instance, l *load) {
			benchLanes(b, newBenchSink(b, bq, row.Serializer[*S](serializer)), records, lanes)
		}
	}
}

// newLoad makes documents of so many string columns beside a number and a timestamp.
func newLoad(b *testing.B, name string, columns, width int) *load {
	b.Helper()
	s := &table.Schema{Fields: []table.Field{{Name: "id", Type: table.Int64}, {Name: "at", Type: table.Timestamp}}}
	for c := range columns {
		s.Fields = append(s.Fields, table.Field{Name: fmt.Sprintf("column_%d", c), Type: table.String})
	}
	l := &load{name: name, table: s}
	var err error
	if l.json, err = jsonrow.New(func(doc []byte) []byte { return doc }, jsonrow.Fixed(s), jsonrow.Options{}); err != nil {
		b.Fatal(err)
	}
	if l.schema, err = l.json.Descriptor(tableT); err != nil {
		b.Fatal(err)
	}
	total := 0
	for i := range 1000 {
		doc := fmt.Appendf(nil, `{"id":%d,"at":"2026-01-02T03:04:05.%06dZ"`, i*1_000_003, i)
		for c := range columns {
			text := strings.Repeat(fmt.Sprintf("%d ", i*c), width)[:width]
			doc = fmt.Appendf(doc, `,"column_%d":"%s"`, c, text)
		}
		doc = append(doc, '}')
		encoded, err := l.json.AppendRow(nil, tableT, doc)
		if err != nil {
			b.Fatal(err)
		}
		l.docs, l.rows = append(l.docs, doc), append(l.rows, encoded)
		total += len(encoded)
	}
	l.bytes = total / len(l.rows)
	return l
}

// BenchmarkDefaultStream compares, in one run and against a local service whose table keeps nothing:
//
//	bare           rows encoded beforehand, through one AppendRows stream with nothing around it
//	managedwriter  the same, through the official high-level writer
//	copied/N       the same, through the sink on N lanes, with a serializer that copies rows
//	struct/N       pointers to Go structs through the sink on N lanes, encoding included
//	json/N         JSON documents through the sink on N lanes, encoding included
//
// All send requests of 512 KiB and have at most 100 of them unanswered on a connection. The service runs in the same
// process, so its work is in every figure. x_bare is the rows per second as a multiple of bare's.
func BenchmarkDefaultStream(b *testing.B) {
	short, long := newLoad(b, "100B", 2, 38), newLoad(b, "1kB", 10, 98)
	short.structs, long.structs = benchStructs[small](b, short), benchStructs[large](b, long)
	for _, l := range []*load{short, long} {
		var bare float64
		for _, way := range []struct {
			name string
			run  func(*testing.B, *localbq.Instance, *load)
		}{{"bare", benchBare}, {"managedwriter", benchManaged},
			{"copied/1", benchCopied(1)}, {"copied/2", benchCopied(2)}, {"struct/1", l.structs(1)}, {"struct/2", l.structs(2)},
			{"json/1", benchJSON(1)}, {"json/2", benchJSON(2)}} {
			b.Run(l.name+"/"+way.name, func(b *testing.B) {
				rate := benchWay(b, l, way.run)
				if way.name == "bare" {
					bare = rate
				}
				b.ReportMetric(rate/bare, "x_bare")
			})
		}
	}
}

// benchWay runs one way and returns its rows per second.
func benchWay(b *testing.B, l *load, run func(*testing.B, *localbq.Instance, *load)) float64 {
	bq, err := startBenchInstance(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer bq.Close()
	// The first row makes the table.
	w := newBenchWriter(b, newBenchSink(b, bq, row.Serializer[[]byte](l.json)))
	writeRecords(b, w, l.docs, 1)
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	start := time.Now()
	run(b, bq, l)
	seconds := time.Since(start).Seconds()
	rows := int64(b.N) * rowsPerOp
	if n, err := bq.NumRows("d.t"); err != nil || n != rows+1 {
		b.Fatalf("%d rows arrived of %d, %v", n-1, rows, err)
	}
	b.ReportMetric(float64(rows)/seconds, "rows/s")
	b.ReportMetric(float64(rows)*float64(l.bytes)/seconds/1e6, "MB/s")
	return float64(rows) / seconds
}

const rowsPerOp = 100_000

func newBenchSink[R any](b *testing.B, bq *localbq.Instance, rows row.Serializer[R]) *Sink[R] {
	b.Helper()
	sink, err := NewSink(To[R](tableT), rows,
		SinkOptions{Connection: Connection{GRPCEndpoint: bq.GRPC(), RESTEndpoint: bq.REST()}})
	if err != nil {
		b.Fatal(err)
	}
	return sink
}

// copied is a serializer of rows that are encoded already.
type copied struct{ *jsonrow.Serializer[[]byte] }

func (copied) AppendRow(buf []byte, _ table.Destination, encoded []byte) ([]byte, error) {
	return append(buf, encoded...), nil
}

func newBenchWriter[R any](b *testing.B, sink *Sink[R]) stream.Writer[R] {
	b.Helper()
	w, err := sink.NewWriter(b.Context(), stream.WriterContext{Job: "j", Lanes: 1, Meter: stream.NoMeter, Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	return w
}

// writeRecords is what a lane does between two checkpoints.
func writeRecords[R any](b *testing.B, w stream.Writer[R], records []R, n int) {
	many := w.(stream.RecordsWriter[R])
	run := make([]stream.Record[R], 512)
	for i := 0; i < n; {
		run = run[:min(len(run), n-i)]
		for j := range run {
			run[j] = stream.Record[R]{Value: records[i%len(records)], At: stream.Position{Split: "f", Row: int64(i)}}
			i++
		}
		if _, err := many.WriteRecords(b.Context(), run); err != nil {
			b.Error(err)
			return
		}
	}
	if err := w.Flush(b.Context(), false); err != nil {
		b.Error(err)
	}
}

func benchJSON(lanes int) func(*testing.B, *localbq.Instance, *load) {
	return func(b *testing.B, bq *localbq.Instance, l *load) {
		benchLanes(b, newBenchSink(b, bq, row.Serializer[[]byte](l.json)), l.docs, lanes)
	}
}

func benchCopied(lanes int) func(*testing.B, *localbq.Instance, *load) {
	return func(b *testing.B, bq *localbq.Instance, l *load) {
		benchLanes(b, newBenchSink(b, bq, row.Serializer[[]byte](copied{l.json})), l.rows, lanes)
	}
}

func benchLanes[R any](b *testing.B, sink *Sink[R], records []R, lanes int) {
	var writers []stream.Writer[R]
	for range lanes {
		writers = append(writers, newBenchWriter(b, sink))
	}
	for b.Loop() {
		var running sync.WaitGroup
		for _, w := range writers {
			running.Go(func() { writeRecords(b, w, records, rowsPerOp/lanes) })
		}
		running.Wait()
	}
	for _, w := range writers {
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// batches are the rows of one op in requests of at most 512 KiB.
func (l *load) batches() [][][]byte {
	var out [][][]byte
	var batch [][]byte
	size := 0
	for i := range rowsPerOp {
		r := l.rows[i%len(l.rows)]
		if size+len(r) > 512<<10 {
			out, batch, size = append(out, batch), nil, 0
		}
		batch, size = append(batch, r), size+len(r)
	}
	return append(out, batch)
}

func benchBare(b *testing.B, bq *localbq.Instance, l *load) {
	client, err := Connection{GRPCEndpoint: bq.GRPC()}.WriteClient(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	call, err := client.AppendRows(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	batches := l.batches()
	answered := make(chan error, 100)
	go func() { // ends with the call, whose end the last receive waits for
		for {
			a, err := call.Recv()
			if err == nil && a.GetError() != nil {
				err = fmt.Errorf("refused: %v", a.GetError())
			}
			answered <- err
			if err != nil {
				return
			}
		}
	}()
	out := 0
	await := func() {
		if err := <-answered; err != nil {
			b.Fatal(err)
		}
		out--
	}
	first := true
	for b.Loop() {
		for _, rows := range batches {
			q := &storagepb.AppendRowsRequest{Rows: &storagepb.AppendRowsRequest_ProtoRows{
				ProtoRows: &storagepb.AppendRowsRequest_ProtoData{Rows: &storagepb.ProtoRows{SerializedRows: rows}}}}
			if first {
				q.WriteStream = tableT.Path() + "/streams/_default"
				q.GetProtoRows().WriterSchema = &storagepb.ProtoSchema{ProtoDescriptor: l.schema}
				first = false
			}
			if out == 100 {
				await()
			}
			if err := call.Send(q); err != nil {
				b.Fatal(err)
			}
			out++
		}
		for out > 0 {
			await()
		}
	}
	if err := call.CloseSend(); err != nil {
		b.Fatal(err)
	}
	if err := <-answered; err != io.EOF {
		b.Fatal(err)
	}
}

func benchManaged(b *testing.B, bq *localbq.Instance, l *load) {
	ctx := context.Background()
	client, err := managedwriter.NewClient(ctx, "p", bq.GRPCClientOptions()...)
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	ms, err := client.NewManagedStream(ctx, managedwriter.WithDestinationTable(tableT.Path()), managedwriter.WithType(managedwriter.DefaultStream),
		managedwriter.WithSchemaDescriptor(l.schema), managedwriter.WithMaxInflightRequests(100))
	if err != nil {
		b.Fatal(err)
	}
	defer ms.Close()
	batches := l.batches()
	for b.Loop() {
		var results []*managedwriter.AppendResult
		for _, rows := range batches {
			r, err := ms.AppendRows(ctx, rows)
			if err != nil {
				b.Fatal(err)
			}
			results = append(results, r)
		}
		for _, r := range results {
			if _, err := r.GetResult(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
}
