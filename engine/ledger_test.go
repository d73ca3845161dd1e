package engine

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/stream"
)

// TestLedgerProperty plays checkpoints that are stored, or not, and commits that end late, against a slow list of what
// is prepared, stored and committed.
func TestLedgerProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l ledger
		prepared, stored, committed := 0, 0, 0
		storing, committing := -1, -1 // ends of what is under way
		keys := func(from, to int) (all []string) {
			for i := from; i < to; i++ {
				all = append(all, fmt.Sprint(i))
			}
			return all
		}
		keysOf := func(held []HeldCommittable) (all []string) {
			for _, h := range held {
				all = append(all, h.Committable.Key)
			}
			return all
		}
		t.Repeat(map[string]func(*rapid.T){
			"checkpoint": func(t *rapid.T) {
				if storing >= 0 {
					return // one is under way
				}
				var cs []stream.Committable
				for range rapid.IntRange(0, 3).Draw(t, "committables") {
					cs = append(cs, stream.Committable{Key: fmt.Sprint(prepared)})
					prepared++
				}
				l.prepare(0, 1, cs)
				held, end := l.all()
				if got := keysOf(held); !slices.Equal(got, keys(committed, prepared)) || end != prepared {
					t.Fatalf("a checkpoint holds %v up to %d, want %v", got, end, keys(committed, prepared))
				}
				storing = end
			},
			"stored": func(*rapid.T) {
				if storing < 0 {
					return // none is under way
				}
				l.published(storing)
				stored, storing = storing, -1
			},
			"not stored": func(*rapid.T) { storing = -1 },
			"commit": func(t *rapid.T) {
				if committing >= 0 {
					return // one is under way
				}
				held, end := l.due()
				if got := keysOf(held); !slices.Equal(got, keys(committed, stored)) || end != stored {
					t.Fatalf("a commit has %v up to %d, want %v", got, end, keys(committed, stored))
				}
				committing = end
			},
			"committed": func(*rapid.T) {
				if committing < 0 {
					return // none is under way
				}
				l.committed(committing)
				committed, committing = committing, -1
			},
		})
	})
}

// TestParking (SRC-19): lanes are served in the order they came, whoever asks meanwhile.
func TestParking(t *testing.T) {
	var p parking
	for _, lane := range []int{2, 0, 1} {
		p.ask(lane)
	}
	p.park() // 2
	p.park() // 0
	if lane := p.take(); lane != 1 {
		t.Errorf("lane %d is served, want 1", lane)
	}
	p.ask(1)
	p.wake()
	if want := []int{2, 0, 1}; !slices.Equal(p.asking, want) || len(p.parked) > 0 {
		t.Errorf("after a wake %v ask and %v wait, want %v and none", p.asking, p.parked, want)
	}
	if lane := p.end(); lane != 2 || p.ended != 1 {
		t.Errorf("lane %d ended, %d in all", lane, p.ended)
	}
}

func TestStatesOf(t *testing.T) {
	var states []stream.State
	for i := range 40 {
		states = append(states, stream.State{Destination: fmt.Sprint("table-", i%10), Shard: fmt.Sprint(i)})
	}
	for _, lanes := range []int{1, 2, 3, 7, 100} {
		owner, total := map[string]int{}, 0
		for lane := range lanes {
			for _, s := range statesOf(lane, lanes, states) {
				if by, taken := owner[s.Destination]; taken && by != lane {
					t.Errorf("%d lanes: %s goes to lanes %d and %d", lanes, s.Destination, by, lane)
				}
				owner[s.Destination] = lane
				total++
			}
		}
		if total != len(states) {
			t.Errorf("%d lanes were given %d of %d states", lanes, total, len(states))
		}
	}
}
