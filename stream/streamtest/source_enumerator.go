package streamtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"go.uber.org/goleak"

	"github.com/millrace-dev/millrace/stream"
)

// maxSplitID is "a few hundred bytes".
const maxSplitID = 512

func checkSplitIDs[T any](t TB, h SourceHarness[T]) {
	seen := map[string]bool{}
	for _, s := range h.splits(t) {
		if s.ID == "" || len(s.ID) > maxSplitID {
			t.Errorf("split id %.40q has %d bytes, want 1 to %d", s.ID, len(s.ID), maxSplitID)
		}
		if strings.ContainsFunc(s.ID, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Errorf("split id %q is not fit for a log", s.ID)
		}
		if seen[s.ID] {
			t.Errorf("two splits have the id %q", s.ID)
		}
		seen[s.ID] = true
	}
}

func checkLanesShare[T any](t TB, h SourceHarness[T]) {
	p := h.plan(t, h.New(t), nil)
	defer p.close()
	var got []stream.Split
	for waiting := []int{0, 1, 2}; len(waiting) > 0; {
		lane := waiting[0]
		s, ok := p.next(lane)
		if waiting = waiting[1:]; ok {
			got = append(got, s)
			waiting = append(waiting, lane)
		}
	}
	sameTexts(t, "splits of three lanes", describe(got), describe(h.splits(t)))
}

// describe makes splits comparable. The id alone would do, if it does what it should.
func describe(splits []stream.Split) (all []string) {
	for _, s := range splits {
		all = append(all, s.ID+" "+string(s.Data))
	}
	return all
}

// snapshot returns the enumerator's snapshot.
func (p *plan[T]) snapshot() []byte {
	p.t.Helper()
	state, err := p.enum.Snapshot()
	if err != nil {
		p.t.Fatalf("Snapshot: %v", err)
	}
	if state == nil {
		p.t.Fatalf("Snapshot answered nil, which is a fresh start")
	}
	return state
}

// checkSnapshotRest hands out some splits, and restores an enumerator in another process: it must have all the others.
func checkSnapshotRest[T any](t TB, h SourceHarness[T]) {
	all := h.splits(t)
	for n := 0; n <= len(all); n++ {
		p := h.plan(t, h.New(t), nil)
		var taken []stream.Split
		for range n {
			s, _ := p.next(0)
			taken = append(taken, s)
		}
		state := p.snapshot()
		p.close()
		restored := h.plan(t, h.New(t), bytes.Clone(state))
		if n > 0 {
			sameTexts(t, "splits before and after a snapshot", describe(append(taken, restored.rest()...)), describe(all))
		} else {
			restored.rest() // a plan that had not been made may be made anew, and differ
		}
		restored.close()
	}
}

func checkSnapshotPure[T any](t TB, h SourceHarness[T]) {
	p := h.plan(t, h.New(t), nil)
	defer p.close()
	first, _ := p.next(0)
	p.snapshot()
	p.snapshot()
	got := append([]stream.Split{first}, p.rest()...)
	sameTexts(t, "splits around snapshots", describe(got), describe(h.splits(t)))
}

func checkSnapshotFrozen[T any](t TB, h SourceHarness[T]) {
	p := h.plan(t, h.New(t), nil)
	defer p.close()
	first, _ := p.next(0)
	state := p.snapshot()
	before := bytes.Clone(state)
	p.enum.Return(0, []stream.Split{first})
	p.rest()
	p.snapshot()
	if !bytes.Equal(state, before) {
		t.Errorf("the bytes of a snapshot have changed")
	}
}

// checkReturn returns splits to the enumerator, and to one restored after they were handed out, as lanes that there are
// no more, and asks with a lane that has not asked before.
func checkReturn[T any](t TB, h SourceHarness[T]) {
	all := h.splits(t)
	p := h.plan(t, h.New(t), nil)
	first, _ := p.next(0)
	second, _ := p.next(1)
	state := p.snapshot()
	moved := h.advanced(t, first)
	p.enum.Return(0, []stream.Split{moved})
	p.enum.Return(7, []stream.Split{second})
	p.returned(h, all, moved)
	p.close()

	restored := h.plan(t, h.New(t), state)
	restored.enum.Return(0, []stream.Split{moved})
	restored.enum.Return(7, []stream.Split{second})
	restored.returned(h, all, moved)
	restored.close()
}

// advanced is the split after its first row.
func (h SourceHarness[T]) advanced(t TB, s stream.Split) stream.Split {
	t.Helper()
	rows := h.read(t, s)
	if len(rows) > 0 {
		s.Position = rows[0].next
	}
	return s
}

// returned checks that all splits come, and moved at its position.
func (p *plan[T]) returned(h SourceHarness[T], all []stream.Split, moved stream.Split) {
	p.t.Helper()
	var got []stream.Split
	for s, ok := p.next(2); ok; s, ok = p.next(2) {
		got = append(got, s)
	}
	sameTexts(p.t, "splits after some were returned", describe(got), describe(all))
	i := slices.IndexFunc(got, func(s stream.Split) bool { return s.ID == moved.ID })
	if i >= 0 && got[i].Position != moved.Position {
		p.t.Errorf("split %s was returned at position %d and came again at %d", moved.ID, moved.Position, got[i].Position)
	}
}

func checkReturnSnapshot[T any](t TB, h SourceHarness[T]) {
	all := h.splits(t)
	p := h.plan(t, h.New(t), nil)
	first, _ := p.next(0)
	moved := h.advanced(t, first)
	p.enum.Return(0, []stream.Split{moved})
	state := p.snapshot()
	p.close()
	restored := h.plan(t, h.New(t), state)
	restored.returned(h, all, moved)
	restored.close()
}

func checkLaneEnd[T any](t TB, h SourceHarness[T]) {
	src := h.New(t)
	if !src.Bounded() {
		t.Logf("lanes of this source do not end")
		return
	}
	p := h.plan(t, src, nil)
	defer p.close()
	p.rest()
	for range 3 {
		if _, err := p.enum.Next(0); !errors.Is(err, io.EOF) {
			t.Errorf("a lane was told that it is done, and then %v", err)
		}
	}
}

// checkAttempts has two attempts at once, as when an engine closes one late.
func checkAttempts[T any](t TB, h SourceHarness[T]) {
	src := h.New(t)
	a, b := h.plan(t, src, nil), h.plan(t, src, nil)
	a.next(0)
	a.close()
	got := b.rest()
	b.close()
	sameTexts(t, "splits of a second enumerator", describe(got), describe(h.splits(t)))
	c := h.plan(t, src, nil)
	defer c.close()
	sameTexts(t, "splits of a third enumerator", describe(c.rest()), describe(h.splits(t)))
}

func checkEnumeratorBlocks[T any](t TB, h SourceHarness[T]) {
	src, release := h.New(t), func() {}
	if h.Stall != nil {
		src, release = h.Stall(t)
	}
	defer release()
	var p *plan[T]
	within(t, "NewEnumerator", func() { p = h.plan(t, src, nil) })
	if p == nil {
		return // it failed
	}
	within(t, "Enumerator.Next", func() {
		if _, err := p.enum.Next(0); err != nil && !errors.Is(err, stream.ErrNoSplitYet) {
			t.Errorf("Next: %v", err)
		}
	})
	within(t, "Enumerator.Snapshot", func() { p.snapshot() })
	within(t, "Enumerator.Return", func() { p.enum.Return(0, nil) })
	within(t, "Enumerator.Close", func() { p.close() })
}

func checkEnumeratorClose[T any](t TB, h SourceHarness[T]) {
	early := h.plan(t, h.New(t), nil) // planning may be under way
	early.close()
	early.close()
	late := h.plan(t, h.New(t), nil)
	late.rest()
	late.close()
	late.close()
}

func checkSourceLeaks[T any](t TB, h SourceHarness[T]) {
	before := append([]goleak.Option{goleak.IgnoreCurrent()}, h.Leaks...)
	early := h.plan(t, h.New(t), nil)
	early.close()
	s := h.splits(t)[0]
	o := h.open(t, s)
	o.fetch()
	o.close()
	o = h.open(t, s)
	ended, end := context.WithCancel(t.Context())
	end()
	_ = o.reader.Fetch(ended, &o.batch) // rows or an error, as other checks say
	o.close()
	if err := goleak.Find(before...); err != nil {
		t.Errorf("after everything was closed: %v", err)
	}
}
