package streamtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/millrace-dev/millrace/stream"
)

// SinkHarness says how to make a sink and look at what it wrote.
type SinkHarness[T any] struct {
	// Open makes a target with nothing in it.
	Open func(t TB) SinkTarget[T]

	// MaxState is the largest allowed size of a writer's state; 0 is 200 bytes.
	MaxState int

	// RealTime is for sinks that cannot run in a testing/synctest bubble, such as those with sockets.
	RealTime bool

	// Leaks are goroutines that outlive what they were started for, on purpose.
	Leaks []goleak.Option
}

// SinkTarget is a place to write to, outside of any process.
type SinkTarget[T any] struct {
	// Sink makes the sink as another process would, over this target.
	Sink func(failures stream.FailurePolicy) stream.Sink[T]

	// Record makes record number i. No two are alike, and any three in a row go to two destinations or more.
	Record func(i int) T
	// Bad makes it so that the sink refuses it, and Skip so that it drops it; nil where there are no such records.
	Bad, Skip func(i int) T
	// Scribble overwrites what a record points to, for sinks whose records have bytes; nil where they have none.
	Scribble func(*T)

	// Visible are the numbers of the records that anybody can read now, in any order, those that are there twice twice.
	Visible func() []int

	// Close frees the target; it may be nil.
	Close func()
}

// TestSink runs the suite.
func TestSink[T any](t *testing.T, h SinkHarness[T]) {
	runAll(t, sinkChecks[T](), h, h.RealTime)
}

func sinkChecks[T any]() []check[SinkHarness[T]] {
	type H = SinkHarness[T]
	return []check[H]{
		{"flushed_rows_outlive_the_writer", checkFlushed[T]},
		{"final_flush_is_a_flush", checkFinalFlush[T]},
		{"empty_checkpoints_do_nothing", checkEmptyCheckpoint[T]},
		{"checkpoints_follow_one_another", checkCheckpoints[T]},
		{"nothing_is_visible_before_its_commit", checkInvisible[T]},
		{"close_commits_nothing", checkCloseQuiet[T]},
		{"commits_repeat", checkCommitRepeats[T]},
		{"commits_come_in_any_order", checkCommitOrder[T]},
		{"promises_do_not_change", checkBytesFrozen[T]},
		{"goes_on_from_any_state", checkAnyState[T]},
		{"goes_on_beside_a_zombie", checkZombie[T]},
		{"goes_on_from_a_quiet_state", checkQuietState[T]},
		{"goes_on_from_states_of_several_lanes", checkSeveralStates[T]},
		{"states_are_small_and_named", checkStates[T]},
		{"keeps_nothing_of_a_record", checkKeepsNothing[T]},
		{"tally_accounts_for_every_record", checkTally[T]},
		{"bad_records_go_to_the_handler", checkBadRecords[T]},
		{"refusal_of_the_handler_is_an_error", checkHandlerRefuses[T]},
		{"handler_is_flushed_last", checkHandlerFlushed[T]},
		{"handler_is_closed_once", checkHandlerClosed[T]},
		{"records_in_bulk_are_the_same", checkBulk[T]},
		{"encoded_records_are_the_same", checkEncoded[T]},
		{"committer_closes_twice", checkCommitterClose[T]},
		{"nothing_is_left_running", checkSinkLeaks[T]},
	}
}

// bench is a target with a failure policy that keeps a log.
type bench[T any] struct {
	t TB
	h SinkHarness[T]
	SinkTarget[T]
	failures *failureLog

	run   string // of the writers made last
	lanes []int  // that have a writer in it
}

// runs numbers the runs of all benches.
var runs atomic.Int64

// inRun is the run that a writer belongs to: another one than before when it goes on from states, or its lane has had one.
func (b *bench[T]) inRun(lane int, states []stream.State) string {
	if b.run == "" || states != nil || slices.Contains(b.lanes, lane) {
		b.run, b.lanes = fmt.Sprintf("%032x", runs.Add(1)), nil
	}
	b.lanes = append(b.lanes, lane)
	return b.run
}

func (h SinkHarness[T]) bench(t TB) *bench[T] {
	t.Helper()
	return &bench[T]{t: t, h: h, SinkTarget: h.Open(t), failures: &failureLog{}}
}

func (b *bench[T]) close() {
	if b.Close != nil {
		b.Close()
	}
}

func (b *bench[T]) twoPhase() stream.TwoPhase {
	return stream.CommitsOf(b.Sink(b.failures))
}

// session is a writer in a process of its own, with the checkpoints it has taken.
type session[T any] struct {
	b      *bench[T]
	writer stream.Writer[T]
	wrote  int
	taken  []taken
	shared *stream.Record[T] // when set, used for all writes and overwritten after each
}

// taken is what came out of a checkpoint: bytes.
type taken struct {
	committables []stream.Committable
	states       []stream.State
}

func (b *bench[T]) writer(lane, lanes int, states []stream.State) *session[T] {
	b.t.Helper()
	wc := stream.WriterContext{Job: testJob, Lane: lane, Lanes: lanes, Run: b.inRun(lane, states), Attempt: 1, Streaming: true, States: states, Meter: stream.NoMeter, Log: quiet}
	if states != nil {
		wc.Checkpoint = 1
	}
	w, err := b.Sink(b.failures).NewWriter(b.t.Context(), wc)
	if err != nil {
		b.t.Fatalf("NewWriter: %v", err)
	}
	return &session[T]{b: b, writer: w}
}

// write writes the records from up to before to.
func (s *session[T]) write(from, to int) {
	s.b.t.Helper()
	for i := from; i < to; i++ {
		if err := s.try(s.b.Record(i), i); err != nil {
			s.b.t.Fatalf("Write of record %d: %v", i, err)
		}
	}
}

func (s *session[T]) try(value T, i int) error {
	s.wrote++
	r := stream.Record[T]{Value: value, At: stream.Position{Split: "input", Row: int64(i)}}
	if s.shared == nil {
		return s.writer.Write(s.b.t.Context(), &r)
	}
	*s.shared = r
	err := s.writer.Write(s.b.t.Context(), s.shared)
	if s.b.Scribble != nil {
		s.b.Scribble(&s.shared.Value)
	}
	*s.shared = stream.Record[T]{Value: s.b.Record(1000)}
	return err
}

// checkpoint does what an engine does at a barrier, and keeps copies.
func (s *session[T]) checkpoint(final bool) taken {
	s.b.t.Helper()
	out, err := s.tryCheckpoint(final)
	if err != nil {
		s.b.t.Fatalf("checkpoint: %v", err)
	}
	return out
}

func (s *session[T]) tryCheckpoint(final bool) (out taken, err error) {
	ctx := s.b.t.Context()
	if err := s.writer.Flush(ctx, final); err != nil {
		return out, err
	}
	id := int64(len(s.taken) + 1)
	cs, err := s.writer.Prepare(ctx, id)
	if err != nil {
		return out, err
	}
	states, err := s.writer.Snapshot(ctx, id)
	out = taken{cs, states}.clone()
	s.taken = append(s.taken, out)
	return out, err
}

func (k taken) clone() (c taken) {
	for _, one := range k.committables {
		c.committables = append(c.committables, stream.Committable{Key: one.Key, Data: bytes.Clone(one.Data)})
	}
	for _, one := range k.states {
		c.states = append(c.states, stream.State{Destination: one.Destination, Shard: one.Shard, Data: bytes.Clone(one.Data)})
	}
	return c
}

func (s *session[T]) close() {
	s.b.t.Helper()
	if err := s.writer.Close(); err != nil {
		s.b.t.Errorf("Writer.Close: %v", err)
	}
}

// commit commits in another process, which knows of the writer nothing but its bytes, for sinks that commit.
func (b *bench[T]) commit(cs ...stream.Committable) {
	b.t.Helper()
	two := b.twoPhase()
	if two == nil {
		if len(cs) > 0 {
			b.t.Fatalf("the writer prepared %d committables, and the sink has no committer", len(cs))
		}
		return
	}
	c, err := two.NewCommitter(b.t.Context(), stream.CommitterContext{Job: testJob, Meter: stream.NoMeter, Log: quiet})
	if err != nil {
		b.t.Fatalf("NewCommitter: %v", err)
	}
	if err := errors.Join(c.Commit(b.t.Context(), cs), c.Close()); err != nil {
		b.t.Fatalf("Commit: %v", err)
	}
}

// sees requires exactly the records from 0 up to before n to be visible, each once. A sink with one phase must show
// those, and may repeat them and show more: it makes rows visible that a failed attempt wrote.
func (b *bench[T]) sees(when string, n int) {
	b.t.Helper()
	b.seesThose(when, b.twoPhase() != nil, func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	})
}

func (b *bench[T]) seesThose(when string, once bool, want func(yield func(int) bool)) {
	b.t.Helper()
	got, all := b.Visible(), slices.Collect(want)
	slices.Sort(got)
	if !once {
		got = slices.DeleteFunc(slices.Compact(got), func(i int) bool { return !slices.Contains(all, i) })
	}
	if !slices.Equal(got, all) {
		b.t.Errorf("%s: the records %v are visible, want %v", when, got, all)
	}
}

// failureLog is a failure policy that writes down what is asked of it.
type failureLog struct {
	refuse error // what Handle answers

	mu      sync.Mutex // guards the fields below
	made    int
	handled []stream.FailedRecord
	unsafe  int // handled since the last flush
	flushes int
	closed  int
}

func (f *failureLog) NewHandler(context.Context, stream.HandlerContext) (stream.FailureHandler, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made++
	return f, nil
}

func (f *failureLog) Handle(_ context.Context, r *stream.FailedRecord) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handled = append(f.handled, *r)
	f.unsafe++
	return f.refuse
}

func (f *failureLog) Flush(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unsafe = 0
	f.flushes++
	return nil
}

func (f *failureLog) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
	return nil
}
