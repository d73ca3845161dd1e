package arrowrow_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/arrowrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

// sliced reads a table of 25 rows, which come in one response, in slices of 10.
type sliced struct {
	*testing.T
	mem *memory.CheckedAllocator

	connection bigquery.Connection
	source     *bigquery.ArrowSource[[]int64]
	fail       bool    // in a slice that begins with 10
	kept       []int64 // lengths of slices
}

func newSliced(t *testing.T, o bigquery.SourceOptions) *sliced {
	t.Helper()
	local, err := localbq.Start(t.Context(), localbq.Config{AutoCreateDataset: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { local.Close() })
	o.Connection = bigquery.Connection{GRPCEndpoint: local.GRPC(), RESTEndpoint: local.REST()}
	var docs []string
	for i := range 25 {
		docs = append(docs, fmt.Sprintf(`{"id":%d}`, i))
	}
	write(t, o.Connection, &table.Schema{Fields: []table.Field{{Name: "id", Type: table.Int64}}}, docs...)
	s := &sliced{T: t, mem: memory.NewCheckedAllocator(memory.NewGoAllocator()), connection: o.Connection}
	s.source, err = bigquery.NewArrowSource(bigquery.FromTable(read), bigquery.BatchDeserializer[[]int64](arrowrow.NewSlices(s.numbers, arrowrow.SliceOptions{Allocator: s.mem})), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *sliced) numbers(rec arrow.RecordBatch, emit func([]int64) error) error {
	ids := rec.Column(0).(*array.Int64)
	s.kept = append(s.kept, rec.NumRows())
	if s.fail && ids.Value(0) == 10 {
		emit(nil)
		return errors.New("a bad moment")
	}
	return emit(slices.Clone(ids.Int64Values()))
}

// split is the only one of the table.
func (s *sliced) split() stream.Split {
	s.Helper()
	woken := make(chan struct{}, 1)
	e, err := s.source.NewEnumerator(s.Context(), stream.EnumeratorContext{Job: "j", Lanes: 1, Wake: func() { woken <- struct{}{} }, Meter: stream.NoMeter, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.Fatal(err)
	}
	defer e.Close()
	<-woken
	state, err := e.Snapshot() // as a checkpoint keeps it
	if err != nil {
		s.Fatal(err)
	}
	restored, err := s.source.NewEnumerator(s.Context(), stream.EnumeratorContext{Job: "j", Lanes: 1, State: state, Wake: func() {}, Meter: stream.NoMeter, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.Fatal(err)
	}
	defer restored.Close()
	split, err := restored.Next(0)
	if err != nil {
		s.Fatal(err)
	}
	return split
}

// read reads from a position on and answers the lengths of slices, where reading resumes, and what it failed with.
func (s *sliced) read(split stream.Split) (lengths []int, next int64, err error) {
	s.Helper()
	r, err := s.source.NewReader(s.Context(), stream.ReaderContext{Job: "j", Lanes: 1, Meter: stream.NoMeter, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.Fatal(err)
	}
	defer r.Close()
	if err := r.Open(s.Context(), split); err != nil {
		s.Fatal(err)
	}
	next = split.Position
	var b stream.Batch[[]int64]
	for {
		if err := r.Fetch(s.Context(), &b); err == io.EOF {
			return lengths, next, nil
		} else if err != nil {
			return lengths, next, err
		}
		for i := range b.Len() {
			records, at, after := b.At(i)
			if at != next || records[0].Value[0] != at {
				s.Errorf("a slice at %d begins with %v, want %d", at, records[0].Value[0], next)
			}
			lengths, next = append(lengths, len(records[0].Value)), after
		}
	}
}

func TestSlices(t *testing.T) {
	t.Run("SRC-85 25 rows in slices of 10", func(t *testing.T) {
		s := newSliced(t, bigquery.SourceOptions{MaxRecordsPerFetch: 10})
		if got, next, err := s.read(s.split()); err != nil || fmt.Sprint(got) != "[10 10 5]" || next != 25 {
			t.Errorf("slices of %v up to %d: %v", got, next, err)
		}
		s.mem.AssertSize(t, 0)
	})
	for name, codec := range map[string]bigquery.ArrowCompression{"LZ4": bigquery.ArrowLZ4, "ZSTD": bigquery.ArrowZSTD} {
		t.Run("SRC-85 packed as "+name, func(t *testing.T) {
			s := newSliced(t, bigquery.SourceOptions{MaxRecordsPerFetch: 10, ArrowCompression: codec})
			if got, next, err := s.read(s.split()); err != nil || fmt.Sprint(got) != "[10 10 5]" || next != 25 {
				t.Errorf("slices of %v up to %d: %v", got, next, err)
			}
			s.mem.AssertSize(t, 0)
		})
	}
	t.Run("SRC-85 the second slice fails", func(t *testing.T) {
		s := newSliced(t, bigquery.SourceOptions{MaxRecordsPerFetch: 10})
		s.fail = true
		split := s.split()
		got, next, err := s.read(split)
		if at, ok := errors.AsType[*stream.PositionError](err); !ok || at.At.Row != 10 || fmt.Sprint(got) != "[10]" || next != 10 {
			t.Errorf("slices of %v up to %d: %v", got, next, err)
		}
		s.mem.AssertSize(t, 0)
		// What was consumed is not read again, though it is within a response.
		s.fail, split.Position, s.kept = false, next, nil
		if got, next, err := s.read(split); err != nil || fmt.Sprint(got) != "[10 5]" || next != 25 {
			t.Errorf("then slices of %v up to %d: %v", got, next, err)
		}
		s.mem.AssertSize(t, 0)
	})
	t.Run("a limit, and bytes", func(t *testing.T) {
		s := newSliced(t, bigquery.SourceOptions{MaxRecordsPerFetch: 10, Limit: 13})
		if got, next, err := s.read(s.split()); err != nil || fmt.Sprint(got) != "[10 3]" || next != 13 {
			t.Errorf("slices of %v up to %d: %v", got, next, err)
		}
		s = newSliced(t, bigquery.SourceOptions{MaxBytesPerFetch: 1})
		if got, next, err := s.read(s.split()); err != nil || len(got) != 25 || next != 25 {
			t.Errorf("slices of %v up to %d: %v", got, next, err)
		}
	})
	t.Run("SRC-86 an Avro schema for Arrow", func(t *testing.T) {
		_, err := bigquery.NewArrowSource[int](bigquery.FromTable(read), nil, bigquery.SourceOptions{ReaderSchema: `{"type":"record","name":"r","fields":[]}`, Limit: -1})
		if err == nil || !strings.Contains(err.Error(), "ReaderSchema") || !strings.Contains(err.Error(), "deserializer of batches") || !strings.Contains(err.Error(), "Limit") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("SRC-40 more rows are declared than there are", func(t *testing.T) {
		source := newSliced(t, bigquery.SourceOptions{})
		session, err := bigquery.ReadArrow(t.Context(), bigquery.FromTable(read), bigquery.SourceOptions{Connection: source.connection})
		if err != nil {
			t.Fatal(err)
		}
		s := arrowrow.NewSlices(func(arrow.RecordBatch, func(int) error) error { t.Error("a slice was handed on"); return nil }, arrowrow.SliceOptions{})
		blocks := 0
		for b, err := range session.Blocks(t.Context()) {
			blocks++
			if err == nil {
				err = s.DeserializeBatch(session.Schema(), b.Data, b.Rows+1, 100, func(int64) {}, nil)
			}
			if e, ok := errors.AsType[*row.Error](err); !ok || e.Kind != row.KindDecode || !strings.Contains(err.Error(), "25 rows, where 26 are declared") {
				t.Errorf("got %v", err)
			}
		}
		if blocks != 1 {
			t.Errorf("%d blocks", blocks)
		}
	})
	t.Run("bytes that are no batch", func(t *testing.T) {
		s := arrowrow.NewSlices(func(arrow.RecordBatch, func(int) error) error { return nil }, arrowrow.SliceOptions{})
		for _, data := range []string{"", "x", strings.Repeat("\xff", 64)} {
			err := s.DeserializeBatch([]byte(data), []byte(data), 1, 1, func(int64) {}, nil)
			if e, ok := errors.AsType[*row.Error](err); !ok || e.Kind != row.KindDecode {
				t.Errorf("%q: got %v", data, err)
			}
		}
	})
}
