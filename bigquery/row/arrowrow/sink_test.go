package arrowrow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

// letters is a failure policy that keeps what it is given.
type letters struct {
	mu   sync.Mutex
	kept []stream.FailedRecord
}

func (l *letters) NewHandler(context.Context, stream.HandlerContext) (stream.FailureHandler, error) {
	return letterHandler{l}, nil
}

type letterHandler struct{ l *letters }

func (h letterHandler) Handle(_ context.Context, f *stream.FailedRecord) error {
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	kept := *f
	kept.Row, kept.Original = slices.Clone(f.Row), slices.Clone(f.Original)
	h.l.kept = append(h.l.kept, kept)
	return nil
}

func (letterHandler) Flush(context.Context) error { return nil }
func (letterHandler) Close() error                { return nil }

// asItIs is a sink that sends batches as they are, and one lane of it.
func (s *service) asItIs(to bigquery.Resolver[Row], rows row.Serializer[Row], o bigquery.SinkOptions) stream.Writer[Row] {
	s.t.Helper()
	o.Connection = bigquery.Connection{GRPCEndpoint: s.local.GRPC(), RESTEndpoint: s.local.REST()}
	o.DefaultStream.ArrowBatches = true
	o.Create.Datasets = true
	sink, err := bigquery.NewSink(to, rows, o)
	if err != nil {
		s.t.Fatal(err)
	}
	w, err := sink.NewWriter(context.Background(), stream.WriterContext{Job: "j", Lanes: 1, Meter: stream.NoMeter, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.t.Fatal(err)
	}
	return w
}

// counted counts how rows go.
type counted struct {
	*Serializer
	known map[row.Columns]*countedColumns

	requests, asTheyAre, one int // batches, rows of them, rows one by one
}

type countedColumns struct {
	row.Columns
	c *counted
}

func (c *counted) Columns(dst table.Destination, rec Row) (row.Columns, int) {
	columns, i := c.Serializer.Columns(dst, rec)
	if columns == nil {
		c.one++
		return nil, 0
	}
	if c.known[columns] == nil {
		c.known[columns] = &countedColumns{columns, c}
	}
	return c.known[columns], i
}

func (c *countedColumns) Append(buf []byte, from, to int) ([]byte, error) {
	c.c.requests++
	c.c.asTheyAre += to - from
	return c.Columns.Append(buf, from, to)
}

func (c *countedColumns) AppendRow(buf []byte, i int) ([]byte, error) {
	c.c.one++
	return c.Columns.AppendRow(buf, i)
}

func count(s *Serializer) *counted {
	return &counted{Serializer: s, known: map[row.Columns]*countedColumns{}}
}

// stored are the rows of a table, in the form of row messages and in order.
func (s *service) stored(dst table.Destination, schema *table.Schema) (all []string) {
	for _, r := range s.batches(dst.Path()) {
		ser, err := New(r.Schema(), Options{Schema: schema})
		if err != nil {
			s.t.Fatal(err)
		}
		back := newBatch(s.t, r)
		for i := range back.Len() {
			out, err := ser.AppendRow(nil, dst, Row{back, i})
			if err != nil {
				s.t.Fatal(err)
			}
			all = append(all, string(out))
		}
	}
	slices.Sort(all)
	return all
}

func destinationOf(name string) table.Destination {
	return table.Destination{Project: localbq.DefaultProject, Dataset: "d", Table: name}
}

// TestSinkOfRandomBatches: whatever rows of whatever batches go, in whatever order, as they are or not, they arrive once each.
func TestSinkOfRandomBatches(t *testing.T) {
	s := newService(t)
	made, asTheyAre := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		made++
		schema := rowtest.Schemas(rowtest.Types(), 2).Draw(rt, "schema")
		plain(schema.Fields)
		pick := choose(first)
		if rapid.IntRange(0, 3).Draw(rt, "forms") == 0 {
			pick = drawn(rt) // not all of which go as they are
		}
		a := arrowSchema(pick, schema)
		rows, err := New(a, Options{Schema: schema})
		if err != nil {
			rt.Fatal(err)
		}
		dst, counts := destinationOf(fmt.Sprintf("random%d", made)), count(rows)
		w := s.asItIs(bigquery.To[Row](dst), counts, bigquery.SinkOptions{
			DefaultStream: bigquery.DefaultStreamOptions{MaxAppendBytes: rapid.SampledFrom([]int{1, 64, 4096, 1 << 19}).Draw(rt, "append")}})
		var want []string
		for range rapid.IntRange(1, 3).Draw(rt, "batches") {
			values := make([][]row.Value, rapid.IntRange(1, 12).Draw(rt, "rows"))
			for i := range values {
				values[i] = rowtest.Rows(schema).Draw(rt, "row")
				tame(schema.Fields, values[i])
			}
			b := newBatch(t, build(t, a, schema, values))
			for i := range values {
				if rapid.IntRange(0, 5).Draw(rt, "left out") == 0 {
					continue
				}
				want = append(want, string(rowtest.Encode(schema.Fields, values[i])))
				if err := w.Write(t.Context(), &stream.Record[Row]{Value: Row{b, i}}); err != nil {
					rt.Fatal(err)
				}
			}
			if rapid.Bool().Draw(rt, "flush") {
				if err := w.Flush(t.Context(), false); err != nil {
					rt.Fatal(err)
				}
			}
			b.Release()
		}
		if err := errors.Join(w.Flush(t.Context(), true), w.Close()); err != nil {
			rt.Fatal(err)
		}
		if tally := w.(stream.Tallier).Tally(); tally.Written != int64(len(want)) {
			rt.Errorf("%+v, want %d written", tally, len(want))
		}
		if len(want) == 0 {
			return
		}
		slices.Sort(want)
		if got := s.stored(dst, schema); !slices.Equal(got, want) {
			rt.Fatalf("stored %x, want %x", got, want)
		}
		if counts.asTheyAre+counts.one != len(want) {
			rt.Errorf("%d rows as they are and %d one by one: want %d", counts.asTheyAre, counts.one, len(want))
		}
		if counts.asTheyAre > 0 {
			asTheyAre++
		}
	})
	if asTheyAre < made/10 {
		t.Errorf("batches of %d runs of %d went as they are: the test is about nothing", asTheyAre, made)
	}
}

// numbers is a batch of n rows with an id, a text, a date, and a document.
func numbers(t testing.TB, mem memory.Allocator, from, n int) *Batch {
	t.Helper()
	b := array.NewRecordBuilder(mem, numberSchema)
	defer b.Release()
	for i := from; i < from+n; i++ {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("row %d %s", i, strings.Repeat("x", 100)))
		b.Field(2).(*array.Date32Builder).Append(arrow.Date32(i % 10000))
		b.Field(3).(*array.StringBuilder).Append(`{"n": 1}`)
	}
	r := b.NewRecordBatch()
	defer r.Release()
	return newBatch(t, r)
}

var (
	numberSchema = arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, optional("text", arrow.BinaryTypes.String),
		optional("day", arrow.FixedWidthTypes.Date32), optional("doc", arrow.BinaryTypes.String)}, nil)
	numberColumns = &table.Schema{Fields: []table.Field{{Name: "id", Type: table.Int64}, {Name: "text", Type: table.String},
		{Name: "day", Type: table.Date}, {Name: "doc", Type: table.JSON}}}
)

func numberRows(t testing.TB) *Serializer {
	t.Helper()
	rows, err := New(numberSchema, Options{Schema: numberColumns})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func writeAll(t testing.TB, w stream.Writer[Row], b *Batch, split string) {
	t.Helper()
	for i := range b.Len() {
		r := &stream.Record[Row]{Value: Row{b, i}, At: stream.Position{Split: split, Row: int64(i)}}
		if err := w.Write(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
}

func finish(t testing.TB, w stream.Writer[Row]) {
	t.Helper()
	if err := errors.Join(w.Flush(context.Background(), true), w.Close()); err != nil {
		t.Fatal(err)
	}
}

// A table that is not there is created, long batches are cut into requests, and batches are let go of.
func TestSinkSendsBatchesAsTheyAre(t *testing.T) {
	s := newService(t)
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	dst := destinationOf("created")
	counts := count(numberRows(t))
	w := s.asItIs(bigquery.To[Row](dst), counts, bigquery.SinkOptions{})
	for i := range 5 {
		b := numbers(t, mem, i*4000, 4000)
		writeAll(t, w, b, "a")
		b.Release()
	}
	finish(t, w)
	if n, err := s.local.NumRows("d.created"); err != nil || n != 20000 {
		t.Errorf("%d rows, %v", n, err)
	}
	// The first rows, and the last ones, which fill no request.
	if counts.one > 1000 || counts.asTheyAre != 20000-counts.one || counts.requests > 12 {
		t.Errorf("%d rows one by one, %d as they are in %d requests", counts.one, counts.asTheyAre, counts.requests)
	}
}

// Rows that are refused go to the failure handler, each with its place, and all others into the table.
func TestSinkRoutesRefusedRowsOfBatches(t *testing.T) {
	s := newService(t)
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	dst := destinationOf("refused")
	var l letters
	w := s.asItIs(bigquery.To[Row](dst), numberRows(t), bigquery.SinkOptions{Failures: &l})
	broken := brokenNumbers(t, mem, 4000)
	writeAll(t, w, broken, "b")
	broken.Release()
	finish(t, w)
	if n, err := s.local.NumRows("d.refused"); err != nil || n != 3994 {
		t.Errorf("%d rows, %v", n, err)
	}
	if tally := w.(stream.Tallier).Tally(); tally.Written != 3994 || tally.DeadLettered != 6 {
		t.Errorf("%+v", tally)
	}
	var places []string
	for _, f := range l.kept {
		made := "no row"
		if f.Row != nil {
			made = "a row"
		}
		places = append(places, fmt.Sprintf("%s: %s", f.At, made))
		if !strings.Contains(f.Reason, "refused by the service") || f.Destination != dst.String() {
			t.Errorf("%+v", f)
		}
	}
	slices.Sort(places)
	// A day beyond the year 9999 has no row either; text that is no JSON has one.
	want := []string{"b@107: a row", "b@1107: a row", "b@2107: a row", "b@300: no row", "b@3107: a row", "b@3300: no row"}
	if !slices.Equal(places, want) {
		t.Errorf("failed: %q, want %q", places, want)
	}
}

func brokenNumbers(t testing.TB, mem memory.Allocator, n int) *Batch {
	t.Helper()
	b := array.NewRecordBuilder(mem, numberSchema)
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append(strings.Repeat("y", 100))
		day, doc := arrow.Date32(i), `{}`
		if i%3000 == 300 {
			day = 3_000_000
		}
		if i%1000 == 107 {
			doc = "no JSON"
		}
		b.Field(2).(*array.Date32Builder).Append(day)
		b.Field(3).(*array.StringBuilder).Append(doc)
	}
	r := b.NewRecordBatch()
	defer r.Release()
	return newBatch(t, r)
}

// Rows that are far longer than those before are cut into requests that the service takes; one that no request holds is refused.
func TestSinkOfBatchesWithLongRows(t *testing.T) {
	s := newService(t)
	dst := destinationOf("long")
	var l letters
	counts := count(numberRows(t))
	w := s.asItIs(bigquery.To[Row](dst), counts, bigquery.SinkOptions{Failures: &l})
	b := array.NewRecordBuilder(memory.DefaultAllocator, numberSchema)
	defer b.Release()
	for i := range 1200 {
		text := strings.Repeat("z", 100)
		switch {
		case i == 1150:
			text = strings.Repeat("z", 9<<20+1)
		case i > 1100:
			text = strings.Repeat("z", 1<<20)
		}
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append(text)
		b.Field(2).(*array.Date32Builder).Append(0)
		b.Field(3).(*array.StringBuilder).AppendNull()
	}
	writeAll(t, w, newBatch(t, b.NewRecordBatch()), "l")
	finish(t, w)
	if n, err := s.local.NumRows("d.long"); err != nil || n != 1199 {
		t.Errorf("%d rows, %v", n, err)
	}
	if counts.asTheyAre < 1000 {
		t.Errorf("%d rows went as they are", counts.asTheyAre)
	}
	if len(l.kept) != 1 || l.kept[0].At.Row != 1150 || !strings.Contains(l.kept[0].Reason, "expected at most 9437184") {
		t.Errorf("%d letters", len(l.kept))
	}
}

// A table that lacks a column gets it, where that is allowed, and one that may not be changed ends the writer with a word about it.
func TestSinkOfBatchesWithMoreColumns(t *testing.T) {
	s := newService(t)
	fewer := &table.Schema{Fields: numberColumns.Fields[:3]}
	for _, update := range []bool{true, false} {
		path, err := s.table(fewer)
		if err != nil {
			t.Fatal(err)
		}
		dst := destinationOf(path[strings.LastIndexByte(path, '/')+1:])
		counts := count(numberRows(t))
		w := s.asItIs(bigquery.To[Row](dst), counts, bigquery.SinkOptions{SchemaUpdate: bigquery.SchemaUpdate{AllowNewFields: update}})
		b := numbers(t, memory.DefaultAllocator, 0, 4000)
		for i := range b.Len() {
			if err = w.Write(t.Context(), &stream.Record[Row]{Value: Row{b, i}}); err != nil {
				break
			}
		}
		err = errors.Join(err, w.Flush(t.Context(), true), w.Close())
		if update && err != nil || !update && !errors.Is(err, bigquery.ErrSchemaMismatch) {
			t.Errorf("update %v: %v", update, err)
		}
		if n, err := s.local.NumRows("d." + dst.Table); update && (err != nil || n != 4000 || counts.asTheyAre == 0) {
			t.Errorf("%d rows, %d as they are, %v", n, counts.asTheyAre, err)
		}
	}
}

// Appends that fail in passing are sent again as they were.
func TestSinkOfBatchesSendsAgain(t *testing.T) {
	s := newService(t)
	match := func(nth int) localbq.FaultMatch {
		return localbq.FaultMatch{Method: "AppendRows", MinRows: 1000, Nth: nth}
	}
	for _, f := range []localbq.Fault{
		{Name: "busy", Match: match(2), Action: localbq.FaultAction{Status: &localbq.FaultStatus{Code: "UNAVAILABLE"}}},
		{Name: "cut", Match: match(4), Action: localbq.FaultAction{Reset: true}},
	} {
		if err := s.local.Faults().Add(f); err != nil {
			t.Fatal(err)
		}
	}
	dst := destinationOf("again")
	counts := count(numberRows(t))
	w := s.asItIs(bigquery.To[Row](dst), counts, bigquery.SinkOptions{})
	writeAll(t, w, numbers(t, memory.DefaultAllocator, 0, 20000), "a")
	finish(t, w)
	s.local.Faults().MustAllFire(t)
	// At least once: what was taken before the connection was cut, and not answered, is there again.
	if n := len(slices.Compact(s.stored(dst, numberColumns))); n != 20000 {
		t.Errorf("%d rows", n)
	}
}

func TestArrowBatchesNeedASerializerOfThem(t *testing.T) {
	_, err := bigquery.NewSink(bigquery.To[Row](destinationOf("x")), plainSerializer{numberRows(t)},
		bigquery.SinkOptions{DefaultStream: bigquery.DefaultStreamOptions{ArrowBatches: true}})
	if err == nil || !strings.Contains(err.Error(), "DefaultStream.ArrowBatches needs a serializer of Arrow batches") {
		t.Errorf("%v", err)
	}
}

type plainSerializer struct{ row.Serializer[Row] }
