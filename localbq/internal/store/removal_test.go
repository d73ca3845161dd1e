package store

import (
	"slices"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

func TestRemove(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
	makeDataset(t, s)
	ref := TableRef{Project: "p", Dataset: "d", Table: "t"}
	table := makeTable(t, s, ref, &schema.Definition{Schema: numberedSchema})
	put(t, table, numbered(0, 10))
	before := s.Version()
	w, err := table.Write(Rows{Info: table.Info(), Remove: []Range{{2, 3}, {9, 1}}, Batches: list(numbered(100, 1))})
	if err != nil || !slices.Equal(w.Gone, []Range{{2, 3}, {9, 1}}) || w.First != 10 || w.Count != 1 {
		t.Fatalf("%+v %v", w, err)
	}
	check := func(table *Table) {
		t.Helper()
		if got := ids(t, table); !slices.Equal(got, []int64{0, 1, 5, 6, 7, 8, 10}) {
			t.Errorf("rows %v", got)
		}
		if n := table.Stats().Rows; n != 7 {
			t.Errorf("%d rows", n)
		}
		old, err := table.SnapshotVersion(before)
		if err != nil || old.NumRows() != 10 {
			t.Errorf("the snapshot before: %d rows, %v", old.NumRows(), err)
		}
	}
	check(table)
	for name, remove := range map[string][]Range{"gone": {{3, 1}}, "never there": {{50, 1}}, "partly": {{0, 1}, {9, 1}}} {
		if _, err := table.Write(Rows{Info: table.Info(), Remove: remove}); !refusal.Is(err, refusal.InvalidQuery) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := table.Write(Rows{Info: table.Info(), Remove: []Range{{1, 1}, {0, 1}}}); err == nil {
		t.Error("rows in another order are removed")
	}
	check(table)
	abandon(t, s)
	again := open(t, Options{Dir: dir}) // from the log
	if table, err = again.Table(ref); err != nil {
		t.Fatal(err)
	}
	check(table)
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	again = open(t, Options{Dir: dir}) // from a checkpoint
	defer again.Close()
	table, err = again.Table(ref)
	if err != nil {
		t.Fatal(err)
	}
	check(table)
}

// ids are the ids of the visible rows.
func ids(t *testing.T, table *Table) (out []int64) {
	t.Helper()
	snapshot, err := table.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range snapshot.Parts() {
		for _, r := range p.Ranges() {
			for id := r.First; id < r.First+r.Count; id++ {
				out = append(out, id)
			}
		}
	}
	return out
}
