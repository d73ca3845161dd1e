package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/stream"
)

// panicky has every part of a source and a sink panic in one of its calls.
type panicky struct {
	source stream.Source[item]
	sink   stream.Sink[item]
	where  string
}

func (p panicky) at(where string) {
	if p.where == where {
		panic("oops in " + where)
	}
}

type panickySource struct{ panicky }

func (s panickySource) Bounded() bool {
	s.at("Bounded")
	return s.source.Bounded()
}

func (s panickySource) NewEnumerator(ctx context.Context, ec stream.EnumeratorContext) (stream.Enumerator, error) {
	s.at("NewEnumerator")
	e, err := s.source.NewEnumerator(ctx, ec)
	return panickyEnumerator{e, s.panicky}, err
}

func (s panickySource) NewReader(ctx context.Context, rc stream.ReaderContext) (stream.Reader[item], error) {
	s.at("NewReader")
	r, err := s.source.NewReader(ctx, rc)
	return panickyReader{r, s.panicky}, err
}

type panickyEnumerator struct {
	stream.Enumerator
	p panicky
}

func (e panickyEnumerator) Next(lane int) (stream.Split, error) {
	e.p.at("Next")
	return e.Enumerator.Next(lane)
}

func (e panickyEnumerator) Snapshot() ([]byte, error) {
	e.p.at("Snapshot of the enumerator")
	return e.Enumerator.Snapshot()
}

func (e panickyEnumerator) Size() (int64, bool) {
	e.p.at("Size")
	return 0, false
}

type panickyReader struct {
	stream.Reader[item]
	p panicky
}

func (r panickyReader) Open(ctx context.Context, s stream.Split) error {
	r.p.at("Open")
	return r.Reader.Open(ctx, s)
}

func (r panickyReader) Fetch(ctx context.Context, b *stream.Batch[item]) error {
	r.p.at("Fetch")
	return r.Reader.Fetch(ctx, b)
}

func (r panickyReader) Barrier(int64, int64) { r.p.at("Barrier") }

func (r panickyReader) Acknowledge(context.Context, int64) error {
	r.p.at("Acknowledge")
	return nil
}

type panickySink struct{ panicky }

func (s panickySink) NewWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[item], error) {
	s.at("NewWriter")
	w, err := s.sink.NewWriter(ctx, wc)
	return panickyWriter{w, s.panicky}, err
}

func (s panickySink) CommitScope() stream.CommitScope { return stream.PerLane }

func (s panickySink) NewCommitter(ctx context.Context, cc stream.CommitterContext) (stream.Committer, error) {
	s.at("NewCommitter")
	c, err := s.sink.(stream.TwoPhase).NewCommitter(ctx, cc)
	return panickyCommitter{c, s.panicky}, err
}

type panickyWriter struct {
	stream.Writer[item]
	p panicky
}

func (w panickyWriter) Every() time.Duration {
	w.p.at("Every")
	return 5 * time.Millisecond
}

func (w panickyWriter) Tick(context.Context) error {
	w.p.at("Tick")
	return nil
}

func (w panickyWriter) Write(ctx context.Context, r *stream.Record[item]) error {
	if r.Value.Row == 3 {
		w.p.at("Write")
	}
	return w.Writer.Write(ctx, r)
}

func (w panickyWriter) Flush(ctx context.Context, final bool) error {
	w.p.at("Flush")
	return w.Writer.Flush(ctx, final)
}

func (w panickyWriter) Prepare(ctx context.Context, checkpoint int64) ([]stream.Committable, error) {
	w.p.at("Prepare")
	return w.Writer.Prepare(ctx, checkpoint)
}

func (w panickyWriter) Snapshot(ctx context.Context, id int64) ([]stream.State, error) {
	w.p.at("Snapshot of the writer")
	return w.Writer.Snapshot(ctx, id)
}

func (w panickyWriter) Tally() stream.Tally {
	w.p.at("Tally")
	return w.Writer.(stream.Tallier).Tally()
}

type panickyCommitter struct {
	stream.Committer
	p panicky
}

func (c panickyCommitter) Commit(ctx context.Context, cs []stream.Committable) error {
	c.p.at("Commit")
	return c.Committer.Commit(ctx, cs)
}

func TestPanicsEndTheJob(t *testing.T) {
	for _, where := range []string{
		"Bounded", "NewEnumerator", "NewReader", "NewWriter", "NewCommitter", "Next", "Size", "Snapshot of the enumerator", "Open", "Fetch",
		"Barrier", "Acknowledge", "Every", "Tick", "Write", "Flush", "Prepare", "Snapshot of the writer", "Tally", "Commit", "Func", "NewHandler",
	} {
		t.Run(where, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *story) {
				s.opts.Restart = engine.Restart{} // would try ten times
				s.opts.Lanes = 2
				p := panicky{s.source, s.sink, where}
				s.source, s.sink = panickySource{p}, panickySink{p}
				job := s.job()
				job.Failures = panickyPolicy{p}
				if where == "Func" || where == "NewHandler" {
					job.Func = func(_ context.Context, in *stream.Record[item], emit func(*stream.Record[item]) error) error {
						if in.Value.Row == 3 {
							p.at("Func")
						}
						return emit(in)
					}
				}
				r, err := engine.Run(t.Context(), job, s.opts)
				caught, ok := errors.AsType[*engine.PanicError](err)
				if !ok || caught.Value != "oops in "+where || !strings.Contains(err.Error(), "oops in "+where) {
					t.Fatalf("Run: %v", err)
				}
				if r.Restarts != 0 || r.Outcome != engine.Failed {
					t.Errorf("the result is %+v", r)
				}
				if where != "Bounded" && !strings.Contains(s.log.String(), "panic_test.go") {
					t.Errorf("the log has no stack:\n%s", s.log)
				}
				located, ok := errors.AsType[*stream.PositionError](err)
				if where == "Write" || where == "Func" {
					if want := (stream.Location{Name: "range-0", Row: 30}); !ok || located.At != want {
						t.Errorf("the error does not say that it happened at %v: %v", want, err)
					}
				} else if ok && where != "Fetch" {
					t.Errorf("the error claims a record where none was processed: %v", err)
				}
			})
		})
	}
}

type panickyPolicy struct{ p panicky }

func (p panickyPolicy) NewHandler(ctx context.Context, hc stream.HandlerContext) (stream.FailureHandler, error) {
	p.p.at("NewHandler")
	return stream.FailJob().NewHandler(ctx, hc)
}

// TestPanicsInBulk happen somewhere in a run of records.
func TestPanicsInBulk(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.sink = bulkPanic{s.sink, s.sink.(stream.TwoPhase)}
		_, err := s.run(t.Context())
		located, ok := errors.AsType[*stream.PositionError](err)
		if !ok || located.At.Name != "range-0" {
			t.Errorf("Run: %v", err)
		}
	})
}

type bulkPanic struct {
	stream.Sink[item]
	stream.TwoPhase
}

func (b bulkPanic) NewWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[item], error) {
	w, err := b.Sink.NewWriter(ctx, wc)
	return bulkPanicWriter{w}, err
}

type bulkPanicWriter struct{ stream.Writer[item] }

func (bulkPanicWriter) WriteRecords(context.Context, []stream.Record[item]) (int, error) {
	panic("oops")
}

// TestPanickyLocator does not hide the error it was asked about.
func TestPanickyLocator(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.fn = func(_ context.Context, in *stream.Record[item], _ func(*stream.Record[item]) error) error {
			in.At.Locator = locatorFunc(func(stream.Position) stream.Location { panic("lost") })
			return errFault
		}
		_, err := s.run(t.Context())
		if !errors.Is(err, errFault) || !strings.Contains(err.Error(), "range-0@0") {
			t.Errorf("Run: %v", err)
		}
	})
}

type locatorFunc func(stream.Position) stream.Location

func (f locatorFunc) Locate(p stream.Position) stream.Location { return f(p) }
