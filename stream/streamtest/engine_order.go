package streamtest

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/stream"
)

// orderLog takes note of calls that come out of order.
type orderLog struct {
	mu      sync.Mutex // guards what follows
	faults  []string
	finals  []string // how the last flush of each writer went
	writers []string // by run, attempt and lane
}

// made looks at what a writer is told about its run. Every job of the checks takes checkpoints on an interval.
func (l *orderLog) made(wc stream.WriterContext) {
	if !runID.MatchString(wc.Run) {
		l.fault("writer: the run is %q: expected 32 lower-case hexadecimal digits", wc.Run)
	}
	if wc.Attempt < 1 {
		l.fault("writer: the attempt is number %d: expected to count from 1", wc.Attempt)
	}
	if !wc.Streaming {
		l.fault("writer: it is not told that checkpoints come on an interval")
	}
	name := fmt.Sprintf("run %s, attempt %d, lane %d", wc.Run, wc.Attempt, wc.Lane)
	l.mu.Lock()
	again := slices.Contains(l.writers, name)
	l.writers = append(l.writers, name)
	l.mu.Unlock()
	if again {
		l.fault("writer: a second one in %s", name)
	}
}

var runID = regexp.MustCompile("^[0-9a-f]{32}$")

func (l *orderLog) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

func checkCallOrder(t TB, h EngineHarness) {
	for _, lanes := range fewLanes {
		log := &orderLog{}
		c := h.scene(t, story{source: ranged(small), sink: buffered, lanes: []int{lanes}, every: often})
		_, err := c.live(nil, func(run *EngineRun) {
			run.Source = orderedSource{run.Source, log}
			run.Sink = orderedSink{run.Sink, run.Sink.(stream.TwoPhase), log}
		})
		if err != nil {
			t.Fatalf("run: %v", err)
		}
		for _, f := range log.faults {
			t.Errorf("%d lanes: %s", lanes, f)
		}
	}
}

func checkFinalFlag(t TB, h EngineHarness) {
	log := &orderLog{}
	stop := make(chan struct{})
	endless := small
	endless.Endless = true
	for _, src := range []Ranges{small, endless} {
		c := h.scene(t, story{source: ranged(src), sink: buffered, lanes: []int{2}, every: often})
		_, err := c.live(nil, func(run *EngineRun) {
			run.Sink = orderedSink{run.Sink, run.Sink.(stream.TwoPhase), log}
			run.Stop = stop
			if src.Endless {
				time.AfterFunc(3*often, func() { close(stop) })
			}
		})
		if err != nil {
			t.Fatalf("run: %v", err)
		}
	}
	if want := []string{"final", "final", "final", "final"}; !slices.Equal(log.finals, want) {
		t.Errorf("the last flushes of four writers were %v, want all final, and no others", log.finals)
	}
}

// sequence holds one part to its order of calls: one at a time, and some only after others.
type sequence struct {
	log  *orderLog
	part string
	busy atomic.Bool
	last string
}

// call notes a call that may only follow one of after.
func (s *sequence) call(name string, after ...string) (done func()) {
	if !s.busy.CompareAndSwap(false, true) {
		s.log.fault("%s: %s while another call is under way", s.part, name)
		return func() {}
	}
	if !slices.Contains(after, s.last) {
		s.log.fault("%s: %s after %s", s.part, name, s.last)
	}
	s.last = name
	return func() { s.busy.Store(false) }
}

type orderedSource struct {
	stream.Source[Item]
	log *orderLog
}

func (s orderedSource) NewEnumerator(ctx context.Context, ec stream.EnumeratorContext) (stream.Enumerator, error) {
	e, err := s.Source.NewEnumerator(ctx, ec)
	return &orderedEnumerator{e, &sequence{log: s.log, part: "enumerator", last: "new"}}, err
}

func (s orderedSource) NewReader(ctx context.Context, rc stream.ReaderContext) (stream.Reader[Item], error) {
	r, err := s.Source.NewReader(ctx, rc)
	return &orderedReader{r, &sequence{log: s.log, part: "reader", last: "new"}}, err
}

type orderedEnumerator struct {
	stream.Enumerator
	seq *sequence
}

func (e *orderedEnumerator) Next(lane int) (stream.Split, error) {
	defer e.seq.call("Next", "new", "Next", "Snapshot")()
	return e.Enumerator.Next(lane)
}

func (e *orderedEnumerator) Snapshot() ([]byte, error) {
	defer e.seq.call("Snapshot", "new", "Next", "Snapshot")()
	return e.Enumerator.Snapshot()
}

func (e *orderedEnumerator) Close() error {
	defer e.seq.call("Close", "new", "Next", "Snapshot", "Close")()
	return e.Enumerator.Close()
}

type orderedReader struct {
	stream.Reader[Item]
	seq *sequence
}

func (r *orderedReader) Open(ctx context.Context, s stream.Split) error {
	defer r.seq.call("Open", "new", "end")()
	return r.Reader.Open(ctx, s)
}

func (r *orderedReader) Fetch(ctx context.Context, b *stream.Batch[Item]) error {
	defer r.seq.call("Fetch", "Open", "Fetch")()
	err := r.Reader.Fetch(ctx, b)
	if err == io.EOF {
		r.seq.last = "end"
	}
	return err
}

func (r *orderedReader) Close() error {
	defer r.seq.call("Close", "new", "Open", "Fetch", "end", "Close")()
	return r.Reader.Close()
}

type orderedSink struct {
	stream.Sink[Item]
	stream.TwoPhase
	log *orderLog
}

func (s orderedSink) NewWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[Item], error) {
	s.log.made(wc)
	w, err := s.Sink.NewWriter(ctx, wc)
	return &orderedWriter{Writer: w, seq: &sequence{log: s.log, part: "writer", last: "new"}}, err
}

func (s orderedSink) NewCommitter(ctx context.Context, cc stream.CommitterContext) (stream.Committer, error) {
	c, err := s.TwoPhase.NewCommitter(ctx, cc)
	return &orderedCommitter{c, &sequence{log: s.log, part: "committer", last: "new"}}, err
}

type orderedWriter struct {
	stream.Writer[Item]
	seq        *sequence
	flushes    string // what the flushes were, the last one
	checkpoint int64
}

func (w *orderedWriter) Write(ctx context.Context, r *stream.Record[Item]) error {
	defer w.seq.call("Write", "new", "Write", "Snapshot")()
	if w.flushes == "final" {
		w.seq.log.fault("writer: Write after the final flush")
	}
	return w.Writer.Write(ctx, r)
}

func (w *orderedWriter) Flush(ctx context.Context, final bool) error {
	defer w.seq.call("Flush", "new", "Write", "Snapshot")()
	switch {
	case w.flushes == "final":
		w.flushes = "more than one final"
	case final:
		w.flushes = "final"
	default:
		w.flushes = "not final"
	}
	return w.Writer.Flush(ctx, final)
}

func (w *orderedWriter) Prepare(ctx context.Context, checkpoint int64) ([]stream.Committable, error) {
	defer w.seq.call("Prepare", "Flush")()
	if checkpoint <= w.checkpoint {
		w.seq.log.fault("writer: Prepare for checkpoint %d after that for %d", checkpoint, w.checkpoint)
	}
	w.checkpoint = checkpoint
	return w.Writer.Prepare(ctx, checkpoint)
}

func (w *orderedWriter) Snapshot(ctx context.Context, checkpoint int64) ([]stream.State, error) {
	defer w.seq.call("Snapshot", "Prepare")()
	if checkpoint != w.checkpoint {
		w.seq.log.fault("writer: Snapshot for checkpoint %d after Prepare for %d", checkpoint, w.checkpoint)
	}
	return w.Writer.Snapshot(ctx, checkpoint)
}

func (w *orderedWriter) Close() error {
	defer w.seq.call("Close", "new", "Write", "Snapshot")()
	w.seq.log.mu.Lock()
	w.seq.log.finals = append(w.seq.log.finals, w.flushes)
	w.seq.log.mu.Unlock()
	return w.Writer.Close()
}

type orderedCommitter struct {
	stream.Committer
	seq *sequence
}

func (c *orderedCommitter) Commit(ctx context.Context, cs []stream.Committable) error {
	defer c.seq.call("Commit", "new", "Commit")()
	if len(cs) == 0 {
		c.seq.log.fault("committer: Commit of nothing")
	}
	return c.Committer.Commit(ctx, cs)
}

func (c *orderedCommitter) Close() error {
	defer c.seq.call("Close", "new", "Commit", "Close")()
	return c.Committer.Close()
}
