package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/stream"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

// TestRecordsWithoutAPlace are given that of their row.
func TestRecordsWithoutAPlace(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.source = fetching{s.source, func(b *stream.Batch[item]) error {
			b.Row(40, 41)
			b.Row(70, 90)
			b.Emit(stream.Record[item]{Value: item{Row: 1}})
			return nil
		}}
		s.fn = func(context.Context, *stream.Record[item], func(*stream.Record[item]) error) error { return errFault }
		_, err := s.run(t.Context())
		located, ok := errors.AsType[*stream.PositionError](err)
		if want := (stream.Location{Name: "range-0", Row: 70}); !ok || located.At != want {
			t.Errorf("Run: %v, want an error at %v", err, want)
		}
	})
}

// bulkAnswers is a one-phase sink whose WriteRecords answers what it is told to.
type bulkAnswers struct {
	streamtest.Direct
	n   int
	err error
}

func (b bulkAnswers) NewWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[item], error) {
	w, err := b.Direct.NewWriter(ctx, wc)
	return bulkAnswersWriter{w, b}, err
}

type bulkAnswersWriter struct {
	stream.Writer[item]
	b bulkAnswers
}

func (w bulkAnswersWriter) WriteRecords(context.Context, []stream.Record[item]) (int, error) {
	return w.b.n, w.b.err
}

func TestFailuresInBulk(t *testing.T) {
	for _, tc := range []struct {
		n    int
		err  error
		row  int64 // where it is said to have happened
		want string
	}{
		{3, errFault, 3, "fault of the test"},
		{0, errFault, 0, "fault of the test"},
		{-5, errFault, 0, "fault of the test"},
		{100, errFault, 5, "fault of the test"},
		{4, nil, 4, "the writer wrote 4 of 6 records and answered no error"},
	} {
		inBubble(t, func(t *testing.T, s *story) {
			s.source = streamtest.Ranges{Splits: 1, Rows: 6, Batch: 6}
			s.sink = bulkAnswers{streamtest.Direct{World: s.world}, tc.n, tc.err}
			_, err := s.run(t.Context())
			located, ok := errors.AsType[*stream.PositionError](err)
			if !ok || located.At.Row != 10*tc.row || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("WriteRecords answered %d, %v; Run: %v, want %q at row %d", tc.n, tc.err, err, tc.want, 10*tc.row)
			}
		})
	}
}

var errClose = errors.New("cannot close")

// badCloses is a sink whose parts cannot be closed.
type badCloses struct {
	stream.Sink[item]
	stream.TwoPhase
}

func (b badCloses) NewWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[item], error) {
	w, err := b.Sink.NewWriter(ctx, wc)
	return badCloseWriter{w}, err
}

func (b badCloses) NewCommitter(ctx context.Context, cc stream.CommitterContext) (stream.Committer, error) {
	c, err := b.TwoPhase.NewCommitter(ctx, cc)
	return badCloseCommitter{c}, err
}

type badCloseWriter struct{ stream.Writer[item] }

func (badCloseWriter) Close() error { return errClose }

type badCloseCommitter struct{ stream.Committer }

func (badCloseCommitter) Close() error { return errClose }

// TestCloseErrors do not undo what is stored and committed, and come beside the error of a run that failed.
func TestCloseErrors(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.sink = badCloses{s.sink, s.sink.(stream.TwoPhase)}
		s.finish()
		s.sees(numbers.Items())
		if n := strings.Count(s.log.String(), "cannot close"); n != 2 {
			t.Errorf("the log speaks of it %d times, want 2: a writer and a committer\n%s", n, s.log)
		}
		s.fn = func(context.Context, *stream.Record[item], func(*stream.Record[item]) error) error { return errFault }
		if _, err := s.run(t.Context()); !errors.Is(err, errFault) || !errors.Is(err, errClose) {
			t.Errorf("Run: %v", err)
		}
	})
}

// TestPartsThatCannotBeMade leave nothing open: goleak and the bubble watch over goroutines, the log over the rest.
func TestPartsThatCannotBeMade(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		late := numbers
		late.Late = time.Hour // its enumerator has a goroutine
		s.source = late
		s.sink = noWriters{s.sink, s.sink.(stream.TwoPhase)}
		s.opts.Lanes = 3
		if _, err := s.run(t.Context()); !errors.Is(err, errFault) || !strings.Contains(err.Error(), "lane 2: make writer") {
			t.Errorf("Run: %v", err)
		}
	})
}

type noWriters struct {
	stream.Sink[item]
	stream.TwoPhase
}

func (n noWriters) NewWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[item], error) {
	if wc.Lane == 2 {
		return nil, errFault
	}
	return n.Sink.NewWriter(ctx, wc)
}

// TestAnotherSink cannot keep the promises of the one before.
func TestAnotherSink(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.stopAfter(55 * time.Millisecond) // the rows of 50 ms are in the last checkpoint only
		s.sink = streamtest.Direct{World: s.world}
		_, err := s.run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "the sink has no committer: it is not the sink") {
			t.Errorf("Run: %v", err)
		}
	})
}
