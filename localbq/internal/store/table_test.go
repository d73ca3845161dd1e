package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

func TestWrite(t *testing.T) {
	t.Run("many small appends end in few pieces and keep their order and ids", func(t *testing.T) {
		s := inMemory(t)
		tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
		const rows = 70_000
		for at := 0; at < rows; {
			n := min(1+at%37, rows-at)
			put(t, tab, numbered(at, n))
			at += n
		}
		if got := numbers(t, tab, 0); !slices.Equal(got, upTo(rows)) {
			t.Fatalf("%d rows, or in another order", len(got))
		}
		for i, c := range tab.chunks {
			if len(c.pieces) > 4*fanIn || c.rows > maxChunkRows {
				t.Errorf("chunk %d has %d rows in %d pieces", i, c.rows, len(c.pieces))
			}
		}
		if len(tab.chunks) != 2 || tab.chunks[0].rows != maxChunkRows {
			t.Errorf("%d chunks, the first of %d rows, want 2 and %d", len(tab.chunks), tab.chunks[0].rows, maxChunkRows)
		}
	})
	t.Run("a large batch is cut into chunks without a copy", func(t *testing.T) {
		s := inMemory(t)
		tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
		put(t, tab, numbered(0, 3))
		put(t, tab, numbered(3, 2*maxChunkRows))
		if got := numbers(t, tab, 0); !slices.Equal(got, upTo(3+2*maxChunkRows)) {
			t.Errorf("%d rows, or in another order", len(got))
		}
		if len(tab.chunks) != 3 {
			t.Errorf("%d chunks, want 3", len(tab.chunks))
		}
	})
	t.Run("versions strictly increase while the clock stands still", func(t *testing.T) {
		s := inMemory(t)
		tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
		last := s.Version()
		for i := range 10 {
			w := put(t, tab, numbered(i, 1))
			if w.After <= last || w.Before != last {
				t.Fatalf("append %d went from version %d to %d, want from %d", i, w.Before, w.After, last)
			}
			last = w.After
		}
	})
	t.Run("a dropped table takes nothing", func(t *testing.T) {
		s := inMemory(t)
		tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
		if err := s.DeleteTable(table); err != nil {
			t.Fatal(err)
		}
		again := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
		_, err := tab.Write(Rows{Info: tab.Info(), Batches: nil, Count: 1})
		if !refusal.Is(err, refusal.NotFound) {
			t.Errorf("got %v, want notFound", err)
		}
		if again.Instance() == tab.Instance() || !tab.Dropped() || again.Dropped() {
			t.Error("the two instances are not told apart")
		}
	})
	t.Run("truncate with a new definition replaces schema and rows at one version", func(t *testing.T) {
		s := inMemory(t)
		tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
		put(t, tab, numbered(0, 5))
		before, err := tab.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		next := columns("only", schema.Int64)
		b := numbered(7, 2)
		w, err := tab.Write(Rows{
			Truncate: true, Definition: &schema.Definition{Schema: next},
			Batches: []arrow.RecordBatch{array.NewRecordBatch(next.Arrow(), b.Columns()[:1], 2)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if w.First != 5 || w.Removed != 5 || w.Count != 2 {
			t.Errorf("got %+v, want the rows 5 and 6 and 5 removed", w)
		}
		if got := numbers(t, tab, 5); !slices.Equal(got, []int64{7, 8}) {
			t.Errorf("rows now: %v", got)
		}
		if got := snapshotNumbers(t, before, 0); !slices.Equal(got, upTo(5)) {
			t.Errorf("rows of the snapshot before: %v", got)
		}
		if st := tab.Stats(); st.Rows != 2 || st.Bytes != 16 {
			t.Errorf("stats %+v, want 2 rows of 16 bytes", st)
		}
	})
	t.Run("truncated rows are forgotten once time travel cannot reach them", func(t *testing.T) {
		manual := clock.NewManual(clock.Start)
		s := open(t, Options{Clock: manual})
		makeDataset(t, s)
		tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
		replace := func(from int) {
			if _, err := tab.Write(Rows{Info: tab.Info(), Truncate: true, Batches: list(numbered(from, 2))}); err != nil {
				t.Fatal(err)
			}
		}
		replace(0)
		replace(2)
		if len(tab.chunks) != 2 {
			t.Errorf("%d chunks, want 2", len(tab.chunks))
		}
		manual.Advance(169 * time.Hour)
		replace(4)
		if len(tab.chunks) != 2 || !slices.Equal(numbers(t, tab, 4), []int64{4, 5}) {
			t.Errorf("%d chunks, rows %v", len(tab.chunks), numbers(t, tab, 4))
		}
	})
	t.Run("a new schema without truncation is for a table without rows", func(t *testing.T) {
		s := inMemory(t)
		tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
		put(t, tab, numbered(0, 5))
		_, err := tab.Write(Rows{Definition: &schema.Definition{Schema: columns("x", schema.Int64)}})
		if !refusal.Is(err, refusal.Invalid) {
			t.Errorf("got %v, want invalid", err)
		}
	})
	t.Run("modes that keep no rows count them, and refuse reads with 501", func(t *testing.T) {
		s := inMemory(t)
		tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
		if err := s.SetMode(table, ModeNull); err != nil {
			t.Fatal(err)
		}
		if _, err := tab.Write(Rows{Info: tab.Info(), Count: 12}); err != nil {
			t.Fatal(err)
		}
		if rows := tab.Stats().Rows; rows != 12 {
			t.Errorf("%d rows, want 12", rows)
		}
		if err := s.SetMode(table, ModeStore); err != nil {
			t.Fatal(err)
		}
		if _, err := tab.Write(Rows{Info: tab.Info(), Count: 1}); !refusal.Is(err, refusal.BackendError) {
			t.Errorf("a count of rows for a table that keeps them: %v", err)
		}
		if err := s.SetMode(table, ModeNull); err != nil {
			t.Fatal(err)
		}
		if _, err := tab.Snapshot(); refusal.Of(err) == nil || refusal.Of(err).Code() != 501 {
			t.Errorf("snapshot: %v, want 501", err)
		}
	})
}

func TestSnapshot(t *testing.T) {
	manual := clock.NewManual(clock.Start)
	s := open(t, Options{Clock: manual})
	makeDataset(t, s)
	manual.Advance(time.Second)
	tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
	manual.Advance(time.Second)
	put(t, tab, numbered(0, 4))
	first := manual.Now()
	held, err := tab.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	manual.Advance(time.Second)
	put(t, tab, numbered(4, 4))

	t.Run("it does not see what is written later", func(t *testing.T) {
		if got := snapshotNumbers(t, held, 0); !slices.Equal(got, upTo(4)) {
			t.Errorf("rows %v", got)
		}
	})
	t.Run("an instant shows the rows of that instant, again and again", func(t *testing.T) {
		for range 2 {
			at, err := tab.SnapshotAt(first)
			if err != nil {
				t.Fatal(err)
			}
			if got := snapshotNumbers(t, at, 0); !slices.Equal(got, upTo(4)) {
				t.Errorf("rows %v", got)
			}
		}
	})
	t.Run("no later write gets a version at or below an instant that was read at", func(t *testing.T) {
		now, err := tab.SnapshotAt(manual.Now())
		if err != nil {
			t.Fatal(err)
		}
		w := put(t, tab, numbered(8, 1))
		if w.After <= now.Version {
			t.Errorf("a write got version %d after a read at %d", w.After, now.Version)
		}
	})
	t.Run("its rows survive the table", func(t *testing.T) {
		if err := s.DeleteTable(table); err != nil {
			t.Fatal(err)
		}
		if got := snapshotNumbers(t, held, 0); !slices.Equal(got, upTo(4)) {
			t.Errorf("rows %v", got)
		}
	})
	for name, at := range map[string]time.Time{
		"before the window":    manual.Now().Add(-169 * time.Hour),
		"in the future":        manual.Now().Add(time.Second),
		"before the table was": clock.Start,
	} {
		t.Run("refused "+name, func(t *testing.T) {
			if _, err := tab.SnapshotAt(at); !refusal.Is(err, refusal.Invalid) {
				t.Errorf("got %v, want invalid", err)
			}
		})
	}
}

// TestLargeValues: a chunk of large values is closed before it is more than one batch, or one frame of a data file, can hold.
func TestLargeValues(t *testing.T) {
	s := inMemory(t)
	shape := columns("s", schema.String)
	tab := makeTable(t, s, table, &schema.Definition{Schema: shape})
	b := array.NewRecordBuilder(memory.DefaultAllocator, shape.Arrow())
	b.Field(0).(*array.StringBuilder).Append(strings.Repeat("x", 64<<20))
	large := b.NewRecordBatch()
	for range 40 { // the same memory, 2.5 GiB of rows
		put(t, tab, large)
	}
	if n := len(tab.chunks); n < 5 {
		t.Errorf("%d chunks", n)
	}
	for _, c := range tab.chunks {
		if c.bytes > maxWrite {
			t.Errorf("a chunk of %d bytes: it cannot be read back", c.bytes)
		}
	}
	snapshot, err := tab.Snapshot()
	if err != nil || snapshot.NumRows() != 40 {
		t.Errorf("%v, %v", snapshot, err)
	}
}
