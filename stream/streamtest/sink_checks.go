package streamtest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-dev/millrace/stream"
)

// counts are numbers of records around the sizes of buffers.
var counts = []int{1, 2, 3, 7, 40}

func checkFlushed[T any](t TB, h SinkHarness[T]) {
	for _, n := range counts {
		b := h.bench(t)
		s := b.writer(0, 1, nil)
		s.write(0, n)
		out := s.checkpoint(false)
		s.close()
		b.commit(out.committables...)
		b.sees("after a flush, the end of the writer, and the commit", n)
		b.close()
	}
}

func checkFinalFlush[T any](t TB, h SinkHarness[T]) {
	b := h.bench(t)
	defer b.close()
	s := b.writer(0, 1, nil)
	s.write(0, 7)
	out := s.checkpoint(true)
	s.close()
	b.commit(out.committables...)
	b.sees("after the final flush and the commit", 7)
}

func checkEmptyCheckpoint[T any](t TB, h SinkHarness[T]) {
	b := h.bench(t)
	defer b.close()
	s := b.writer(0, 1, nil)
	first := s.checkpoint(false)
	s.write(0, 5)
	full := s.checkpoint(false)
	again := s.checkpoint(false)
	s.close()
	if n := len(first.committables) + len(again.committables); n > 0 {
		t.Errorf("checkpoints without new rows prepared %d committables", n)
	}
	b.commit(slices.Concat(first.committables, full.committables, again.committables)...)
	b.sees("after checkpoints with nothing in them", 5)
}

// run writes five records before each of n checkpoints, the first of them record number from.
func (s *session[T]) run(from, n int) {
	s.b.t.Helper()
	for i := range n {
		s.write(from+5*i, from+5*i+5)
		s.checkpoint(false)
	}
}

func checkCheckpoints[T any](t TB, h SinkHarness[T]) {
	b := h.bench(t)
	defer b.close()
	s := b.writer(0, 1, nil)
	defer s.close()
	for i := range 4 {
		s.write(5*i, 5*i+5)
		out := s.checkpoint(false)
		if i == 3 {
			s.write(20, 40) // behind the barrier
		}
		b.commit(out.committables...)
		if b.twoPhase() != nil {
			b.sees(fmt.Sprintf("after checkpoint %d", i+1), 5*i+5)
		}
	}
	b.commit(s.checkpoint(true).committables...)
	b.sees("at the end", 40)
}

func checkInvisible[T any](t TB, h SinkHarness[T]) {
	b := h.bench(t)
	defer b.close()
	if b.twoPhase() == nil {
		t.Logf("the sink commits in one phase")
		return
	}
	s := b.writer(0, 1, nil)
	s.run(0, 3)
	b.sees("after three checkpoints, none of them committed", 0)
	s.write(15, 40)
	s.checkpoint(true)
	b.sees("after a final checkpoint, not committed", 0)
	s.close()
	b.sees("after the writer was closed", 0)
}

func checkCloseQuiet[T any](t TB, h SinkHarness[T]) {
	b := h.bench(t)
	defer b.close()
	s := b.writer(0, 1, nil)
	s.run(0, 1)
	s.write(5, 40)
	s.close()
	b.commit(s.taken[0].committables...)
	if b.twoPhase() != nil {
		b.sees("after Close with rows behind the last barrier", 5)
	}
}

func checkCommitRepeats[T any](t TB, h SinkHarness[T]) {
	b := h.bench(t)
	defer b.close()
	s := b.writer(0, 1, nil)
	s.run(0, 3)
	for range 3 {
		b.commit(s.taken[0].committables...)
	}
	if b.twoPhase() != nil {
		b.sees("after one commit three times", 5)
	}
	b.commit(s.taken[1].committables...)
	b.commit(s.taken[2].committables...)
	s.close()
	for _, k := range s.taken {
		b.commit(k.committables...)
	}
	b.sees("after all commits again", 15)
}

func checkCommitOrder[T any](t TB, h SinkHarness[T]) {
	for _, order := range [][]int{{2, 1, 0}, {1, 2, 0, 1}, {2, 0, 1, 2}} {
		b := h.bench(t)
		s := b.writer(0, 1, nil)
		s.run(0, 3)
		s.close()
		for _, i := range order {
			b.commit(s.taken[i].committables...)
		}
		b.sees(fmt.Sprintf("after commits in the order %v", order), 15)
		b.close()
	}
	b := h.bench(t)
	defer b.close()
	s := b.writer(0, 1, nil)
	s.run(0, 3)
	s.close()
	if two := b.twoPhase(); two != nil && two.CommitScope() == stream.Global {
		for _, k := range s.taken { // one checkpoint at a time
			slices.Reverse(k.committables)
			b.commit(append(k.committables, k.committables...)...)
		}
		b.sees("after commits of everything twice", 15)
		return
	}
	var all []stream.Committable
	for _, k := range s.taken {
		all = append(all, k.committables...)
	}
	slices.Reverse(all)
	b.commit(append(all, all...)...)
	b.sees("after one commit of all", 15)
}

func checkBytesFrozen[T any](t TB, h SinkHarness[T]) {
	b := h.bench(t)
	defer b.close()
	s := b.writer(0, 1, nil)
	defer s.close()
	ctx := t.Context()
	var raw, copies []taken
	for i := range 3 {
		s.write(5*i, 5*i+5)
		if err := s.writer.Flush(ctx, false); err != nil {
			t.Fatalf("Flush: %v", err)
		}
		cs, err1 := s.writer.Prepare(ctx, int64(i+1))
		states, err2 := s.writer.Snapshot(ctx, int64(i+1))
		if err := errors.Join(err1, err2); err != nil {
			t.Fatalf("checkpoint: %v", err)
		}
		raw = append(raw, taken{cs, states})
		copies = append(copies, taken{cs, states}.clone())
	}
	for i := range raw {
		if !sameTaken(raw[i], copies[i]) {
			t.Errorf("what checkpoint %d returned has changed since", i+1)
		}
	}
}

func sameTaken(a, b taken) bool {
	return slices.EqualFunc(a.committables, b.committables, func(x, y stream.Committable) bool {
		return x.Key == y.Key && string(x.Data) == string(y.Data)
	}) && slices.EqualFunc(a.states, b.states, func(x, y stream.State) bool {
		return x.Destination == y.Destination && x.Shard == y.Shard && string(x.Data) == string(y.Data)
	})
}

// checkAnyState lets a writer take four checkpoints, and another one go on from each of them, the first one's later
// checkpoints not committed.
func checkAnyState[T any](t TB, h SinkHarness[T]) {
	for k := range 4 {
		b := h.bench(t)
		s := b.writer(0, 1, nil)
		s.run(0, 4)
		s.write(20, 23)
		s.close()
		for _, earlier := range s.taken[:k+1] {
			b.commit(earlier.committables...)
		}
		r := b.writer(0, 1, s.taken[k].states)
		r.run(5*k+5, 3)
		r.close()
		for _, later := range r.taken {
			b.commit(later.committables...)
		}
		b.sees(fmt.Sprintf("after going on from checkpoint %d of 4", k+1), 5*k+20)
		b.close()
	}
}

// checkZombie does not close the first writer: it writes on, before and after its successor's first row, into the void.
func checkZombie[T any](t TB, h SinkHarness[T]) {
	for _, before := range []bool{true, false} {
		b := h.bench(t)
		zombie := b.writer(0, 1, nil)
		zombie.run(0, 2)
		b.commit(zombie.taken[0].committables...)
		b.commit(zombie.taken[1].committables...)
		r := b.writer(0, 1, zombie.taken[1].states)
		if before {
			zombie.haunt(b)
		}
		r.write(10, 15)
		r.checkpoint(false)
		if !before {
			zombie.haunt(b)
		}
		r.write(15, 20)
		r.checkpoint(true)
		r.close()
		b.commit(r.taken[0].committables...)
		b.commit(r.taken[1].committables...)
		b.commit(zombie.taken[1].committables...) // repeated by somebody
		zombie.writer.Close()
		b.sees(fmt.Sprintf("with a zombie, before the first row of its successor %v", before), 20)
		b.close()
	}
}

// haunt writes records until the writer notices that it is dead, as a real zombie's engine stops at the first error.
func (s *session[T]) haunt(b *bench[T]) {
	for i := 10; i < 30; i++ {
		if s.try(b.Record(i), i) != nil {
			return
		}
	}
	s.tryCheckpoint(false)
}

func checkQuietState[T any](t TB, h SinkHarness[T]) {
	b := h.bench(t)
	defer b.close()
	s := b.writer(0, 1, nil)
	s.run(0, 1)
	s.write(5, 9) // lost with the process
	s.close()
	b.commit(s.taken[0].committables...)
	quiet := b.writer(0, 1, s.taken[0].states)
	out := quiet.checkpoint(false)
	out = quiet.checkpoint(false)
	quiet.close()
	b.commit(out.committables...)
	b.sees("after a writer that was restored and wrote nothing", 5)
	r := b.writer(0, 1, out.states)
	r.run(5, 2)
	r.close()
	b.commit(r.taken[0].committables...)
	b.commit(r.taken[1].committables...)
	b.sees("after going on from a writer that was restored and wrote nothing", 15)
}

// checkSeveralStates has two lanes write the same destinations, and one lane, or another two, go on.
func checkSeveralStates[T any](t TB, h SinkHarness[T]) {
	for _, lanes := range []int{1, 3} {
		b := h.bench(t)
		left, right := b.writer(0, 2, nil), b.writer(1, 2, nil)
		left.run(0, 1)
		right.run(5, 1)
		left.write(10, 13)
		right.write(13, 16)
		left.close()
		right.close()
		b.commit(append(left.taken[0].committables, right.taken[0].committables...)...)
		r := b.writer(lanes-1, lanes, append(left.taken[0].states, right.taken[0].states...))
		r.run(10, 2)
		r.close()
		b.commit(r.taken[0].committables...)
		b.commit(r.taken[1].committables...)
		b.sees(fmt.Sprintf("after one of %d lanes went on from the states of two", lanes), 20)
		b.close()
	}
}

func checkStates[T any](t TB, h SinkHarness[T]) {
	b := h.bench(t)
	defer b.close()
	limit := h.MaxState
	if limit == 0 {
		limit = 200
	}
	s := b.writer(0, 1, nil)
	defer s.close()
	s.run(0, 3)
	for i, k := range s.taken {
		seen := map[[2]string]bool{}
		for _, state := range k.states {
			if len(state.Data) > limit {
				t.Errorf("checkpoint %d: the state of %s has %d bytes, want %d at most", i+1, state.Destination, len(state.Data), limit)
			}
			if state.Destination == "" {
				t.Errorf("checkpoint %d: a state has no destination", i+1)
			}
			if id := [2]string{state.Destination, state.Shard}; seen[id] {
				t.Errorf("checkpoint %d: two states of destination %q and shard %q", i+1, state.Destination, state.Shard)
			} else {
				seen[id] = true
			}
		}
		for _, c := range k.committables {
			if c.Key == "" {
				t.Errorf("checkpoint %d: a committable has no key", i+1)
			}
		}
	}
}

func checkKeepsNothing[T any](t TB, h SinkHarness[T]) {
	b := h.bench(t)
	defer b.close()
	s := b.writer(0, 1, nil)
	s.shared = new(stream.Record[T])
	s.write(0, 40)
	out := s.checkpoint(false)
	s.close()
	b.commit(out.committables...)
	b.sees("after the records were overwritten", 40)
}
