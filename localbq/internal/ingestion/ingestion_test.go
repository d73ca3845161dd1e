package ingestion_test

import (
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/ingestion"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// arrived is a table of one column whose rows came in three writes: two rows, a day later three, an hour later one.
func arrived(t *testing.T, unit string) *store.Table {
	t.Helper()
	c := clock.NewManual(time.Date(2026, 12, 31, 22, 30, 0, 0, time.UTC))
	s, err := store.Open(store.Options{Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	ref := store.TableRef{Project: "p", Dataset: "d", Table: "t"}
	if _, err := s.CreateDataset(ref.DatasetRef(), store.DatasetOptions{}); err != nil {
		t.Fatal(err)
	}
	table, err := s.CreateTable(ref, &schema.Definition{
		Schema:    &schema.Schema{Fields: []*schema.Field{{Name: "n", Type: schema.Int64}}},
		Partition: &schema.TimePartition{Type: unit},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct {
		rows int64
		wait time.Duration
	}{{2, 24 * time.Hour}, {3, time.Hour}, {1, 0}} {
		b := array.NewInt64Builder(memory.DefaultAllocator)
		for n := range w.rows {
			b.Append(n)
		}
		info := table.Info()
		batch := array.NewRecordBatch(info.Schema.Arrow(), []arrow.Array{b.NewArray()}, w.rows)
		if _, err := table.Write(store.Rows{Info: info, Batches: []arrow.RecordBatch{batch}}); err != nil {
			t.Fatal(err)
		}
		c.Advance(w.wait)
	}
	return table
}

func TestAppend(t *testing.T) {
	day := func(month time.Month, day, hour int) time.Time {
		year := 2026
		if month == time.January {
			year = 2027
		}
		return time.Date(year, month, day, hour, 0, 0, 0, time.UTC)
	}
	for unit, want := range map[string][3]time.Time{
		"HOUR":  {day(12, 31, 22), day(1, 1, 22), day(1, 1, 23)},
		"DAY":   {day(12, 31, 0), day(1, 1, 0), day(1, 1, 0)},
		"MONTH": {day(12, 1, 0), day(1, 1, 0), day(1, 1, 0)},
		"YEAR":  {time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), day(1, 1, 0), day(1, 1, 0)},
	} {
		t.Run(unit, func(t *testing.T) {
			table := arrived(t, unit)
			d := table.Info().Definition
			snapshot, err := table.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			var got []time.Time
			for _, p := range snapshot.Parts() {
				b := ingestion.Append(table, d, p)
				if names := fieldNames(b.Schema()); !slices.Equal(names, columnNames(d)) {
					t.Fatalf("columns %v, want %v", names, columnNames(d))
				}
				for i, v := range b.Column(1).(*array.Timestamp).Values() {
					at := time.UnixMicro(int64(v)).UTC()
					got = append(got, at)
					if unit == "DAY" && b.Column(2).(*array.Date32).Value(i).ToTime() != at {
						t.Errorf("row %d: _PARTITIONDATE %v at %v", i, b.Column(2).(*array.Date32).Value(i).ToTime(), at)
					}
				}
			}
			if all := []time.Time{want[0], want[0], want[1], want[1], want[1], want[2]}; !slices.Equal(got, all) {
				t.Errorf("got %v\nwant %v", got, all)
			}
		})
	}
}

func columnNames(d *schema.Definition) []string {
	if d.Partition.Type == "DAY" {
		return []string{"n", "_PARTITIONTIME", "_PARTITIONDATE"}
	}
	return []string{"n", "_PARTITIONTIME"}
}

func fieldNames(s *arrow.Schema) (names []string) {
	for _, f := range s.Fields() {
		names = append(names, f.Name)
	}
	return names
}

func TestNoColumns(t *testing.T) {
	for name, d := range map[string]*schema.Definition{
		"unpartitioned": {},
		"by a column":   {Partition: &schema.TimePartition{Type: "DAY", Field: "day"}},
	} {
		if c := ingestion.Columns(d); c != nil {
			t.Errorf("%s: %v", name, c)
		}
	}
}
