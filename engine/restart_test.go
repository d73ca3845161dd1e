package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/stream"
)

var errFault = errors.New("fault of the test")

// failing is a source whose readers cannot be made; it notes when they were asked for.
type failing struct {
	stream.Source[item]
	err   error
	times []time.Time
	after time.Duration // how long an attempt lasts before it fails
}

func (f *failing) NewReader(ctx context.Context, rc stream.ReaderContext) (stream.Reader[item], error) {
	f.times = append(f.times, time.Now())
	pass(f.after)
	return nil, f.err
}

// delays are those between the attempts.
func (f *failing) delays() (all []time.Duration) {
	for i := 1; i < len(f.times); i++ {
		all = append(all, f.times[i].Sub(f.times[i-1])-f.after)
	}
	return all
}

func TestRestartDelays(t *testing.T) {
	const s = time.Second
	for name, tc := range map[string]struct {
		policy engine.Restart
		after  time.Duration
		want   []time.Duration
	}{
		"the default": {engine.Restart{}, 0, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s, 60 * s, 60 * s}},
		"exponential": {engine.Restart{Initial: 2 * s, Max: 10 * s, Multiplier: 1.5, Attempts: 6}, 0,
			[]time.Duration{2 * s, 3 * s, 4500 * time.Millisecond, 6750 * time.Millisecond, 10 * s, 10 * s}},
		"fixed":                                 {engine.Restart{Policy: engine.FixedDelay, Initial: 5 * s, Attempts: 3}, 0, []time.Duration{5 * s, 5 * s, 5 * s}},
		"none":                                  {engine.Restart{Policy: engine.NoRestart}, 0, nil},
		"attempts that last almost long enough": {engine.Restart{Attempts: 2, ResetAfter: time.Minute}, time.Minute - 1, []time.Duration{s, 2 * s}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *story) {
				f := &failing{Source: numbers, err: errFault, after: tc.after}
				s.source, s.opts.Restart = f, tc.policy
				r, err := s.run(t.Context())
				if !errors.Is(err, errFault) || r.Outcome != engine.Failed {
					t.Errorf("Run: %v, %v", r.Outcome, err)
				}
				if diff := cmp.Diff(tc.want, f.delays()); diff != "" {
					t.Errorf("delays (-want +got):\n%s", diff)
				}
				if r.Restarts != len(tc.want) {
					t.Errorf("%d restarts, want %d", r.Restarts, len(tc.want))
				}
				if gaveUp := strings.Contains(err.Error(), "gave up after"); gaveUp != (len(tc.want) > 0) {
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
}

// TestRestartBudgetIsReset has attempts that last long enough to be forgiven: the job goes on until it is aborted.
func TestRestartBudgetIsReset(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		f := &failing{Source: numbers, err: errFault, after: time.Minute}
		s.source, s.opts.Restart = f, engine.Restart{Attempts: 2, ResetAfter: time.Minute}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := s.run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Run: %v", err)
		}
		for _, d := range f.delays() {
			if d != time.Second {
				t.Errorf("a delay of %v after an attempt that lasted, want that of a first failure", d)
			}
		}
		if len(f.times) < 50 {
			t.Errorf("%d attempts in an hour", len(f.times))
		}
	})
}

type permanentError struct{ error }

func (permanentError) Permanent() bool { return true }

// TestSomeErrorsAreNotTriedAgain has errors that would come back.
func TestSomeErrorsAreNotTriedAgain(t *testing.T) {
	for name, err := range map[string]error{
		"that say so":     fmt.Errorf("open: %w", permanentError{errFault}),
		"failed records":  fmt.Errorf("write: %w", stream.ErrRecordFailed),
		"of another run":  &engine.ConflictError{Job: "numbers", Checkpoint: 3},
		"panics of parts": &engine.PanicError{Value: "x"},
	} {
		inBubble(t, func(t *testing.T, s *story) {
			f := &failing{Source: numbers, err: err}
			s.source, s.opts.Restart = f, engine.Restart{}
			r, got := s.run(t.Context())
			if !errors.Is(got, err) || r.Restarts != 0 || len(f.times) != 1 {
				t.Errorf("errors %s: %v after %d restarts", name, got, r.Restarts)
			}
		})
	}
}

// TestRestartBeginsAtTheStart when there is no checkpoint yet, and leaves the tally of what was lost behind.
func TestRestartBeginsAtTheStart(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.opts.Restart = engine.Restart{}
		s.opts.Checkpoint.Every = 0
		failed := false
		s.fn = func(_ context.Context, in *stream.Record[item], emit func(*stream.Record[item]) error) error {
			if in.Value.Row == 15 && !failed {
				failed = true
				return errFault
			}
			return emit(in)
		}
		r := s.finish()
		if r.Restarts != 1 || r.Tally.Read != 20 || r.Tally.Failed != 0 {
			t.Errorf("the result is %+v", r)
		}
		s.sees(numbers.Items())
	})
}

// TestFailedRunAccountsForTheRecord counts the record that ended the run.
func TestFailedRunAccountsForTheRecord(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.fn = func(_ context.Context, in *stream.Record[item], emit func(*stream.Record[item]) error) error {
			if in.Value.Row == 13 {
				return &stream.RecordError{Err: errFault}
			}
			return emit(in)
		}
		r, err := s.run(t.Context())
		if !errors.Is(err, stream.ErrRecordFailed) || !errors.Is(err, errFault) {
			t.Fatalf("Run: %v", err)
		}
		last := s.checkpoints()
		newest := last[len(last)-1]
		want := newest.Tally
		want.Read++
		want.Failed++
		if r.Tally != want || r.Tally.Lost() != 0 || newest.Tally.Read == 0 {
			t.Errorf("the tally is %+v, want %+v", r.Tally, want)
		}
		if r.Checkpoint != newest.ID {
			t.Errorf("the result names checkpoint %d, want %d", r.Checkpoint, newest.ID)
		}
	})
}

// TestBrokenContracts are noticed and not tried again.
func TestBrokenContracts(t *testing.T) {
	fetch := func(f func(b *stream.Batch[item]) error) func(s *story) {
		return func(s *story) { s.source = fetching{s.source, f} }
	}
	for want, change := range map[string]func(s *story){
		"no row and no error":    fetch(func(*stream.Batch[item]) error { return nil }),
		"io.EOF and 1 rows":      fetch(func(b *stream.Batch[item]) error { b.Row(0, 1); return io.EOF }),
		"accounts for 18 of the": func(s *story) { s.sink = forgetful{s.sink, s.sink.(stream.TwoPhase)} },
		"has no committer":       func(s *story) { s.sink = struct{ stream.Sink[item] }{s.sink} },
		"emit after it had returned": func(s *story) {
			var late func(*stream.Record[item]) error
			s.fn = func(_ context.Context, _ *stream.Record[item], emit func(*stream.Record[item]) error) error {
				late = emit
				return nil
			}
			s.sink = onFlush{s.sink, func() error { return late(&stream.Record[item]{}) }}
		},
	} {
		inBubble(t, func(t *testing.T, s *story) {
			s.opts.Restart = engine.Restart{}
			s.opts.Checkpoint.Every = 0
			change(s)
			r, err := s.run(t.Context())
			if err == nil || !strings.Contains(err.Error(), want) || r.Restarts != 0 {
				t.Errorf("Run: %v after %d restarts, want %q", err, r.Restarts, want)
			}
		})
	}
}

// fetching is a source with another Fetch.
type fetching struct {
	stream.Source[item]
	fetch func(b *stream.Batch[item]) error
}

func (f fetching) NewReader(ctx context.Context, rc stream.ReaderContext) (stream.Reader[item], error) {
	r, err := f.Source.NewReader(ctx, rc)
	return fetchingReader{r, f.fetch}, err
}

type fetchingReader struct {
	stream.Reader[item]
	fetch func(b *stream.Batch[item]) error
}

func (r fetchingReader) Fetch(_ context.Context, b *stream.Batch[item]) error {
	b.Reset()
	return r.fetch(b)
}

// forgetful is a sink whose writers forget two records in their tally.
type forgetful struct {
	stream.Sink[item]
	stream.TwoPhase
}

func (f forgetful) NewWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[item], error) {
	w, err := f.Sink.NewWriter(ctx, wc)
	return forgetfulWriter{w}, err
}

type forgetfulWriter struct{ stream.Writer[item] }

func (w forgetfulWriter) Tally() stream.Tally {
	t := w.Writer.(stream.Tallier).Tally()
	t.Written -= 2
	return t
}

// onFlush is a sink with one phase whose writers call f at each flush.
type onFlush struct {
	stream.Sink[item]
	f func() error
}

func (o onFlush) NewWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[item], error) {
	w, err := o.Sink.NewWriter(ctx, wc)
	return onFlushWriter{w, o.f}, err
}

type onFlushWriter struct {
	stream.Writer[item]
	f func() error
}

func (w onFlushWriter) Flush(ctx context.Context, final bool) error {
	return errors.Join(w.f(), w.Writer.Flush(ctx, final))
}
