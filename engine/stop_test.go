package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/engine/enginetest"
	"github.com/millrace-dev/millrace/stream"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

// TestStopByContext asks by the cause of the context's end.
func TestStopByContext(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(45*time.Millisecond, func() { cancel(engine.ErrStop) })
		r, err := s.run(ctx)
		if err != nil || r.Outcome != engine.Stopped {
			t.Fatalf("Run: %+v, %v", r, err)
		}
		if r.Tally.Written != 8 {
			t.Errorf("%d records written in 45 ms, want 8: the final checkpoint holds all that was read", r.Tally.Written)
		}
		all := s.checkpoints()
		if c := all[len(all)-1]; !c.Stopped || c.Finished || c.ID != r.Checkpoint {
			t.Errorf("the last checkpoint is %+v", c)
		}
		s.sees(numbers.Items()[:8])
	})
}

// TestAbort takes no checkpoint, and the cause is the error.
func TestAbort(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.opts.Checkpoint.Every = 16 * time.Millisecond
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(45*time.Millisecond, func() { cancel(errFault) })
		r, err := s.run(ctx)
		if !errors.Is(err, errFault) || r.Outcome != engine.Failed || r.Duration != 45*time.Millisecond {
			t.Errorf("Run: %+v, %v", r, err)
		}
		s.sees(numbers.Items()[:6]) // as of the checkpoint at 32 ms
	})
}

func TestStopWithoutCheckpoint(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.opts.StopWithoutCheckpoint = true
		r := s.stopAfter(55 * time.Millisecond)
		all := s.checkpoints()
		if c := all[len(all)-1]; c.Stopped || c.ID != r.Checkpoint || c.Taken.Equal(time.Now()) {
			t.Errorf("the last checkpoint is %+v", c)
		}
		if r := s.finish(); r.ResumedFrom != all[len(all)-1].ID {
			t.Errorf("the second run: %+v", r)
		}
		s.sees(numbers.Items())
	})
}

// TestStopBeforeStart stops at the first opportunity, and can be gone on from.
func TestStopBeforeStart(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.opts.Handle = &engine.Handle{}
		s.opts.Handle.Stop()
		s.opts.Handle.Stop()
		r := s.finish()
		if r.Outcome != engine.Stopped || r.Duration > 10*time.Millisecond {
			t.Errorf("the first run: %+v", r)
		}
		s.opts.Handle = nil
		s.finish()
		s.sees(numbers.Items())
	})
}

// TestStopAtTheEnd finishes: there is nothing to stop.
func TestStopAtTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.opts.Handle = &engine.Handle{}
		s.opts.Checkpoint.Every = 0
		s.opts.Checkpoint.Store = faultyStore{s.store, func(ctx context.Context, job string, id int64, data []byte) error {
			s.opts.Handle.Stop()
			return s.store.Put(ctx, job, id, data)
		}}
		if r := s.finish(); r.Outcome != engine.Finished {
			t.Errorf("the result is %+v", r)
		}
	})
}

// TestStopTimeout has a writer that does not get done.
func TestStopTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.opts.StopTimeout = 3 * time.Second
		s.opts.Checkpoint.Every = 0
		s.sink = slowFlush{s.sink, s.sink.(stream.TwoPhase)}
		s.opts.Handle = &engine.Handle{}
		time.AfterFunc(45*time.Millisecond, s.opts.Handle.Stop)
		r, err := s.run(t.Context())
		if !errors.Is(err, engine.ErrStopTimeout) || r.Outcome != engine.Failed || r.Duration != 3045*time.Millisecond {
			t.Errorf("Run: %+v, %v", r, err)
		}
	})
}

type slowFlush struct {
	stream.Sink[item]
	stream.TwoPhase
}

func (b slowFlush) NewWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[item], error) {
	w, err := b.Sink.NewWriter(ctx, wc)
	return slowFlushWriter{w}, err
}

type slowFlushWriter struct{ stream.Writer[item] }

func (slowFlushWriter) Flush(ctx context.Context, _ bool) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestStopBetweenAttempts has nothing that could take a final checkpoint.
func TestStopBetweenAttempts(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.opts.Restart = engine.Restart{Initial: time.Hour, Max: time.Hour}
		s.opts.Handle = &engine.Handle{}
		s.fn = func(context.Context, *stream.Record[item], func(*stream.Record[item]) error) error { return errFault }
		time.AfterFunc(time.Second, s.opts.Handle.Stop)
		r, err := s.run(t.Context())
		if !errors.Is(err, errFault) || !strings.Contains(err.Error(), "stopped while waiting") || r.Duration != time.Second {
			t.Errorf("Run: %+v, %v", r, err)
		}
	})
}

func TestSavepointOfEndedRun(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.opts.Handle = &engine.Handle{}
		s.finish()
		if _, err := s.opts.Handle.Savepoint(t.Context()); !errors.Is(err, engine.ErrEnded) {
			t.Errorf("Savepoint: %v", err)
		}
		_, err := s.run(t.Context())
		if err == nil || !strings.Contains(err.Error(), `Options.Handle is that of another run, of job "numbers"`) {
			t.Errorf("Run with a used handle: %v", err)
		}
	})
}

// TestSavepointThatCannotBeStored is answered with the reason.
func TestSavepointThatCannotBeStored(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.opts.Handle = &engine.Handle{}
		s.opts.Checkpoint.Every = 0
		puts := 0
		s.opts.Checkpoint.Store = faultyStore{s.store, func(ctx context.Context, job string, id int64, data []byte) error {
			if puts++; puts == 1 {
				return errDisk
			}
			return s.store.Put(ctx, job, id, data)
		}}
		go s.finish()
		time.Sleep(15 * time.Millisecond)
		if _, err := s.opts.Handle.Savepoint(t.Context()); !errors.Is(err, errDisk) {
			t.Errorf("Savepoint: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := (&engine.Handle{}).Savepoint(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Savepoint of a run that has not begun: %v", err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		s.sees(numbers.Items())
	})
}

// TestFinalCheckpointIsTriedAgain does not begin the input anew for one put that failed at its end.
func TestFinalCheckpointIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.opts.Checkpoint.Every = 0
		puts := 0
		s.opts.Checkpoint.Store = faultyStore{s.store, func(ctx context.Context, job string, id int64, data []byte) error {
			if puts++; puts%2 == 1 {
				return errors.Join(errDisk, s.store.Put(ctx, job, id, data)) // done, and not answered
			}
			return s.store.Put(ctx, job, id, data)
		}}
		q := streamtest.NewQueue(6)
		s.source = q
		if r := s.finish(); r.Restarts != 0 || r.Outcome != engine.Finished || puts != 4 {
			t.Errorf("the result is %+v after %d puts", r, puts)
		}
		if left := q.Left(); left > 0 {
			t.Errorf("%d messages are not acknowledged", left)
		}
	})
}

// TestOnePutAtATime though storing takes longer than the interval between checkpoints, at the end too.
func TestOnePutAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		storing := false
		s.opts.Checkpoint.Store = faultyStore{s.store, func(ctx context.Context, job string, id int64, data []byte) error {
			if storing {
				t.Errorf("checkpoint %d is stored while another one is", id)
			}
			storing = true
			defer func() { storing = false }()
			time.Sleep(70 * time.Millisecond)
			return s.store.Put(ctx, job, id, data)
		}}
		if r := s.finish(); r.Outcome != engine.Finished || r.Checkpoints < 3 {
			t.Errorf("the result is %+v", r)
		}
		s.sees(numbers.Items())
	})
}

// TestNoWakeIsLost asks for savepoints as fast as they come, of a lane that waits for rows: an acknowledgement and the
// next barrier meet it at once, again and again. A barrier that did not wake it would wait for ever.
func TestNoWakeIsLost(t *testing.T) {
	h := &engine.Handle{}
	done := make(chan error, 1)
	go func() {
		_, err := engine.Run(t.Context(), engine.Job[item, item]{
			Name: "waiting", Source: streamtest.Ranges{Splits: 1, Rows: 1, Endless: true}, Sink: streamtest.Direct{World: streamtest.NewWorld()},
		}, engine.Options{Lanes: 1, Handle: h, Checkpoint: engine.Checkpointing{Store: &enginetest.Memory{}}})
		done <- err
	}()
	for i := range 2000 {
		if _, err := h.Savepoint(t.Context()); err != nil {
			t.Fatalf("savepoint %d: %v", i+1, err)
		}
	}
	h.Stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
