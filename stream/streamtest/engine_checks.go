package streamtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/stream"
)

var fewLanes = []int{1, 2, 4}

func checkMoves(t TB, h EngineHarness) {
	src := Ranges{Splits: 5, Rows: 40, Batch: 7}
	for _, lanes := range fewLanes {
		for name, sink := range map[string]func(*World) stream.Sink[Item]{"one phase": direct, "two phases": buffered} {
			c := h.scene(t, story{source: ranged(src), sink: sink, lanes: []int{lanes}})
			c.finish()
			c.exactly(fmt.Sprintf("%s, %d lanes", name, lanes), src.Items())
		}
	}
}

// checkWaits has a source that finds its splits late, and more lanes than splits.
func checkWaits(t TB, h EngineHarness) {
	late := small
	late.Late = 50 * time.Millisecond
	for _, every := range []time.Duration{0, often} {
		c := h.scene(t, story{source: ranged(late), sink: buffered, lanes: []int{4}, every: every})
		c.finish()
		c.exactly("with splits that are found late", late.Items())
	}
}

func checkExactlyOnce(t TB, h EngineHarness) {
	for _, lanes := range []int{1, 2, 3, 4} {
		sink := func(w *World) stream.Sink[Item] {
			return Buffered{World: w, SinkOptions: SinkOptions{Scope: stream.CommitScope(lanes % 2)}}
		}
		h.everywhere(t, story{source: ranged(small), sink: sink, lanes: []int{lanes}, every: often}, func(c *scene, when string) bool {
			return c.exactly(when, small.Items())
		})
	}
}

func checkAtLeastOnce(t TB, h EngineHarness) {
	for _, lanes := range []int{1, 3} {
		h.everywhere(t, story{source: ranged(small), sink: direct, lanes: []int{lanes}, every: often}, func(c *scene, when string) bool {
			return c.atLeast(when, small.Items())
		})
	}
}

func checkEndOnly(t TB, h EngineHarness) {
	tiny := Ranges{Splits: 2, Rows: 3}
	h.everywhere(t, story{source: ranged(tiny), sink: buffered, lanes: []int{2}}, func(c *scene, when string) bool {
		return c.exactly(when, tiny.Items())
	})
}

func checkRescale(t TB, h EngineHarness) {
	for _, lanes := range [][]int{{1, 3, 2}, {4, 1, 2}, {3, 2, 5}} {
		h.everywhere(t, story{source: ranged(small), sink: buffered, lanes: lanes, every: often}, func(c *scene, when string) bool {
			return c.exactly(when, small.Items())
		})
	}
}

// checkFuncs has a Func that drops rows, silently and with ErrSkip, passes some, and makes many of others, behind a
// source that does the same.
func checkFuncs(t TB, h EngineHarness) {
	src := small
	src.Parts = func(row int64) int { return int(row % 3) }
	var want []Item
	fan := func(_ context.Context, in *stream.Record[Item], emit func(*stream.Record[Item]) error) error {
		return fanOut(in.Value, func(i Item) error { return emit(&stream.Record[Item]{Value: i}) })
	}
	for _, i := range src.Items() {
		fanOut(i, func(i Item) error { want = append(want, i); return nil })
	}
	for _, lanes := range []int{1, 3} {
		h.everywhere(t, story{source: ranged(src), fn: fan, sink: buffered, lanes: []int{lanes}, every: often}, func(c *scene, when string) bool {
			return c.exactly(when, want)
		})
	}
}

func fanOut(in Item, emit func(Item) error) error {
	switch in.Row % 4 {
	case 0:
		return nil
	case 1:
		return stream.ErrSkip
	}
	for n := range int(in.Row % 4) {
		if err := emit(Item{in.Row, 10*in.Part + n}); err != nil {
			return err
		}
	}
	return nil
}

// checkDeadLetters has a Func and a sink that each refuse some records.
func checkDeadLetters(t TB, h EngineHarness) {
	byFunc := func(i Item) bool { return i.Row%5 == 1 }
	bySink := func(i Item) bool { return i.Row%5 == 3 }
	var good, bad []Item
	for _, i := range small.Items() {
		if byFunc(i) || bySink(i) {
			bad = append(bad, i)
		} else {
			good = append(good, i)
		}
	}
	s := story{
		source: ranged(small),
		fn: func(_ context.Context, in *stream.Record[Item], emit func(*stream.Record[Item]) error) error {
			if byFunc(in.Value) {
				return fmt.Errorf("in the Func: %w", &stream.RecordError{Err: errors.New("it is bad")})
			}
			return emit(in)
		},
		sink: func(w *World) stream.Sink[Item] {
			return Buffered{w, SinkOptions{Bad: bySink, Failures: w.DeadLetters()}}
		},
		failures: (*World).DeadLetters,
		lanes:    []int{2},
		every:    often,
	}
	h.everywhere(t, s, func(c *scene, when string) bool {
		if got := slices.Compact(c.world.Dead()); !slices.Equal(got, bad) {
			t.Errorf("%s: dead letters are, without duplicates, %v, want %v", when, got, bad)
			return false
		}
		return c.exactly(when, good)
	})
}

// checkAcknowledge reads a queue, which delivers again what nobody acknowledged, and nothing else.
func checkAcknowledge(t TB, h EngineHarness) {
	for _, lanes := range []int{1, 2} {
		var q *Queue
		s := story{
			sink:    direct,
			lanes:   []int{lanes},
			every:   often,
			between: func() { q.Disconnect() },
		}
		fresh := func() stream.Source[Item] { return q }
		s.source = fresh
		all := Ranges{Splits: 1, Rows: 12}.Items()
		for at := 1; ; at += max(1, h.stride) {
			q = NewQueue(len(all))
			q.Pace = small.Pace
			c := h.scene(t, s)
			p := &Process{At: at, Mode: KillModes[at%len(KillModes)]}
			c.live(p, nil)
			c.finish()
			if !c.atLeast(fmt.Sprintf("death %v a step", p.Mode), all) {
				t.Fatalf("steps of the process: %v", p.Steps())
			}
			if !p.Dead() {
				if left := q.Left(); left > 0 {
					t.Errorf("the job has ended, and %d of %d messages are not acknowledged", left, len(all))
				}
				break
			}
		}
	}
}

// checkStop stops a job that does not end, twice, at different times.
func checkStop(t TB, h EngineHarness) {
	for _, lanes := range fewLanes {
		// A split for each lane, since no lane ever comes to a second one.
		src := Ranges{Splits: lanes, Rows: 40, Batch: 2, Pace: small.Pace, Endless: true}
		c := h.scene(t, story{source: ranged(src), sink: buffered, lanes: []int{lanes}, every: 4 * often})
		for _, after := range []time.Duration{3 * often, 7 * often, 10 * time.Second} {
			r, err := c.live(nil, func(run *EngineRun) {
				stop := make(chan struct{})
				run.Stop = stop
				time.AfterFunc(after, func() { close(stop) })
			})
			if err != nil {
				t.Fatalf("a run that was stopped gracefully: %v", err)
			}
			if !r.Stopped {
				t.Errorf("a run that was stopped gracefully says that its input had ended")
			}
			if n := len(c.world.Items()); n == 0 {
				t.Errorf("a graceful stop after %v, and nothing is visible", after)
			} else if after < time.Second && n == len(src.Items()) {
				t.Errorf("a stop after %v came too late to prove anything", after)
			}
		}
		c.exactly("after two graceful stops", src.Items())
	}
}

// checkRestart has every step fail once, in a process that lives on, and then several of them.
func checkRestart(t TB, h EngineHarness) {
	for _, lanes := range []int{1, 3} {
		for at := 1; h.survives(t, lanes, at); at += max(1, h.stride) {
		}
	}
	for _, every := range []int{9, 16, 31} {
		c := h.scene(t, story{source: ranged(small), sink: buffered, lanes: []int{2}, every: often})
		var steps atomic.Int64
		_, err := c.live(nil, func(run *EngineRun) {
			run.Restarts = 20
			run.Source = troubledSource{run.Source, func() bool { n := steps.Add(1); return n < 200 && n%int64(every) == 0 }}
		})
		if err != nil {
			t.Fatalf("a run whose every %dth fetch failed for a while: %v", every, err)
		}
		c.exactly("after several restarts", small.Items())
	}
}

// survives has one step fail, before or after it is done, and reports whether there is such a step.
func (h EngineHarness) survives(t TB, lanes, at int) bool {
	t.Helper()
	more := false
	for _, mode := range []KillMode{Before, Unanswered} {
		p := &Process{Trouble: at, Mode: mode}
		c := h.scene(t, story{source: ranged(small), sink: buffered, lanes: []int{lanes}, every: often})
		_, err := c.live(p, func(run *EngineRun) { run.Restarts = 3 })
		steps := p.Steps()
		if len(steps) < at {
			break
		}
		more = true
		when := fmt.Sprintf("with %d lanes and step %d, %s, failing %s", lanes, at, steps[at-1], mode)
		if err != nil && len(steps) == 1 {
			c.finish() // an engine need not insist where it could not even begin
		} else if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if !c.exactly(when, small.Items()) {
			t.Fatalf("steps: %v", steps)
		}
	}
	return more
}

type troubledSource struct {
	stream.Source[Item]
	trouble func() bool
}

func (s troubledSource) NewReader(ctx context.Context, rc stream.ReaderContext) (stream.Reader[Item], error) {
	r, err := s.Source.NewReader(ctx, rc)
	return troubledReader{r, s.trouble}, err
}

type troubledReader struct {
	stream.Reader[Item]
	trouble func() bool
}

func (r troubledReader) Fetch(ctx context.Context, b *stream.Batch[Item]) error {
	if r.trouble() {
		b.Reset()
		return errNow
	}
	return r.Reader.Fetch(ctx, b)
}

var errNow = errors.New("a fault of the suite")

// checkError has a Func that fails at one row.
func checkError(t TB, h EngineHarness) {
	c := h.scene(t, story{source: ranged(small), sink: buffered, lanes: []int{2}, every: often})
	_, err := c.live(nil, func(run *EngineRun) {
		run.Func = func(_ context.Context, in *stream.Record[Item], emit func(*stream.Record[Item]) error) error {
			if in.Value.Row == 6 {
				return errNow
			}
			return emit(in)
		}
	})
	if !errors.Is(err, errNow) {
		t.Fatalf("a Func failed with %q, and the run ended with %v", errNow, err)
	}
	if where, ok := errors.AsType[*stream.PositionError](err); !ok || where.At != (stream.Location{Name: "range-1", Row: 2 * rangeStep}) {
		t.Errorf("the error does not say that it happened at range-1, row %d: %v", 2*rangeStep, err)
	}
}

func checkEngineTally(t TB, h EngineHarness) {
	src := small
	src.Parts = func(row int64) int { return int(row % 3) }
	isBad := func(i Item) bool { return i.Row == 5 || i.Row == 10 }
	isSkip := func(i Item) bool { return i.Row == 8 }
	want := stream.Tally{}
	for row := range int64(src.Splits * src.Rows) {
		switch parts := int64(src.parts(row)); {
		case parts == 0:
			want.Add(stream.Tally{Read: 1, Skipped: 1})
		case isBad(Item{Row: row}):
			want.Add(stream.Tally{Read: parts, DeadLettered: parts})
		case isSkip(Item{Row: row}):
			want.Add(stream.Tally{Read: parts, Skipped: parts})
		default:
			want.Add(stream.Tally{Read: parts, Written: parts})
		}
	}
	sink := func(w *World) stream.Sink[Item] {
		return Buffered{w, SinkOptions{Bad: isBad, Skip: isSkip, Failures: w.DeadLetters()}}
	}
	for at := 1; ; at += 3 {
		c := h.scene(t, story{source: ranged(src), sink: sink, lanes: []int{2, 3}, every: often})
		p := &Process{At: at}
		r, _ := c.live(p, nil)
		if p.Dead() {
			r = c.finish()
		}
		if r.Tally == nil {
			t.Logf("the engine keeps no tally")
			return
		}
		got := *r.Tally
		if got.Bytes = 0; got != want {
			t.Fatalf("after the process died at step %d and another finished, the tally is %+v, want %+v", at, got, want)
		}
		if !p.Dead() {
			return
		}
	}
}

// checkScope counts the committers that work: one where the sink wants one.
func checkScope(t TB, h EngineHarness) {
	for _, scope := range []stream.CommitScope{stream.PerLane, stream.Global} {
		var mu sync.Mutex
		busy := map[int]bool{} // committers that committed something, by lane
		made := 0
		sink := func(w *World) stream.Sink[Item] {
			return scopedSink{Buffered{w, SinkOptions{Scope: scope}}, func(lane int) {
				mu.Lock()
				defer mu.Unlock()
				busy[lane] = true
				made++
			}}
		}
		src := Ranges{Splits: 3, Rows: 5, Pace: time.Millisecond}
		c := h.scene(t, story{source: ranged(src), sink: sink, lanes: []int{3}})
		c.finish()
		c.exactly("committed", src.Items())
		want := 3
		if scope == stream.Global {
			want = 1
		}
		if len(busy) != want || made != want {
			t.Errorf("3 lanes, commit scope %d, one checkpoint: %d committers committed %d times, want %d and %d", scope, len(busy), made, want, want)
		}
	}
}

type scopedSink struct {
	Buffered
	committed func(lane int)
}

func (s scopedSink) NewCommitter(ctx context.Context, cc stream.CommitterContext) (stream.Committer, error) {
	c, err := s.Buffered.NewCommitter(ctx, cc)
	return scopedCommitter{c, cc.Lane, s.committed}, err
}

type scopedCommitter struct {
	stream.Committer
	lane      int
	committed func(int)
}

func (c scopedCommitter) Commit(ctx context.Context, cs []stream.Committable) error {
	c.committed(c.lane)
	return c.Committer.Commit(ctx, cs)
}

// checkStatesTogether stops a job of two lanes, whose states share destinations, and looks at who gets them.
func checkStatesTogether(t TB, h EngineHarness) {
	for _, lanes := range []int{1, 3, 5} {
		src := small
		src.Endless = true
		var mu sync.Mutex
		owners := map[string]map[int]int{} // states by destination and lane
		s := story{source: ranged(src), lanes: []int{2, lanes}, every: often}
		s.sink = func(w *World) stream.Sink[Item] {
			return statefulSink{Buffered{World: w}, func(wc stream.WriterContext) {
				mu.Lock()
				defer mu.Unlock()
				for _, state := range wc.States {
					if owners[state.Destination] == nil {
						owners[state.Destination] = map[int]int{}
					}
					owners[state.Destination][wc.Lane]++
				}
			}}
		}
		c := h.scene(t, s)
		for range 2 {
			if _, err := c.live(nil, func(run *EngineRun) {
				stop := make(chan struct{})
				run.Stop = stop
				time.AfterFunc(time.Second, func() { close(stop) })
			}); err != nil {
				t.Fatalf("run: %v", err)
			}
		}
		if len(owners) != 3 {
			t.Errorf("%d lanes were given states of %d destinations, want 3", lanes, len(owners))
		}
		for destination, by := range owners {
			if len(by) != 1 {
				t.Errorf("the states of %s went to %d of %d lanes", destination, len(by), lanes)
			}
			for _, n := range by {
				if n != 2 {
					t.Errorf("of the states of %s, taken by two lanes, %d were given out", destination, n)
				}
			}
		}
	}
}

type statefulSink struct {
	Buffered
	given func(stream.WriterContext)
}

func (s statefulSink) NewWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[Item], error) {
	s.given(wc)
	return s.Buffered.NewWriter(ctx, wc)
}
