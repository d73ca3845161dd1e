package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/localbq/internal/cdc"
	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// keyed is a table of columns id and v with id as its key.
func keyed(staleness time.Duration) *schema.Definition {
	d := &schema.Definition{Schema: columns("id", schema.Int64, "v", schema.String), PrimaryKey: []string{"ID"}}
	if staleness > 0 {
		d.MaxStaleness = &schema.Staleness{Micros: staleness.Microseconds()}
	}
	return d
}

// mutation is one row of a write of changes: an upsert of id with v, or a delete where v is "".
type mutation struct {
	id       int64
	v        string
	sequence string
}

func mutations(t *testing.T, table *Table, all []mutation) Rows {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, table.Info().Schema.Arrow())
	rows := Rows{Info: table.Info()}
	for _, m := range all {
		b.Field(0).(*array.Int64Builder).Append(m.id)
		b.Field(1).(*array.StringBuilder).Append(m.v)
		c := cdc.Change{Delete: m.v == ""}
		if m.sequence != "" {
			var err error
			if c.Sequence, err = cdc.ParseSequence(m.sequence); err != nil {
				t.Fatal(err)
			}
		}
		rows.Changes = append(rows.Changes, c)
	}
	rows.Batches = list(b.NewRecordBatch())
	return rows
}

func mutate(t *testing.T, table *Table, all ...mutation) Written {
	t.Helper()
	w, err := table.Write(mutations(t, table, all))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// plain writes rows that are no changes.
func plain(t *testing.T, table *Table, all ...mutation) {
	t.Helper()
	rows := mutations(t, table, all)
	rows.Changes = nil
	if _, err := table.Write(rows); err != nil {
		t.Fatal(err)
	}
}

// texts are rows as "id=v", sorted, with everything that must hold of a snapshot checked.
func texts(t *testing.T, s *Snapshot, err error) []string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	last := int64(-1)
	for _, p := range s.Parts() {
		rows := int64(0)
		for _, r := range p.Ranges() {
			if r.First <= last {
				t.Fatalf("id %d follows %d", r.First, last)
			}
			last = r.First + r.Count - 1
			rows += r.Count
		}
		if rows != p.Batch.NumRows() {
			t.Fatalf("%d ids for %d rows", rows, p.Batch.NumRows())
		}
		for i := range int(rows) {
			out = append(out, fmt.Sprintf("%d=%s", p.Batch.Column(0).(*array.Int64).Value(i), p.Batch.Column(1).(*array.String).Value(i)))
		}
	}
	if int64(len(out)) != s.NumRows() {
		t.Fatalf("%d rows, NumRows says %d", len(out), s.NumRows())
	}
	slices.Sort(out)
	return out
}

func merged(t *testing.T, table *Table) []string {
	t.Helper()
	s, err := table.Snapshot()
	return texts(t, s, err)
}

func queried(t *testing.T, table *Table) []string {
	t.Helper()
	s, err := table.Query(table.store.Version())
	return texts(t, s, err)
}

func base(t *testing.T, table *Table) []string {
	t.Helper()
	s, err := table.Base(0)
	return texts(t, s, err)
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestChanges(t *testing.T) {
	setup := func(t *testing.T, staleness time.Duration) (*Table, *clock.Manual) {
		c := clock.NewManual(clock.Start)
		s := open(t, Options{Clock: c})
		makeDataset(t, s)
		return makeTable(t, s, table, keyed(staleness)), c
	}
	t.Run("LBQ-104 to LBQ-108 the greatest change of a key wins", func(t *testing.T) {
		tab, _ := setup(t, 0)
		mutate(t, tab, mutation{1, "a", "1"}, mutation{2, "b", "B"}, mutation{2, "late", "A"}, mutation{3, "", "1"})
		same(t, "after inserts", merged(t, tab), "1=a", "2=b")
		mutate(t, tab, mutation{1, "a2", "1"}, mutation{2, "later", "A"})
		same(t, "after replacements", merged(t, tab), "1=a2", "2=b")
		w := mutate(t, tab, mutation{1, "", "5"})
		same(t, "after a delete", merged(t, tab), "2=b")
		if want := []Range{{4, 1}, {6, 1}}; !reflect.DeepEqual(w.Gone, want) {
			t.Errorf("gone: %v, want %v", w.Gone, want)
		}
		mutate(t, tab, mutation{1, "zombie", "4"})
		same(t, "LBQ-112 after a late upsert", merged(t, tab), "2=b")
		if got, want := tab.Live(), []Range{{1, 1}}; !reflect.DeepEqual(got, want) {
			t.Errorf("live: %v, want %v", got, want)
		}
		if s := tab.Stats(); s.Rows != 1 || s.Bytes != 8+2+1 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("a tombstone is kept for two days of the clock", func(t *testing.T) {
		tab, c := setup(t, 0)
		mutate(t, tab, mutation{1, "", "5"})
		c.Advance(DefaultTombstoneRetention)
		mutate(t, tab, mutation{1, "still dead", "4"})
		same(t, "two days later", merged(t, tab))
		c.Advance(time.Minute)
		mutate(t, tab, mutation{1, "alive", "4"})
		same(t, "a minute more", merged(t, tab), "1=alive")
	})
	t.Run("rows that no change brought are all replaced by the first", func(t *testing.T) {
		tab, _ := setup(t, 0)
		plain(t, tab, mutation{id: 1, v: "x"}, mutation{id: 1, v: "y"}, mutation{id: 2, v: "z"})
		mutate(t, tab, mutation{1, "a", ""})
		plain(t, tab, mutation{id: 1, v: "again"})
		same(t, "with a duplicate", merged(t, tab), "1=a", "1=again", "2=z")
		mutate(t, tab, mutation{1, "b", ""})
		same(t, "without", merged(t, tab), "1=b", "2=z")
	})
	t.Run("a truncation forgets the order of changes", func(t *testing.T) {
		tab, _ := setup(t, 0)
		mutate(t, tab, mutation{1, "a", "9"}, mutation{2, "", "9"})
		rows := mutations(t, tab, []mutation{{id: 3, v: "c"}})
		rows.Changes, rows.Truncate = nil, true
		if _, err := tab.Write(rows); err != nil {
			t.Fatal(err)
		}
		mutate(t, tab, mutation{1, "b", "1"}, mutation{2, "b", "1"}, mutation{3, "d", "1"})
		same(t, "after", merged(t, tab), "1=b", "2=b", "3=d")
	})
	t.Run("LBQ-113 a table without a key takes no changes", func(t *testing.T) {
		s := inMemory(t)
		d := keyed(0)
		d.PrimaryKey = nil
		tab := makeTable(t, s, table, d)
		if _, err := tab.Write(mutations(t, tab, []mutation{{1, "a", ""}})); !refusal.Is(err, refusal.Invalid) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("mixed changes of a key are counted", func(t *testing.T) {
		tab, _ := setup(t, 0)
		if w := mutate(t, tab, mutation{1, "a", "1"}, mutation{1, "b", ""}, mutation{2, "c", ""}); w.Mixed != 1 {
			t.Errorf("%d", w.Mixed)
		}
		same(t, "the one with a number stays", merged(t, tab), "1=a", "2=c")
	})
	t.Run("snapshots go back", func(t *testing.T) {
		tab, c := setup(t, 0)
		c.Advance(time.Second)
		mutate(t, tab, mutation{1, "a", ""})
		before := c.Now()
		c.Advance(time.Hour)
		mutate(t, tab, mutation{1, "b", ""}, mutation{2, "", ""})
		s, err := tab.SnapshotAt(before)
		same(t, "an hour ago", texts(t, s, err), "1=a")
		pinned, err := tab.Snapshot()
		mutate(t, tab, mutation{1, "", ""})
		same(t, "pinned", texts(t, pinned, err), "1=b")
	})
}

func TestFreshness(t *testing.T) {
	c := clock.NewManual(clock.Start)
	s := open(t, Options{Clock: c})
	makeDataset(t, s)
	t.Run("without a max_staleness queries merge until changes are applied", func(t *testing.T) {
		tab := makeTable(t, s, table, keyed(0))
		plain(t, tab, mutation{id: 1, v: "loaded"})
		mutate(t, tab, mutation{1, "a", ""}, mutation{2, "b", ""})
		plain(t, tab, mutation{id: 3, v: "also loaded"})
		same(t, "query", queried(t, tab), "1=a", "2=b", "3=also loaded")
		same(t, "base", base(t, tab), "1=loaded", "3=also loaded")
		if !tab.Merging() {
			t.Error("does not merge")
		}
		if err := tab.Apply(); err != nil {
			t.Fatal(err)
		}
		same(t, "base after Apply", base(t, tab), "1=a", "2=b", "3=also loaded")
		if tab.Merging() {
			t.Error("still merges")
		}
		mutate(t, tab, mutation{1, "", ""})
		same(t, "base", base(t, tab), "1=a", "2=b", "3=also loaded")
		same(t, "query", queried(t, tab), "2=b", "3=also loaded")
	})
	t.Run("LBQ-119 with 10 minutes a query may see the old row, and then the new", func(t *testing.T) {
		tab := makeTable(t, s, dataset.Table("stale"), keyed(10*time.Minute))
		c.Advance(time.Second) // versions run ahead of a clock that stands still
		mutate(t, tab, mutation{1, "a", ""})
		c.Advance(10 * time.Minute)
		same(t, "query", queried(t, tab), "1=a")
		mutate(t, tab, mutation{1, "b", ""})
		c.Advance(10*time.Minute - time.Microsecond*10)
		mutate(t, tab, mutation{2, "c", ""})
		same(t, "query before", queried(t, tab), "1=a")
		if tab.Merging() {
			t.Error("merges, though the base is fresh enough")
		}
		before := c.Now()
		c.Advance(10 * time.Microsecond)
		same(t, "query after", queried(t, tab), "1=b", "2=c")
		old, err := tab.QueryAt(before)
		same(t, "a query that goes back", texts(t, old, err), "1=a")
		mutate(t, tab, mutation{2, "d", ""})
		same(t, "query of the next change", queried(t, tab), "1=b", "2=c")
	})
}

// TestChangesAgainstAModel writes changes of few keys in many small writes, with plain rows between them, through restarts
// and checkpoints at random, and compares with the obvious way.
func TestChangesAgainstAModel(t *testing.T) {
	type best struct {
		rank, at int
		v        string
	}
	random := rand.New(rand.NewPCG(7, 11))
	o := Options{Dir: t.TempDir(), Clock: clock.NewManual(clock.Start)}
	s := open(t, o)
	makeDataset(t, s)
	tab := makeTable(t, s, table, keyed(0))
	model := map[int64]best{}
	loaded := map[int64][]string{}
	for round := range 120 {
		var batch []mutation
		for i := range 1 + random.IntN(40) {
			m := mutation{id: int64(random.IntN(30)), v: fmt.Sprintf("%d.%d", round, i)}
			if random.IntN(4) == 0 {
				m.v = ""
			}
			rank := random.IntN(50)
			m.sequence = fmt.Sprintf("%X", rank)
			if old, ok := model[m.id]; !ok || rank >= old.rank {
				model[m.id] = best{rank, round, m.v}
				delete(loaded, m.id)
			}
			batch = append(batch, m)
		}
		mutate(t, tab, batch...)
		if random.IntN(3) == 0 {
			m := mutation{id: int64(random.IntN(30)), v: fmt.Sprintf("plain %d", round)}
			plain(t, tab, m)
			loaded[m.id] = append(loaded[m.id], m.v)
		}
		switch random.IntN(6) {
		case 0:
			if err := s.checkpoint(); err != nil {
				t.Fatal(err)
			}
		case 1:
			live, stats := tab.Live(), tab.Stats()
			abandon(t, s)
			s = open(t, o)
			tab = lookUp(t, s)
			if !reflect.DeepEqual(tab.Live(), live) || tab.Stats() != stats {
				t.Fatalf("round %d: %v %+v after a restart, want %v %+v", round, tab.Live(), tab.Stats(), live, stats)
			}
		case 2:
			closeStore(t, s)
			s = open(t, o)
			tab = lookUp(t, s)
		case 3:
			if err := tab.Apply(); err != nil {
				t.Fatal(err)
			}
			same(t, "base", base(t, tab), merged(t, tab)...)
		}
		var want []string
		for _, id := range slices.Sorted(maps.Keys(model)) {
			if v := model[id].v; v != "" {
				want = append(want, fmt.Sprintf("%d=%s", id, v))
			}
		}
		for id, values := range loaded {
			for _, v := range values {
				want = append(want, fmt.Sprintf("%d=%s", id, v))
			}
		}
		slices.Sort(want)
		if got := merged(t, tab); !slices.Equal(got, want) {
			t.Fatalf("round %d: %v, want %v", round, got, want)
		}
	}
	closeStore(t, s)
}

func lookUp(t *testing.T, s *Store) *Table {
	t.Helper()
	tab, err := s.Table(table)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func TestDurableFreshness(t *testing.T) {
	for _, checkpoint := range []bool{false, true} {
		t.Run(fmt.Sprintf("checkpoint %t", checkpoint), func(t *testing.T) {
			c := clock.NewManual(clock.Start)
			o := Options{Dir: t.TempDir(), Clock: c, TombstoneRetention: time.Hour}
			s := open(t, o)
			makeDataset(t, s)
			tab := makeTable(t, s, table, keyed(0))
			mutate(t, tab, mutation{1, "a", "1"}, mutation{3, "", "9"})
			if err := tab.Apply(); err != nil {
				t.Fatal(err)
			}
			c.Advance(2 * time.Hour)
			mutate(t, tab, mutation{1, "b", "2"}, mutation{2, "c", "2"}, mutation{3, "back", "1"})
			if checkpoint {
				if err := s.checkpoint(); err != nil {
					t.Fatal(err)
				}
			}
			abandon(t, s)
			o.TombstoneRetention = 48 * time.Hour // what an hour has forgotten stays forgotten
			s = open(t, o)
			tab = lookUp(t, s)
			same(t, "merged", merged(t, tab), "1=b", "2=c", "3=back")
			same(t, "base", base(t, tab), "1=a")
			if !tab.Merging() {
				t.Error("does not merge any more")
			}
			mutate(t, tab, mutation{1, "old", "1"})
			same(t, "merged after a low change", merged(t, tab), "1=b", "2=c", "3=back")
			closeStore(t, s)
		})
	}
}

func TestForgottenChanges(t *testing.T) {
	c := clock.NewManual(clock.Start)
	s := open(t, Options{Clock: c, Dir: t.TempDir()})
	makeDataset(t, s)
	tab := makeTable(t, s, table, keyed(0))
	var many []mutation
	for i := range int64(maxChunkRows) {
		many = append(many, mutation{i % 100, "v", ""})
	}
	mutate(t, tab, many...)
	mutate(t, tab, many[:100]...)
	if err := tab.Apply(); err != nil {
		t.Fatal(err)
	}
	c.Advance(timeTravel + time.Hour)
	if err := s.checkpoint(); err != nil {
		t.Fatal(err)
	}
	if n := len(tab.chunks); n != 1 {
		t.Errorf("%d chunks, want the one that lives", n)
	}
	if got, want := tab.Live(), []Range{{maxChunkRows, 100}}; !reflect.DeepEqual(got, want) {
		t.Errorf("live: %v, want %v", got, want)
	}
	if got := merged(t, tab); len(got) != 100 {
		t.Errorf("%d rows", len(got))
	}
	closeStore(t, s)
}
