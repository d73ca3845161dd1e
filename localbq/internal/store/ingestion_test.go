package store

import (
	"slices"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// times are when rows count as ingested, as first id, count and microsecond; 0 is that of their version.
func times(tab *Table) (out [][3]int64) {
	for _, run := range tab.Ingested(0, 1000) {
		if run.At == run.Version {
			run.At = 0
		}
		out = append(out, [3]int64{run.First, run.Count, run.At})
	}
	return out
}

func TestIngestedSurvives(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir, Clock: clock.NewManual(clock.Start)})
	makeDataset(t, s)
	tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
	write := func(r Rows) {
		t.Helper()
		r.Info = tab.Info()
		if _, err := tab.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	write(Rows{Batches: list(numbered(0, 2), numbered(2, 3), numbered(5, 1)), Ingested: []int64{10, 20, 0}})
	if err := s.checkpoint(); err != nil {
		t.Fatal(err)
	}
	write(Rows{Batches: list(numbered(6, 2)), Ingested: []int64{20}, Pick: func(found *Snapshot) ([]Range, error) {
		if found.NumRows() != 6 {
			t.Errorf("picking among %d rows, want 6", found.NumRows())
		}
		return []Range{{2, 3}}, nil
	}})
	write(Rows{Batches: list(numbered(8, 1))})
	_, err := tab.Write(Rows{Info: tab.Info(), Batches: list(numbered(9, 1)), Pick: func(*Snapshot) ([]Range, error) {
		return nil, refusal.New(refusal.Duplicate, "no")
	}})
	if !refusal.Is(err, refusal.Duplicate) {
		t.Errorf("a write whose pick refuses: %v", err)
	}
	if _, err := tab.Write(Rows{Info: tab.Info(), Batches: list(numbered(9, 1)), Ingested: []int64{1, 2}}); err == nil {
		t.Error("two times for one batch are taken")
	}
	want := [][3]int64{{0, 2, 10}, {2, 3, 20}, {5, 1, 0}, {6, 2, 20}, {8, 1, 0}}
	check := func(when string) {
		t.Helper()
		if got := times(tab); !slices.Equal(got, want) {
			t.Errorf("%s: ingested %v, want %v", when, got, want)
		}
		if got := tab.Stats().Rows; got != 6 {
			t.Errorf("%s: %d rows, want 6", when, got)
		}
		if got := tab.Live(); !slices.Equal(got, []Range{{0, 2}, {5, 4}}) {
			t.Errorf("%s: rows %v are there", when, got)
		}
	}
	check("before")
	reopen := func(end func(*testing.T, *Store)) {
		end(t, s)
		s = open(t, Options{Dir: dir, Clock: clock.NewManual(clock.Start)})
		if tab, err = s.Table(table); err != nil {
			t.Fatal(err)
		}
	}
	reopen(abandon)
	check("of the log")
	reopen(closeStore)
	check("of a checkpoint")
	closeStore(t, s)
}
