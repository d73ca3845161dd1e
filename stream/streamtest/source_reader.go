package streamtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"

	"github.com/millrace-dev/millrace/stream"
)

var quiet = slog.New(slog.DiscardHandler)

func checkEveryRecord[T any](t TB, h SourceHarness[T]) {
	var got []string
	long := false
	for _, s := range h.splits(t) {
		o := h.open(t, s)
		rows := 0
		for more := o.fetch(); len(more) > 0; more = o.fetch() {
			rows += len(more)
			for _, r := range o.batch.Records() {
				got = append(got, h.text(r))
			}
		}
		o.close()
		long = long || rows > 1
	}
	if !long {
		t.Fatalf("no split of the harness has two rows: the suite needs one")
	}
	if h.Want != nil {
		sameTexts(t, "records", got, h.Want)
	}
}

// sameTexts compares two lists whose order does not matter.
func sameTexts(t TB, what string, got, want []string) {
	t.Helper()
	count := map[string]int{}
	for _, s := range want {
		count[s]++
	}
	for _, s := range got {
		count[s]--
	}
	for _, s := range sortedKeys(count) {
		switch n := count[s]; {
		case n > 0:
			t.Errorf("%s: %q is missing, %d times", what, s, n)
		case n < 0:
			t.Errorf("%s: %q is there %d times too often", what, s, -n)
		}
	}
}

func sameRows(t TB, what string, got, want []readRow) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func checkPositionsGrow[T any](t TB, h SourceHarness[T]) {
	for _, s := range h.splits(t) {
		if s.Position < 0 || s.Position > stream.MaxPosition {
			t.Errorf("split %s starts at %d, want 0 to %d", s.ID, s.Position, int64(stream.MaxPosition))
		}
		last := s.Position
		for _, r := range h.read(t, s) {
			if r.at < last || r.next <= r.at || r.next > stream.MaxPosition {
				t.Errorf("split %s: row at %d with next %d after position %d", s.ID, r.at, r.next, last)
			}
			last = r.next
		}
	}
}

func checkReadsAlike[T any](t TB, h SourceHarness[T]) {
	for _, s := range h.splits(t) {
		sameRows(t, "split "+s.ID+" read again", h.read(t, s), h.read(t, s))
	}
}

// maxResumes bounds how many places of a split are tried.
const maxResumes = 50

func checkResume[T any](t TB, h SourceHarness[T]) {
	for _, s := range h.splits(t) {
		rows := h.read(t, s)
		for i := 0; i < len(rows); i += 1 + len(rows)/maxResumes {
			again := s
			again.Position = rows[i].next
			sameRows(t, "split "+s.ID+" resumed after row "+rows[i].String(), h.read(t, again), rows[i+1:])
		}
	}
}

func checkFetchEmpties[T any](t TB, h SourceHarness[T]) {
	s := h.splits(t)[0]
	want := h.read(t, s)
	o := h.open(t, s)
	defer o.close()
	o.batch.Row(1, 2)
	o.batch.Emit(stream.Record[T]{})
	o.batch.Row(5, stream.MaxPosition)
	got := o.fetch()
	if len(got) == 0 || len(got) > len(want) {
		t.Fatalf("a fetch into a batch that held two rows gave %d rows", len(got))
	}
	sameRows(t, "fetched into a batch that held rows", got, want[:len(got)])
}

func checkFetchGivesRows[T any](t TB, h SourceHarness[T]) {
	for _, s := range h.splits(t) {
		o := h.open(t, s)
		for o.src.Bounded() {
			err := o.reader.Fetch(t.Context(), &o.batch)
			if err != nil {
				break
			}
			if o.batch.Len() == 0 {
				t.Errorf("split %s: Fetch answered neither a row nor an error", s.ID)
				break
			}
		}
		o.close()
	}
}

func checkEndHasNoRows[T any](t TB, h SourceHarness[T]) {
	for _, s := range h.splits(t) {
		o := h.open(t, s)
		for o.src.Bounded() {
			err := o.reader.Fetch(t.Context(), &o.batch)
			if err == nil {
				continue
			}
			if err != io.EOF {
				t.Errorf("split %s: Fetch answered %v at the end, want io.EOF", s.ID, err)
			}
			if n := o.batch.Len(); n > 0 {
				t.Errorf("split %s: the end came with %d rows", s.ID, n)
			}
			break
		}
		o.close()
	}
}

// checkCancelledFetch ends every other fetch before it begins, and others while they are under way.
func checkCancelledFetch[T any](t TB, h SourceHarness[T]) {
	s := h.splits(t)[0]
	want := h.read(t, s)
	for _, late := range []bool{false, true} {
		o := h.open(t, s)
		var got []readRow
		for {
			more, ended := o.cancelled(late)
			got = append(got, more...)
			if ended {
				break
			}
			if more = o.fetch(); len(more) == 0 {
				break
			}
			got = append(got, more...)
		}
		o.close()
		sameRows(t, "rows of split "+s.ID+" with fetches cancelled in between", got, want)
	}
}

// cancelled fetches with a context that has ended, or ends meanwhile, and holds the answer to the contract.
func (o *opened[T]) cancelled(late bool) (rows []readRow, ended bool) {
	o.t.Helper()
	ctx, cancel := context.WithCancel(o.t.Context())
	defer cancel()
	if late {
		// Ends right away, beside the fetch.
		go cancel()
	} else {
		cancel()
	}
	switch err := o.reader.Fetch(ctx, &o.batch); {
	case err == nil:
		if o.batch.Len() == 0 {
			o.t.Errorf("a cancelled fetch answered neither a row nor an error")
		}
		return o.rows(), false
	case errors.Is(err, io.EOF):
		return nil, true
	case errors.Is(err, context.Canceled):
		if n := o.batch.Len(); n > 0 {
			o.t.Errorf("a cancelled fetch answered an error and %d rows", n)
		}
		return nil, false
	default:
		o.t.Fatalf("a cancelled fetch answered %v, want the error of its context", err)
	}
	return nil, true
}

// checkCancelWakes needs a source that waits: one that never ends, or one whose world stalls.
func checkCancelWakes[T any](t TB, h SourceHarness[T]) {
	src, release := h.New(t), func() {}
	if src.Bounded() {
		if h.Stall == nil {
			t.Logf("the source does not end, or asks nobody: nothing to wake")
			return
		}
		src, release = h.Stall(t)
	}
	defer release()
	o := &opened[T]{t: t, h: h, src: src, reader: h.reader(t, src)}
	defer o.close()
	o.open(h.splits(t)[0])
	if !src.Bounded() {
		o.rest()
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	within(t, "a fetch whose context has ended", func() {
		go cancel()
		for ctx.Err() == nil || o.batch.Len() > 0 {
			if err := o.reader.Fetch(ctx, &o.batch); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("a cancelled fetch answered %v, want the error of its context", err)
				return
			} else if err != nil {
				return
			}
		}
	})
}

func checkSplitsFollow[T any](t TB, h SourceHarness[T]) {
	src := h.New(t)
	if !src.Bounded() {
		t.Logf("splits of this source do not end")
		return
	}
	o := &opened[T]{t: t, h: h, src: src, reader: h.reader(t, src)}
	defer o.close()
	for _, s := range h.splits(t) {
		o.open(s)
		sameRows(t, "split "+s.ID+" read by the reader of others", o.rest(), h.read(t, s))
	}
}

func checkSplitsUnchanged[T any](t TB, h SourceHarness[T]) {
	p := h.plan(t, h.New(t), nil)
	defer p.close()
	var splits, copies []stream.Split
	for s, ok := p.next(0); ok; s, ok = p.next(0) {
		splits = append(splits, s)
		s.Data = bytes.Clone(s.Data)
		copies = append(copies, s)
	}
	for _, s := range splits {
		h.read(t, s)
	}
	if _, err := p.enum.Snapshot(); err != nil {
		t.Fatalf("Snapshot: %v", err)
	}
	for i, s := range splits {
		if !bytes.Equal(s.Data, copies[i].Data) {
			t.Errorf("the data of split %s has changed", s.ID)
		}
	}
}

func checkRecordPositions[T any](t TB, h SourceHarness[T]) {
	for _, s := range h.splits(t) {
		o := h.open(t, s)
		for more := o.fetch(); len(more) > 0; more = o.fetch() {
			for i := range o.batch.Len() {
				records, at, _ := o.batch.At(i)
				for _, r := range records {
					if r.At.Split != s.ID || r.At.Row != at {
						t.Errorf("a record of split %s, row %d, says that it was read at %s, row %d", s.ID, at, r.At.Split, r.At.Row)
					}
					if r.At.Location().Name == "" {
						t.Errorf("the location of split %s, row %d, has no name", s.ID, at)
					}
				}
			}
		}
		o.close()
	}
}

func checkReaderClose[T any](t TB, h SourceHarness[T]) {
	s := h.splits(t)[0]
	for _, fetch := range []bool{false, true} {
		o := h.open(t, s)
		if fetch {
			o.fetch()
		}
		o.close()
		o.close()
	}
	r := h.reader(t, h.New(t)) // nothing open
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Errorf("Close of a reader that opened nothing: %v", err)
	}
}
