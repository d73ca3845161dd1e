package engine

import (
	"slices"

	"github.com/millrace-dev/millrace/stream"
)

// ledger holds the committables that are not known to be committed, in the order they were prepared. Those below stored
// are in a published checkpoint and may be committed; the others wait for one, however many fail to be stored.
//
// Committables are counted from the start of the attempt, so that a checkpoint being stored and a commit under way can
// both speak of "those up to n" while the other moves on.
type ledger struct {
	held   []HeldCommittable
	gone   int // committed so far: held[0] is number gone
	stored int // numbers below are stored
}

// prepare adds what a lane prepared for a checkpoint.
func (l *ledger) prepare(lane int, checkpoint int64, cs []stream.Committable) {
	for _, c := range cs {
		l.held = append(l.held, HeldCommittable{lane, checkpoint, c})
	}
}

// all returns everything for a checkpoint, and the number after the last.
func (l *ledger) all() (held []HeldCommittable, end int) {
	return slices.Clip(l.held), l.gone + len(l.held)
}

// published says that a checkpoint with those below end is stored.
func (l *ledger) published(end int) { l.stored = max(l.stored, end) }

// due returns what may be committed, and the number after the last.
func (l *ledger) due() (held []HeldCommittable, end int) {
	n := max(0, l.stored-l.gone)
	return slices.Clip(l.held[:n]), l.gone + n
}

// committed says that those below end are.
func (l *ledger) committed(end int) {
	l.held = slices.Clone(l.held[end-l.gone:])
	l.gone = end
}
