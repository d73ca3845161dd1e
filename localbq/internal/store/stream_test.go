package store

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

func makeStream(t *testing.T, tab *Table, kind StreamKind) *Stream {
	t.Helper()
	s, err := tab.CreateStream(kind, [27]byte{byte(kind)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// appendTo appends numbered rows from offset on, there.
func appendTo(t *testing.T, s *Stream, offset, count int) Written {
	t.Helper()
	at := int64(offset)
	w, err := s.Table().Write(Rows{Info: s.Table().Info(), Batches: list(numbered(offset, count)), Stream: s, Offset: &at, Account: func(Written) {}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// fillStreams does one of everything to streams. No table has rows of two writes, which a restart joins.
func fillStreams(t *testing.T, s *Store) {
	t.Helper()
	make := func(name string) *Table {
		return makeTable(t, s, dataset.Table(name), &schema.Definition{Schema: numberedSchema})
	}
	check := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	buffered := makeStream(t, make("buffered"), Buffered)
	appendTo(t, buffered, 0, 5)
	check(buffered.Flush(2, nil, nil))
	appendTo(t, buffered, 5, 2)
	ended := makeStream(t, buffered.Table(), Buffered)
	check(ended.Finalize())
	expired := makeStream(t, buffered.Table(), Buffered)
	check(buffered.Table().ExpireStream(expired.ID()))

	pending := makeStream(t, make("pending"), Pending)
	appendTo(t, pending, 0, 3)
	check(pending.Finalize())
	check(pending.Table().CommitStreams([]string{pending.ID()}, nil, nil))
	appendTo(t, makeStream(t, pending.Table(), Pending), 0, 2)

	appendTo(t, makeStream(t, make("committed"), Committed), 0, 3)
}

// describeStreams is what the streams of a table are, and hold.
func describeStreams(t *testing.T, out io.Writer, tab *Table) {
	t.Helper()
	for _, id := range slices.Sorted(maps.Keys(tab.streams)) {
		s := tab.streams[id]
		fmt.Fprintf(out, "  stream %s %s key %d touched %d: %+v\n", id, s.kind, s.key, s.touched, s.State())
		for _, c := range s.chunks {
			var held []arrow.RecordBatch
			for _, p := range c.pieces {
				held = append(held, p.batch)
			}
			from := max(0, s.cursor-c.first)
			fmt.Fprintf(out, "    from %d: %s\n", c.first+from, toJSON(t, Concatenate(held).NewSlice(from, c.rows)))
		}
	}
}

// TestStreamArbitration shows that of many appends at one offset one is written, also when they share a write to the log.
func TestStreamArbitration(t *testing.T) {
	s := inMemory(t)
	tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
	stream := makeStream(t, tab, Committed)
	for round := range int64(50) {
		var taken, written sync.Map
		var writers sync.WaitGroup
		for i := range 8 {
			writers.Go(func() {
				_, err := tab.Write(Rows{Info: tab.Info(), Batches: list(numbered(int(round), 1)), Stream: stream, Offset: &round, Account: func(Written) {}})
				if e, ok := errors.AsType[*StreamError](err); ok && e.Fault == OffsetTaken && e.End == round+1 {
					taken.Store(i, true)
				} else if err == nil {
					written.Store(i, true)
				}
			})
		}
		writers.Wait()
		if n, refused := count(&written), count(&taken); n != 1 || refused != 7 {
			t.Fatalf("round %d: %d written, %d refused", round, n, refused)
		}
	}
	if got := numbers(t, tab, 0); !slices.Equal(got, upTo(50)) {
		t.Errorf("rows %v", got)
	}
}

func count(m *sync.Map) (n int) {
	m.Range(func(any, any) bool { n++; return true })
	return n
}

// TestStreamManyChunks flushes at odd places of a stream that fills several chunks, over checkpoints.
func TestStreamManyChunks(t *testing.T) {
	o := Options{Dir: t.TempDir(), Clock: clock.NewManual(clock.Start)}
	s := open(t, o)
	makeDataset(t, s)
	stream := makeStream(t, makeTable(t, s, table, &schema.Definition{Schema: numberedSchema}), Buffered)
	end := 0
	for round := range 5 {
		for range 3 {
			appendTo(t, stream, end, 17_001)
			end += 17_001
		}
		if _, err := stream.Flush(int64(end-5000*round-2), nil, nil); err != nil {
			t.Fatal(err)
		}
		if round%2 == 0 {
			closeStore(t, s)
		} else {
			abandon(t, s)
		}
		s = open(t, o)
		tab, err := s.Table(table)
		if err != nil {
			t.Fatal(err)
		}
		stream = tab.Stream(stream.ID())
		if st := stream.State(); st.End != int64(end) || st.Visible != int64(end-5000*round-1) {
			t.Fatalf("round %d: %+v", round, st)
		}
		if got := numbers(t, tab, 0); !slices.Equal(got, upTo(end-5000*round-1)) {
			t.Fatalf("round %d: %d rows", round, len(got))
		}
	}
	closeStore(t, s)
}

// TestStreamsExpire shows that a checkpoint forgets streams whose time is over, and their rows.
func TestStreamsExpire(t *testing.T) {
	c := clock.NewManual(clock.Start)
	o := Options{Dir: t.TempDir(), Clock: c}
	s := open(t, o)
	makeDataset(t, s)
	tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
	stream := makeStream(t, tab, Buffered)
	appendTo(t, stream, 0, 2)
	c.Advance(StreamLife + time.Second)
	if tab.Stream(stream.ID()) != nil {
		t.Error("an expired stream is found")
	}
	if _, err := stream.Flush(0, nil, nil); err == nil {
		t.Error("an expired stream is flushed")
	}
	closeStore(t, s)
	s = open(t, o)
	if tab, err := s.Table(table); err != nil || len(tab.streams) != 0 {
		t.Errorf("streams %v, %v", tab.streams, err)
	}
	closeStore(t, s)
}
