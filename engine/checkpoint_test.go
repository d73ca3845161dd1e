package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/stream"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

// faultyStore is a store whose puts go through put.
type faultyStore struct {
	engine.Store
	put func(ctx context.Context, job string, id int64, data []byte) error
}

func (s faultyStore) Put(ctx context.Context, job string, id int64, data []byte) error {
	return s.put(ctx, job, id, data)
}

var errDisk = errors.New("the disk is full")

func TestCheckpointsGrowByTally(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.opts.Checkpoint.Keep = 100
		src := numbers
		src.Parts = func(row int64) int { return int(row % 3) }
		s.source = src
		s.sink = streamtest.Buffered{World: s.world, SinkOptions: streamtest.SinkOptions{
			Skip: func(i item) bool { return i.Row == 4 }, Bad: func(i item) bool { return i.Row == 8 }, Failures: s.world.DeadLetters()}}
		s.fn = func(_ context.Context, in *stream.Record[item], emit func(*stream.Record[item]) error) error {
			switch in.Value.Row {
			case 5:
				return stream.ErrSkip
			case 7, 14:
				out := stream.Record[item]{Value: in.Value}
				if err := errors.Join(emit(&out), emit(&stream.Record[item]{Value: item{Row: in.Value.Row, Part: 9}})); err != nil {
					return err
				}
				return &stream.RecordError{Err: errors.New("after two")}
			}
			return emit(in)
		}
		job := s.job()
		job.Failures = stream.LogAndDrop()
		r, err := engine.Run(t.Context(), job, s.opts)
		if err != nil {
			t.Fatal(err)
		}
		all := s.checkpoints()
		if len(all) < 5 {
			t.Fatalf("%d checkpoints are too few", len(all))
		}
		var last int64
		for _, c := range all {
			if lost := c.Tally.Lost(); lost != 0 {
				t.Errorf("checkpoint %d cannot account for %d records: %+v", c.ID, lost, c.Tally)
			}
			if c.Tally.Read < last {
				t.Errorf("checkpoint %d has read %d records, fewer than the one before", c.ID, c.Tally.Read)
			}
			last = c.Tally.Read
		}
		// Rows 0, 3, 6, 9, 12, 15, 18 give no record; 1, 4, 7, 10, 13, 16, 19 one; 2, 5, 8, 11, 14, 17 two.
		want := stream.Tally{
			Read:         7 + 7 + 12 + 2 + 4, // row 7 becomes three: two emitted, one refused; so does each of row 14
			Skipped:      7 + 1 + 2,          // no records; row 4 by the sink; row 5 by the Func
			DeadLettered: 2 + 1 + 2,          // row 8 by the sink; rows 7 and 14 by the Func
			Written:      7 + 12 + 6 - 3 - 3 - 2,
		}
		got := r.Tally
		if got.Bytes = 0; got != want || got.Lost() != 0 {
			t.Errorf("the tally is %+v, want %+v", got, want)
		}
		if int(want.Written) != len(s.world.Items()) {
			t.Errorf("%d rows are visible, and %d were counted", len(s.world.Items()), want.Written)
		}
	})
}

// TestUnstoredCheckpointsAreCaughtUp (SW-133) has every other put fail, before or after it was done. The writers prepare
// nothing twice: what they prepared for a checkpoint that failed must come with the next.
func TestUnstoredCheckpointsAreCaughtUp(t *testing.T) {
	for _, done := range []bool{false, true} {
		inBubble(t, func(t *testing.T, s *story) {
			puts := 0
			s.opts.Checkpoint.Store = faultyStore{s.store, func(ctx context.Context, job string, id int64, data []byte) error {
				if puts++; puts%2 == 0 {
					return s.store.Put(ctx, job, id, data)
				}
				if done {
					if err := s.store.Put(ctx, job, id, data); err != nil {
						return err
					}
				}
				return errDisk
			}}
			src := numbers
			src.Rows = 11 // six checkpoints, the last of which is stored
			s.source = src
			s.opts.Handle = &engine.Handle{}
			r := s.finish()
			s.sees(src.Items())
			if n := s.opts.Handle.Status().FailedCheckpoints; n == 0 || r.Restarts != 0 {
				t.Errorf("%d checkpoints failed, %d restarts", n, r.Restarts)
			}
		})
	}
}

// TestStoreThatNeverWorks ends the attempt when too many checkpoints in a row could not be stored.
func TestStoreThatNeverWorks(t *testing.T) {
	for tolerate, want := range map[int]int{engine.NoTolerance: 1, 0: 4, 2: 3} {
		inBubble(t, func(t *testing.T, s *story) {
			puts := 0
			s.opts.Checkpoint.Tolerate = tolerate
			s.opts.Checkpoint.Store = faultyStore{s.store, func(context.Context, string, int64, []byte) error {
				puts++
				return errDisk
			}}
			src := numbers
			src.Rows = 100
			s.source = src
			r, err := s.run(t.Context())
			if !errors.Is(err, errDisk) || puts != want {
				t.Errorf("with a tolerance of %d: %v after %d puts, want %d", tolerate, err, puts, want)
			}
			if r.Outcome != engine.Failed || r.Tally != (stream.Tally{}) {
				t.Errorf("the result is %+v", r)
			}
			s.sees()
		})
	}
}

// TestStoreThatHangs counts as one that fails.
func TestStoreThatHangs(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.opts.Checkpoint.Store = faultyStore{s.store, func(ctx context.Context, _ string, _ int64, _ []byte) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		if _, err := s.run(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Run: %v", err)
		}
	})
}

// TestPutAnsweredTwice is a client that sent a put again when the first had been done.
func TestPutAnsweredTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.opts.Checkpoint.Store = faultyStore{s.store, func(ctx context.Context, job string, id int64, data []byte) error {
			if err := s.store.Put(ctx, job, id, data); err != nil {
				return err
			}
			return s.store.Put(ctx, job, id, data)
		}}
		s.finish()
		s.sees(numbers.Items())
	})
}

// TestUnheardEnd has the last checkpoint, which says that the job has finished, stored and not answered. The attempt
// fails, and the next one finds that there is nothing left to do.
func TestUnheardEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.opts.Restart = engine.Restart{Policy: engine.FixedDelay, Attempts: 1}
		s.opts.Checkpoint.Store = faultyStore{s.store, func(ctx context.Context, job string, id int64, data []byte) error {
			if err := s.store.Put(ctx, job, id, data); err != nil {
				return err
			}
			if c, err := engine.DecodeCheckpoint(data); err != nil || c.Finished {
				return errDisk
			}
			return nil
		}}
		r := s.finish()
		if r.Outcome != engine.Finished || r.Restarts != 1 || r.Tally.Written != 20 {
			t.Errorf("the result is %+v", r)
		}
		s.sees(numbers.Items())
	})
}

// TestEndIsNotFinishedBeforeItIsCommitted kills the process between storing the last rows and committing them: the job
// must not pass for finished.
func TestEndIsNotFinishedBeforeItIsCommitted(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.opts.Checkpoint.Every = 0
		p := &streamtest.Process{}
		ctx, cancel := p.Context(t.Context())
		defer cancel()
		s.opts.Checkpoint.Store = faultyStore{s.store, func(ctx context.Context, job string, id int64, data []byte) error {
			defer p.Kill()
			return s.store.Put(ctx, job, id, data)
		}}
		job := s.job()
		job.Sink = streamtest.InSink(p, job.Sink)
		if _, err := engine.Run(ctx, job, s.opts); !errors.Is(err, streamtest.ErrKilled) {
			t.Fatalf("Run: %v", err)
		}
		s.sees()
		s.opts.Checkpoint.Store = s.store
		if r := s.finish(); r.StartedAnew || r.ResumedFrom == 0 {
			t.Errorf("the second run: %+v", r)
		}
		s.sees(numbers.Items())
	})
}

func TestKeepsTheNewestAndSavepoints(t *testing.T) {
	for _, keep := range []int{1, 2, 0} {
		inBubble(t, func(t *testing.T, s *story) {
			s.opts.Checkpoint.Keep = keep
			s.opts.Handle = &engine.Handle{}
			answer := make(chan int64, 1)
			time.AfterFunc(25*time.Millisecond, func() {
				id, err := s.opts.Handle.Savepoint(t.Context())
				if err != nil {
					t.Errorf("Savepoint: %v", err)
				}
				answer <- id
			})
			r := s.finish()
			saved := <-answer
			want := keep
			if keep == 0 {
				want = 3
			}
			var ids []int64
			for _, c := range s.checkpoints() {
				if c.Savepoint != (c.ID == saved) {
					t.Errorf("checkpoint %d: savepoint %v, and %d was asked for", c.ID, c.Savepoint, saved)
				}
				if c.ID != saved {
					ids = append(ids, c.ID)
				}
			}
			if len(ids) != want || ids[len(ids)-1] != r.Checkpoint || saved == 0 {
				t.Errorf("with Keep %d there are %v beside savepoint %d; the newest is %d", keep, ids, saved, r.Checkpoint)
			}
			s.opts.Handle, s.opts.From = nil, engine.From(saved)
			if again := s.finish(); again.ResumedFrom != saved {
				t.Errorf("went on from %d, want savepoint %d", again.ResumedFrom, saved)
			}
		})
	}
}

// TestUnreadableIsNotDeleted leaves alone what may be a later version's, or somebody's evidence.
func TestUnreadableIsNotDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.store.Replace("numbers", 1, []byte("torn"))
		s.finish()
		s.finish()
		if data, err := s.store.Load(t.Context(), "numbers", 1); err != nil || string(data) != "torn" {
			t.Errorf("Load gave %q, %v", data, err)
		}
		ids, err := s.store.List(t.Context(), "numbers")
		if err != nil || len(ids) != 4 {
			t.Errorf("the store has %v, %v, want three checkpoints and what cannot be read", ids, err)
		}
	})
}

// TestTwoRunsOfOneJob start from the same checkpoint. Whoever publishes second must commit nothing, whatever the first
// has published, and deleted, meanwhile.
func TestTwoRunsOfOneJob(t *testing.T) {
	for late := 1; late < 12; late++ {
		inBubble(t, func(t *testing.T, s *story) {
			s.stopAfter(15 * time.Millisecond)
			s.opts.Checkpoint.Keep = 1
			other := *s
			slow := numbers
			slow.Pace = time.Duration(late) * 5 * time.Millisecond
			other.source = slow
			type ending struct {
				r   engine.Result
				err error
			}
			first, second := make(chan ending, 1), make(chan ending, 1)
			go func() { r, err := s.run(t.Context()); first <- ending{r, err} }()
			go func() { r, err := other.run(t.Context()); second <- ending{r, err} }()
			conflicts := 0
			for _, end := range []ending{<-first, <-second} {
				var conflict *engine.ConflictError
				if errors.As(end.err, &conflict) {
					conflicts++
					if !strings.Contains(end.err.Error(), `another run of job "numbers"`) {
						t.Errorf("the error does not say so: %v", end.err)
					}
				} else if end.err != nil {
					t.Errorf("Run: %v", end.err)
				}
			}
			if conflicts == 0 {
				t.Errorf("with a pace of %v two runs of one job have both finished", slow.Pace)
			}
			seen := map[item]int{}
			for _, i := range s.world.Items() {
				if seen[i]++; seen[i] > 1 {
					t.Errorf("with a pace of %v row %v is visible %d times", slow.Pace, i, seen[i])
				}
			}
		})
	}
}

// TestBothRunsMayLose is the case in which each had one put fail, and the other's succeed.
func TestBothRunsMayLose(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		var puts atomic.Int64
		s.opts.Checkpoint.Store = faultyStore{s.store, func(ctx context.Context, job string, id int64, data []byte) error {
			if puts.Add(1) == 1 {
				// Somebody else's checkpoint takes the id while ours is lost.
				c, err := engine.DecodeCheckpoint(data)
				if err != nil {
					return err
				}
				c.Run[0] ^= 1
				return errors.Join(errDisk, s.store.Put(ctx, job, id, c.Encode()))
			}
			return s.store.Put(ctx, job, id, data)
		}}
		_, err := s.run(t.Context())
		conflict, ok := errors.AsType[*engine.ConflictError](err)
		if !ok || conflict.Checkpoint != 1 {
			t.Errorf("Run: %v, want a conflict over checkpoint 1", err)
		}
		s.sees()
		if ids, _ := s.store.List(t.Context(), "numbers"); fmt.Sprint(ids) != "[1]" {
			t.Errorf("the store has %v, want the other run's only", ids)
		}
	})
}
