package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/stream"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

// sizedSource knows how much there is to read.
type sizedSource struct{ stream.Source[item] }

func (s sizedSource) NewEnumerator(ctx context.Context, ec stream.EnumeratorContext) (stream.Enumerator, error) {
	e, err := s.Source.NewEnumerator(ctx, ec)
	return sizedEnumerator{e}, err
}

type sizedEnumerator struct{ stream.Enumerator }

func (sizedEnumerator) Size() (int64, bool) { return 160, true }

func TestStatus(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		h := &engine.Handle{}
		if got := h.Status(); got.State != engine.NotStarted || got.Job != "" {
			t.Errorf("before the run: %+v", got)
		}
		s.opts.Handle, s.opts.Lanes = h, 3
		s.source = sizedSource{s.source}
		begun := time.Now()
		done := make(chan engine.Result, 1)
		go func() { done <- s.finish() }()
		time.Sleep(25 * time.Millisecond)
		synctest.Wait()
		got := h.Status()
		want := engine.Status{
			Job: "numbers", State: engine.Running, Started: begun,
			Tally:      stream.Tally{Read: 8, Written: 6, Bytes: 96}, // two are in the writers' buffers
			InputBytes: 64, TotalBytes: 160,
			Lanes: []engine.LaneStatus{
				{Lane: 0, Doing: engine.LaneReading, Split: "range-0", Position: 31},
				{Lane: 1, Doing: engine.LaneReading, Split: "range-1", Position: 31},
				{Lane: 2, Doing: engine.LaneIdle},
			},
			Checkpoint:  engine.CheckpointStatus{ID: 1, Taken: begun.Add(20 * time.Millisecond).UTC()},
			Checkpoints: 1,
			Splits:      engine.SplitStatus{Assigned: 2},
		}
		if len(got.Recent) != 1 || got.Recent[0] != got.Checkpoint {
			t.Errorf("the newest checkpoint is %+v, and the recent ones are %+v", got.Checkpoint, got.Recent)
		}
		got.Recent = nil
		if got.Checkpoint.Bytes == 0 {
			t.Errorf("the checkpoint has no size")
		}
		got.Checkpoint.Bytes = 0
		// Who got which split depends on who came first.
		slices.SortFunc(got.Lanes, func(a, b engine.LaneStatus) int {
			return strings.Compare(b.Doing.String()+a.Split, a.Doing.String()+b.Split)
		})
		for i := range got.Lanes {
			got.Lanes[i].Lane, got.Lanes[i].Tally = i, stream.Tally{}
		}
		// What the barrier at 20 ms flushed depends on who came first at that instant.
		got.Tally, want.Tally = stream.Tally{Read: got.Tally.Read}, stream.Tally{Read: want.Tally.Read}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("status after 25 ms (-want +got):\n%s", diff)
		}
		r := <-done
		end := h.Status()
		if end.Splits != (engine.SplitStatus{Assigned: 2, Finished: 2}) || len(end.Recent) != end.Checkpoints {
			t.Errorf("after the run: %+v, of %d checkpoints %+v", end.Splits, end.Checkpoints, end.Recent)
		}
		if end.State != engine.Ended || end.Tally != r.Tally || end.Lanes != nil || end.Checkpoint.ID != r.Checkpoint || end.Tally.Lost() != 0 {
			t.Errorf("after the run: %+v", end)
		}
	})
}

// TestStatusWhileRestarting shows why.
func TestStatusWhileRestarting(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		h := &engine.Handle{}
		s.opts.Handle, s.opts.Restart = h, engine.Restart{}
		failed := false
		s.fn = func(_ context.Context, in *stream.Record[item], emit func(*stream.Record[item]) error) error {
			if in.Value.Row == 9 && !failed {
				failed = true
				return errFault
			}
			return emit(in)
		}
		go s.finish()
		time.Sleep(500 * time.Millisecond)
		got := h.Status()
		if got.LastFailureAt.IsZero() {
			t.Errorf("no time of the failure: %+v", got)
		}
		if got.State != engine.Restarting || !errors.Is(got.LastFailure, errFault) || got.Lanes != nil || got.Tally.Lost() != 0 {
			t.Errorf("while it waits: %+v", got)
		}
		time.Sleep(time.Second)
		if got := h.Status(); got.Restarts != 1 || got.State != engine.Ended || !errors.Is(got.LastFailure, errFault) {
			t.Errorf("at the end: %+v", got)
		}
	})
}

// An error is logged where it is not returned, and there with the attempt and the wait; the one that is returned is not.
func TestFailuresAreLoggedOnce(t *testing.T) {
	for _, restart := range []engine.Restart{{Policy: engine.NoRestart}, {Policy: engine.FixedDelay, Initial: time.Second, Attempts: 2}} {
		inBubble(t, func(t *testing.T, s *story) {
			var log bytes.Buffer
			s.opts.Restart, s.opts.Log = restart, slog.New(slog.NewJSONHandler(&log, nil))
			s.fn = func(context.Context, *stream.Record[item], func(*stream.Record[item]) error) error { return errFault }
			if _, err := s.run(t.Context()); !errors.Is(err, errFault) {
				t.Fatalf("ended with %v", err)
			}
			var lines []string
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, errFault.Error()) {
					lines = append(lines, line)
				}
			}
			if len(lines) != restart.Attempts {
				t.Fatalf("%d lines with the error, want %d: %s", len(lines), restart.Attempts, &log)
			}
			for i, line := range lines {
				var got struct {
					Level, Msg, Job string
					Attempt, Of     int
					Backoff         time.Duration
				}
				if err := json.Unmarshal([]byte(line), &got); err != nil {
					t.Fatal(err)
				}
				if got.Level != "WARN" || got.Job != "numbers" || got.Attempt != i+1 || got.Of != 2 || got.Backoff != time.Second {
					t.Errorf("logged %s", line)
				}
			}
		})
	}
}

func TestProgress(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		var mu sync.Mutex
		var read []int64
		s.opts.ProgressEvery = 25 * time.Millisecond
		s.opts.Progress = func(st engine.Status) {
			mu.Lock()
			defer mu.Unlock()
			read = append(read, st.Tally.Read)
		}
		s.finish()
		mu.Lock()
		defer mu.Unlock()
		if want := []int64{4, 10, 14}; len(read) < 3 || read[0] != want[0] || !slices.IsSorted(read) || read[len(read)-1] > 20 {
			t.Errorf("progress was %v, want about %v", read, want)
		}
	})
}

// ticking is a sink with one phase whose writers want to be called.
type ticking struct {
	stream.Sink[item]
	every time.Duration
	times *[]time.Duration
	begun time.Time
	fail  error // of every Tick
}

func (s ticking) NewWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[item], error) {
	w, err := s.Sink.NewWriter(ctx, wc)
	return tickingWriter{w, s}, err
}

type tickingWriter struct {
	stream.Writer[item]
	s ticking
}

func (w tickingWriter) Every() time.Duration { return w.s.every }

func (w tickingWriter) Tick(context.Context) error {
	*w.s.times = append(*w.s.times, time.Since(w.s.begun))
	return w.s.fail
}

// TestTicks (SW-21) come while the lane waits for rows, and for splits, and never when the writer wants none.
func TestTicks(t *testing.T) {
	for every, want := range map[time.Duration]int{0: 0, 15 * time.Millisecond: 9} {
		inBubble(t, func(t *testing.T, s *story) {
			var times []time.Duration
			src := streamtest.Ranges{Splits: 2, Rows: 1, Pace: 30 * time.Millisecond, Late: 20 * time.Millisecond}
			s.source = src
			s.opts.Checkpoint.Every = 0
			s.sink = ticking{streamtest.Direct{World: s.world}, every, &times, time.Now(), nil}
			r := s.finish()
			if len(times) != want {
				t.Errorf("in %v there were ticks at %v, want %d", r.Duration, times, want)
			}
			for i, at := range times {
				if at != time.Duration(i+1)*every {
					t.Errorf("tick %d came at %v", i+1, at)
				}
			}
			s.sees(src.Items())
		})
	}
}

// TestTickThatFails (SW-21) fails the job, and is not asked again.
func TestTickThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		var times []time.Duration
		s.opts.Checkpoint.Every = 0
		s.sink = ticking{streamtest.Direct{World: s.world}, 15 * time.Millisecond, &times, time.Now(), errFault}
		if _, err := s.run(t.Context()); !errors.Is(err, errFault) || len(times) != 1 {
			t.Errorf("Run: %v after ticks at %v", err, times)
		}
	})
}

// countingBulk is a one-phase sink that notes how it was written to.
type countingBulk struct {
	streamtest.Direct
	mu   *sync.Mutex
	runs *[]int
}

func (c countingBulk) NewWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[item], error) {
	w, err := c.Direct.NewWriter(ctx, wc)
	return countingBulkWriter{w, w.(stream.RecordsWriter[item]), c}, err
}

type countingBulkWriter struct {
	stream.Writer[item]
	bulk stream.RecordsWriter[item]
	c    countingBulk
}

func (w countingBulkWriter) WriteRecords(ctx context.Context, rs []stream.Record[item]) (int, error) {
	w.c.mu.Lock()
	*w.c.runs = append(*w.c.runs, len(rs))
	w.c.mu.Unlock()
	return w.bulk.WriteRecords(ctx, rs)
}

func (w countingBulkWriter) Tally() stream.Tally { return w.Writer.(stream.Tallier).Tally() }

// TestRecordsInBulk go as they were fetched, in runs that are bounded so that barriers need not wait, unless a Func is
// in between.
func TestRecordsInBulk(t *testing.T) {
	src := streamtest.Ranges{Splits: 1, Rows: 1500, Batch: 1200, Parts: func(row int64) int { return int(row % 2) }}
	for name, tc := range map[string]struct {
		fn   stream.Func[item, item]
		want []int
	}{
		"without a Func": {nil, []int{512, 88, 150}},
		"with a Func":    {stream.Through[item], nil},
	} {
		inBubble(t, func(t *testing.T, s *story) {
			var runs []int
			s.source, s.fn = src, tc.fn
			s.opts.Checkpoint.Every = 0
			s.sink = countingBulk{streamtest.Direct{World: s.world}, &sync.Mutex{}, &runs}
			r := s.finish()
			if !slices.Equal(runs, tc.want) {
				t.Errorf("%s: runs of %v records, want %v", name, runs, tc.want)
			}
			if r.Tally.Read != 1500 || r.Tally.Skipped != 750 || r.Tally.Written != 750 {
				t.Errorf("%s: the tally is %+v", name, r.Tally)
			}
			s.sees(src.Items())
		})
	}
}

// TestAcknowledgementsFollowStoreAndCommit keeps a log of who did what.
func TestAcknowledgementsFollowStoreAndCommit(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		var mu sync.Mutex
		var log []string
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			log = append(log, what)
		}
		src := numbers
		src.Splits = 1
		s.source = notingSource{src, note}
		s.opts.Checkpoint.Every = 0
		s.opts.Checkpoint.Store = faultyStore{s.store, func(ctx context.Context, job string, id int64, data []byte) error {
			note("store")
			return s.store.Put(ctx, job, id, data)
		}}
		s.sink = notingSink{s.sink, s.sink.(stream.TwoPhase), note}
		s.finish()
		if want := "barrier 1 flush store commit acknowledge 1 store"; strings.Join(log, " ") != want &&
			strings.Join(log, " ") != "barrier 1 flush store commit store acknowledge 1" {
			t.Errorf("the order was %v, want %s", log, want)
		}
	})
}

type notingSource struct {
	streamtest.Ranges
	note func(string)
}

func (s notingSource) NewReader(ctx context.Context, rc stream.ReaderContext) (stream.Reader[item], error) {
	r, err := s.Ranges.NewReader(ctx, rc)
	return notingReader{r, s.note}, err
}

type notingReader struct {
	stream.Reader[item]
	note func(string)
}

func (r notingReader) Barrier(checkpoint, _ int64) { r.note("barrier " + jsonOf(checkpoint)) }

func (r notingReader) Acknowledge(_ context.Context, checkpoint int64) error {
	r.note("acknowledge " + jsonOf(checkpoint))
	return nil
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

type notingSink struct {
	stream.Sink[item]
	stream.TwoPhase
	note func(string)
}

func (s notingSink) NewWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[item], error) {
	w, err := s.Sink.NewWriter(ctx, wc)
	return onFlushWriter{w, func() error { s.note("flush"); return nil }}, err
}

func (s notingSink) NewCommitter(ctx context.Context, cc stream.CommitterContext) (stream.Committer, error) {
	c, err := s.TwoPhase.NewCommitter(ctx, cc)
	return notingCommitter{c, s.note}, err
}

type notingCommitter struct {
	stream.Committer
	note func(string)
}

func (c notingCommitter) Commit(ctx context.Context, cs []stream.Committable) error {
	c.note("commit")
	return c.Committer.Commit(ctx, cs)
}

// TestLanesGoOnWhileCommitting has a commit that takes as long as several checkpoints.
func TestLanesGoOnWhileCommitting(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.sink = slowCommits{s.sink, s.sink.(stream.TwoPhase)}
		r := s.finish()
		// Reading takes 100 ms. The first commit ends at 20+70, the next, of all that was stored meanwhile, at 160, the
		// one of the end at 230.
		if r.Duration > 240*time.Millisecond || r.Checkpoints < 5 {
			t.Errorf("%d checkpoints in %v: lanes waited for commits", r.Checkpoints, r.Duration)
		}
		s.sees(numbers.Items())
	})
}

type slowCommits struct {
	stream.Sink[item]
	stream.TwoPhase
}

func (s slowCommits) NewCommitter(ctx context.Context, cc stream.CommitterContext) (stream.Committer, error) {
	c, err := s.TwoPhase.NewCommitter(ctx, cc)
	return slowCommitter{c}, err
}

type slowCommitter struct{ stream.Committer }

func (c slowCommitter) Commit(ctx context.Context, cs []stream.Committable) error {
	time.Sleep(70 * time.Millisecond)
	return c.Committer.Commit(ctx, cs)
}

// TestBarrierWakesAFetch that would otherwise block for ever.
func TestBarrierWakesAFetch(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.source = streamtest.Ranges{Splits: 1, Rows: 2, Endless: true}
		s.opts.Handle = &engine.Handle{}
		done := make(chan engine.Result, 1)
		go func() { done <- s.finish() }()
		time.Sleep(10*time.Second + 1)
		if n := s.opts.Handle.Status().Checkpoints; n != 500 {
			t.Errorf("%d checkpoints in ten seconds of waiting, 20 ms apart", n)
		}
		s.opts.Handle.Stop()
		if r := <-done; r.Duration != 10*time.Second+1 {
			t.Errorf("the stop took until %v", r.Duration)
		}
	})
}

// TestEveryLaneGetsAShare (SRC-19) has lanes wait for splits that come late.
func TestEveryLaneGetsAShare(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		var mu sync.Mutex
		var order []int
		src := streamtest.Ranges{Splits: 6, Rows: 1, Late: 10 * time.Millisecond}
		s.source = laneNoting{src, func(lane int) { mu.Lock(); order = append(order, lane); mu.Unlock() }}
		s.opts.Lanes = 3
		s.opts.Checkpoint.Every = 0
		s.finish()
		// Lanes ask in any order at first, and then take turns: who got a split is the last to wait again.
		if len(order) != 6 || order[0] != order[3] || order[1] != order[4] || order[2] != order[5] || order[0] == order[1] || order[1] == order[2] || order[0] == order[2] {
			t.Errorf("six splits went to the lanes %v", order)
		}
	})
}

type laneNoting struct {
	streamtest.Ranges
	opened func(lane int)
}

func (s laneNoting) NewReader(ctx context.Context, rc stream.ReaderContext) (stream.Reader[item], error) {
	r, err := s.Ranges.NewReader(ctx, rc)
	return laneNotingReader{r, rc.Lane, s.opened}, err
}

type laneNotingReader struct {
	stream.Reader[item]
	lane   int
	opened func(int)
}

func (r laneNotingReader) Open(ctx context.Context, s stream.Split) error {
	r.opened(r.lane)
	return r.Reader.Open(ctx, s)
}
