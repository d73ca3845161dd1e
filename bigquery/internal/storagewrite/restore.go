package storagewrite

import (
	"strings"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// restore takes over streams where checkpoints left them. Nothing is opened before the first row of a destination, and a
// destination that stays quiet keeps its state.
//
// Of several streams of one destination, from lanes there are no more, one is gone on with: the one of the newest
// checkpoint, of equals the one whose name comes first. The others hold nothing that was not promised, and the promises
// are kept by the committer.
func (w toBuffered) restore(states []stream.State) error {
	best := map[table.Destination]streamState{}
	var order []table.Destination
	for _, s := range states {
		next, err := parseState(s)
		if err != nil {
			return err
		}
		was, seen := best[next.dst]
		if !seen {
			order = append(order, next.dst)
		}
		if !seen || next.newer(was) {
			best[next.dst] = next
		}
	}
	for _, dst := range order {
		t, err := w.Target(dst)
		if err != nil {
			return err
		}
		s := best[dst]
		t.own = ownStream{name: s.stream, next: s.next, saved: streamPoint{s.stream, s.next}, probe: true}
	}
	return nil
}

func (s streamState) newer(o streamState) bool {
	if s.checkpoint != o.checkpoint {
		return s.checkpoint > o.checkpoint
	}
	return strings.Compare(s.stream, o.stream) < 0
}
