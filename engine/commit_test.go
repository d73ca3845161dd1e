package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/stream"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

// stamping is a sink whose one committer sees which checkpoint, run and attempt a committable was prepared for and in.
type stamping struct {
	scope  stream.CommitScope
	commit func(ctx context.Context, stamps []string) error
	fits   func(stream.Shape) error

	mu      sync.Mutex
	commits [][]string
}

func (s *stamping) CommitScope() stream.CommitScope { return s.scope }

func (s *stamping) Fits(shape stream.Shape, _ *slog.Logger) error {
	if s.fits == nil {
		return nil
	}
	return s.fits(shape)
}

func (s *stamping) NewWriter(_ context.Context, wc stream.WriterContext) (stream.Writer[item], error) {
	return &stampingWriter{wc: wc}, nil
}

func (s *stamping) NewCommitter(context.Context, stream.CommitterContext) (stream.Committer, error) {
	return stampingCommitter{s}, nil
}

type stampingWriter struct {
	wc   stream.WriterContext
	rows int
}

func (w *stampingWriter) Write(context.Context, *stream.Record[item]) error { w.rows++; return nil }
func (w *stampingWriter) Flush(context.Context, bool) error                 { return nil }
func (w *stampingWriter) Close() error                                      { return nil }

func (w *stampingWriter) Prepare(_ context.Context, checkpoint int64) ([]stream.Committable, error) {
	if w.rows == 0 {
		return nil, nil
	}
	stamp := fmt.Sprintf("c%d a%d %t %d rows of %s", checkpoint, w.wc.Attempt, w.wc.Streaming, w.rows, w.wc.Run)
	w.rows = 0
	return []stream.Committable{{Key: stamp, Data: []byte(stamp)}}, nil
}

func (w *stampingWriter) Snapshot(context.Context, int64) ([]stream.State, error) { return nil, nil }

type stampingCommitter struct{ *stamping }

func (c stampingCommitter) Close() error { return nil }

func (c stampingCommitter) Commit(ctx context.Context, cs []stream.Committable) error {
	var stamps []string
	for _, one := range cs {
		stamps = append(stamps, string(one.Data))
	}
	c.mu.Lock()
	c.commits = append(c.commits, stamps)
	c.mu.Unlock()
	if c.commit == nil {
		return nil
	}
	return c.commit(ctx, stamps)
}

// checkpointsOf are the checkpoints that a commit's committables were prepared for, and the runs.
func checkpointsOf(stamps []string) (ids, runs []string) {
	for _, s := range stamps {
		id, run := strings.Fields(s)[0], s[strings.LastIndex(s, " ")+1:]
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		if !slices.Contains(runs, run) {
			runs = append(runs, run)
		}
	}
	return ids, runs
}

// TestOneCommitForACheckpoint: what was prepared for two checkpoints, of which the first could not be stored, is committed
// in two calls, one after the other.
func TestOneCommitForACheckpoint(t *testing.T) {
	t.Run("FL-89 an aborted checkpoint's committables come first, by themselves", func(t *testing.T) {
		inBubble(t, func(t *testing.T, s *story) {
			sink := &stamping{scope: stream.Global}
			s.sink = sink
			stored := 0
			s.opts.Checkpoint.Store = faultyStore{s.store, func(ctx context.Context, job string, id int64, data []byte) error {
				if stored++; stored == 2 { // the first was a probe
					return errFault
				}
				return s.store.Put(ctx, job, id, data)
			}}
			if r, err := s.run(t.Context()); err != nil || r.Outcome != engine.Finished {
				t.Fatalf("Run: %+v, %v", r, err)
			}
			if len(sink.commits) < 3 {
				t.Fatalf("commits: %q", sink.commits)
			}
			last := ""
			for _, stamps := range sink.commits {
				ids, runs := checkpointsOf(stamps)
				if len(ids) != 1 || len(runs) != 1 || len(runs[0]) != 32 || !strings.Contains(stamps[0], " a1 true ") {
					t.Errorf("one commit has %q", stamps)
				}
				if len(ids[0]) == len(last) && ids[0] <= last {
					t.Errorf("%s comes after %s", ids[0], last)
				}
				last = ids[0]
			}
		})
	})
	t.Run("the second waits for the first, and is not made when that fails", func(t *testing.T) {
		inBubble(t, func(t *testing.T, s *story) {
			sink := &stamping{scope: stream.Global, commit: func(context.Context, []string) error { return errFault }}
			s.sink = sink
			stored := 0
			s.opts.Checkpoint.Store = faultyStore{s.store, func(ctx context.Context, job string, id int64, data []byte) error {
				if stored++; stored == 2 {
					return errFault
				}
				return s.store.Put(ctx, job, id, data)
			}}
			if _, err := s.run(t.Context()); !errors.Is(err, errFault) || len(sink.commits) != 1 {
				t.Fatalf("Run: %v after commits %q", err, sink.commits)
			}
			// The next run makes both, as the run before prepared them.
			_, before := checkpointsOf(sink.commits[0])
			sink.commit, sink.commits = nil, nil
			s.finish()
			for i, want := range before {
				if _, runs := checkpointsOf(sink.commits[i]); runs[0] != want {
					t.Errorf("commit %d is of run %s, want %s", i, runs[0], want)
				}
			}
			first, _ := checkpointsOf(sink.commits[0])
			second, _ := checkpointsOf(sink.commits[1])
			if len(first) != 1 || len(second) != 1 || first[0] == second[0] {
				t.Errorf("commits %q", sink.commits)
			}
		})
	})
}

// TestCommitsHoldCheckpointsBack: a commit of 70 ms leaves no room for three checkpoints on an interval of 20.
func TestCommitsHoldCheckpointsBack(t *testing.T) {
	for scope, fewest := range map[stream.CommitScope]int{stream.Global: 0, stream.PerLane: 1} {
		inBubble(t, func(t *testing.T, s *story) {
			during := -1
			sink := &stamping{scope: scope}
			sink.commit = func(context.Context, []string) error {
				before := len(s.checkpoints())
				pass(70 * time.Millisecond)
				if during < 0 {
					during = len(s.checkpoints()) - before
				}
				return nil
			}
			s.sink = sink
			s.finish()
			if scope == stream.Global && during != 0 || during < fewest {
				t.Errorf("scope %d: %d checkpoints were taken while the first commit ran", scope, during)
			}
		})
	}
}

// TestAtEnd: a sink that makes everything visible at once is never asked for a part.
func TestAtEnd(t *testing.T) {
	atEnd := func(t *testing.T, tell func(s *story, sink *stamping)) {
		inBubble(t, func(t *testing.T, s *story) {
			sink := &stamping{scope: stream.AtEnd}
			s.sink, s.opts.Checkpoint.Every = sink, 0
			tell(s, sink)
		})
	}
	t.Run("one commit at the end", func(t *testing.T) {
		atEnd(t, func(s *story, sink *stamping) {
			if r := s.finish(); r.Outcome != engine.Finished || len(sink.commits) != 1 || !strings.Contains(sink.commits[0][0], "a1 false 20 rows") {
				s.t.Errorf("%+v, commits %q", r, sink.commits)
			}
		})
	})
	t.Run("a stop leaves nothing, and the next run begins at the start", func(t *testing.T) {
		atEnd(t, func(s *story, sink *stamping) {
			if r := s.stopAfter(45 * time.Millisecond); r.Outcome != engine.Stopped || len(s.checkpoints()) != 0 || len(sink.commits) != 0 {
				s.t.Errorf("the stopped run: %+v, %d checkpoints, commits %q", r, len(s.checkpoints()), sink.commits)
			}
			if r := s.finish(); r.ResumedFrom != 0 || len(sink.commits) != 1 || !strings.Contains(sink.commits[0][0], " 20 rows") {
				s.t.Errorf("the next run: %+v, commits %q", r, sink.commits)
			}
		})
	})
	t.Run("savepoints are refused", func(t *testing.T) {
		atEnd(t, func(s *story, sink *stamping) {
			s.opts.Handle = &engine.Handle{}
			answer := make(chan error, 1)
			go func() {
				pass(25 * time.Millisecond)
				_, err := s.opts.Handle.Savepoint(s.t.Context())
				answer <- err
			}()
			s.finish()
			if err := <-answer; err == nil || !strings.Contains(err.Error(), "all rows visible at once") || len(sink.commits) != 1 {
				s.t.Errorf("Savepoint: %v, commits %q", err, sink.commits)
			}
		})
	})
	t.Run("not on an interval", func(t *testing.T) {
		atEnd(t, func(s *story, _ *stamping) {
			s.opts.Checkpoint.Every = time.Second
			if _, err := s.run(s.t.Context()); err == nil || !strings.Contains(err.Error(), "Every is 1s") {
				s.t.Errorf("Run: %v", err)
			}
		})
	})
	t.Run("not without an end", func(t *testing.T) {
		atEnd(t, func(s *story, _ *stamping) {
			s.source = endless{numbers}
			if _, err := s.run(s.t.Context()); err == nil || !strings.Contains(err.Error(), "never ends") {
				s.t.Errorf("Run: %v", err)
			}
		})
	})
}

type endless struct{ streamtest.Ranges }

func (endless) Bounded() bool { return false }

// TestParticularSink is asked before anything is opened.
func TestParticularSink(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		var asked stream.Shape
		s.sink = &stamping{fits: func(shape stream.Shape) error { asked = shape; return errFault }}
		if _, err := s.run(t.Context()); !errors.Is(err, errFault) || !strings.Contains(err.Error(), `job "numbers"`) {
			t.Errorf("Run: %v", err)
		}
		if want := (stream.Shape{Bounded: true, Streaming: true, Every: 20 * time.Millisecond}); asked != want {
			t.Errorf("asked about %+v, want %+v", asked, want)
		}
		if len(s.checkpoints()) != 0 {
			t.Error("a checkpoint was stored")
		}
	})
}
