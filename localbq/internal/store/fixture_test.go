package store

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"go.uber.org/goleak"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

func TestMain(m *testing.M) {
	if workAsChild() {
		return
	}
	goleak.VerifyTestMain(m)
}

var (
	dataset = DatasetRef{"p", "d"}
	table   = dataset.Table("t")
)

// columns is a schema of (name, type) pairs, NULLABLE.
func columns(pairs ...any) *schema.Schema {
	s := &schema.Schema{}
	for i := 0; i < len(pairs); i += 2 {
		s.Fields = append(s.Fields, &schema.Field{Name: pairs[i].(string), Type: pairs[i+1].(schema.Type)})
	}
	return s
}

// open opens a store that is closed at the end of the test, unless the test closes it itself.
func open(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// inMemory is a store with dataset d.
func inMemory(t *testing.T) *Store {
	t.Helper()
	s := open(t, Options{Clock: clock.NewManual(clock.Start)})
	makeDataset(t, s)
	return s
}

func makeDataset(t *testing.T, s *Store) {
	t.Helper()
	if _, err := s.CreateDataset(dataset, DatasetOptions{}); err != nil {
		t.Fatal(err)
	}
}

func makeTable(t *testing.T, s *Store, ref TableRef, d *schema.Definition) *Table {
	t.Helper()
	made, err := s.CreateTable(ref, d)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// numbered is a batch of rows of columns n INT64 and s STRING that count up from from.
func numbered(from, rows int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, numberedSchema.Arrow())
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(from + i))
		if (from+i)%3 == 0 {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("row %d", from+i))
		}
	}
	return b.NewRecordBatch()
}

var numberedSchema = columns("n", schema.Int64, "s", schema.String)

func put(t *testing.T, table *Table, batches ...arrow.RecordBatch) Written {
	t.Helper()
	w, err := table.Write(Rows{Info: table.Info(), Batches: batches})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// numbers are the values of the first column of a table now, with their ids checked for being consecutive from first.
func numbers(t *testing.T, table *Table, first int64) []int64 {
	t.Helper()
	s, err := table.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return snapshotNumbers(t, s, first)
}

func snapshotNumbers(t *testing.T, s *Snapshot, first int64) []int64 {
	t.Helper()
	var out []int64
	for _, p := range s.Parts() {
		if p.First != first+int64(len(out)) {
			t.Fatalf("a part begins with id %d, want %d", p.First, first+int64(len(out)))
		}
		if !p.Batch.Schema().Equal(s.Info.Schema.Arrow()) {
			t.Fatalf("a part has schema %v, want %v", p.Batch.Schema(), s.Info.Schema.Arrow())
		}
		out = append(out, p.Batch.Column(0).(*array.Int64).Int64Values()...)
	}
	if int64(len(out)) != s.NumRows() {
		t.Fatalf("%d rows in parts, NumRows says %d", len(out), s.NumRows())
	}
	return out
}

// upTo is 0, 1, … n-1.
func upTo(n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}

func list(batches ...arrow.RecordBatch) []arrow.RecordBatch { return batches }
