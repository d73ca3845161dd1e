package export

import (
	"fmt"
	"slices"
)

// order decides which stream a lane reads and whose chunk comes next. It knows no network, no clock and no goroutine: the rows of a
// file depend on it and on how many rows chunks have, and never on which stream happened to be faster.
type order struct {
	// Slots are the lanes' streams and the rows of them that came, a stream of -1 is none.
	Slots []slot `json:"slots"`
	// Next is the stream that is begun next.
	Next int `json:"next"`
	// Turn is the slot whose chunk is next.
	Turn int `json:"turn"`

	streams int
}

type slot struct {
	Stream int   `json:"stream"`
	At     int64 `json:"at"`
}

const noStream = -1

// newOrder begins to read streams with so many lanes at most.
func newOrder(streams, lanes int) *order {
	o := &order{streams: streams}
	for range min(streams, lanes) {
		o.Slots = append(o.Slots, slot{Stream: o.Next})
		o.Next++
	}
	return o
}

// ended reports whether every stream has been read.
func (o *order) ended() bool {
	return !slices.ContainsFunc(o.Slots, func(s slot) bool { return s.Stream != noStream })
}

// gave takes note of a chunk of the slot whose turn it is, and passes the turn on.
func (o *order) gave(rows int64) {
	o.Slots[o.Turn].At += rows
	o.pass()
}

// end takes note that the stream of the slot whose turn it is has ended. The slot gets the next one, or none.
func (o *order) end() {
	s := &o.Slots[o.Turn]
	*s = slot{Stream: noStream}
	if o.Next < o.streams {
		s.Stream = o.Next
		o.Next++
	}
	o.pass()
}

// pass gives the turn to the next slot that has a stream.
func (o *order) pass() {
	for range o.Slots {
		o.Turn = (o.Turn + 1) % len(o.Slots)
		if o.Slots[o.Turn].Stream != noStream {
			return
		}
	}
}

// finished is how many streams have been read to their ends.
func (o *order) finished() int {
	n := o.Next
	for _, s := range o.Slots {
		if s.Stream != noStream {
			n--
		}
	}
	return n
}

func (o *order) clone() order {
	c := *o
	c.Slots = slices.Clone(o.Slots)
	return c
}

// restore completes an order that was noted, and checks it against the session.
func (o *order) restore(streams int) error {
	o.streams = streams
	seen := map[int]bool{}
	for _, s := range o.Slots {
		if s.Stream < noStream || s.Stream >= o.Next || s.At < 0 || s.Stream != noStream && seen[s.Stream] {
			return fmt.Errorf("a lane at row %d of stream %d, of %d begun", s.At, s.Stream, o.Next)
		}
		seen[s.Stream] = true
	}
	if o.Next < 0 || o.Next > streams || o.Turn < 0 || o.Turn > 0 && o.Turn >= len(o.Slots) {
		return fmt.Errorf("stream %d is next of %d, slot %d of %d", o.Next, streams, o.Turn, len(o.Slots))
	}
	return nil
}
