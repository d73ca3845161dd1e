package export

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// play goes through streams of so many chunks each, of one row, and answers whose chunks came in which order. Now and then the order
// is written down and read again, as another process does.
func play(t interface{ Fatal(...any) }, chunks []int, lanes int, noted func() bool) (came []string) {
	o := newOrder(len(chunks), lanes)
	for !o.ended() {
		s := o.Slots[o.Turn]
		if s.At == int64(chunks[s.Stream]) {
			o.end()
		} else {
			came = append(came, fmt.Sprintf("%d.%d", s.Stream, s.At))
			o.gave(1)
		}
		if noted() {
			c := o.clone()
			c.streams = 0
			if err := c.restore(len(chunks)); err != nil {
				t.Fatal(err)
			}
			o = &c
		}
	}
	return came
}

// TestOrder: lanes take turns, a lane whose stream has ended takes the next, and one without a stream is left out.
func TestOrder(t *testing.T) {
	never := func() bool { return false }
	for _, c := range []struct {
		chunks []int
		lanes  int
		want   string
	}{
		{nil, 3, "[]"},
		{[]int{0, 0}, 3, "[]"},
		{[]int{2, 1}, 1, "[0.0 0.1 1.0]"},
		{[]int{3, 1, 2}, 2, "[0.0 1.0 0.1 0.2 2.0 2.1]"},
		{[]int{1, 3, 1, 1}, 3, "[0.0 1.0 2.0 1.1 3.0 1.2]"},
	} {
		if got := fmt.Sprint(play(t, c.chunks, c.lanes, never)); got != c.want {
			t.Errorf("%v with %d lanes: %s, want %s", c.chunks, c.lanes, got, c.want)
		}
	}
}

// TestOrderIsTheSameAfterAnyStop: every chunk comes once and in the order of its stream, wherever the order was noted and gone on with.
func TestOrderIsTheSameAfterAnyStop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chunks := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 12).Draw(t, "chunks")
		lanes := rapid.IntRange(1, 5).Draw(t, "lanes")
		want := play(t, chunks, lanes, func() bool { return false })
		got := play(t, chunks, lanes, func() bool { return rapid.Bool().Draw(t, "noted") })
		if !slices.Equal(want, got) {
			t.Fatalf("want %v, got %v", want, got)
		}
		var all []string
		for s, n := range chunks {
			for i := range n {
				all = append(all, fmt.Sprintf("%d.%d", s, i))
			}
		}
		slices.Sort(got)
		slices.Sort(all)
		if !slices.Equal(all, got) {
			t.Fatalf("want %v, got %v", all, got)
		}
	})
}

// TestOrdersThatCannotBe are refused.
func TestOrdersThatCannotBe(t *testing.T) {
	for _, o := range []order{
		{Slots: []slot{{0, -1}}, Next: 1}, {Slots: []slot{{3, 0}}, Next: 3}, {Slots: []slot{{0, 0}, {0, 1}}, Next: 2},
		{Next: 4}, {Next: -1}, {Slots: []slot{{0, 0}}, Next: 1, Turn: 1}, {Turn: -1}, {Slots: []slot{{-2, 0}}},
	} {
		if o.restore(3) == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}
