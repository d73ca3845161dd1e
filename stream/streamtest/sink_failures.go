package streamtest

import (
	"errors"
	"slices"

	"go.uber.org/goleak"

	"github.com/millrace-dev/millrace/stream"
)

// mixed writes good records with bad and skipped ones between them, and returns how many there were of each.
func (s *session[T]) mixed(from, to int) (bad, skipped int) {
	s.b.t.Helper()
	for i := from; i < to; i++ {
		value := s.b.Record(i)
		switch {
		case i%5 == 2 && s.b.Bad != nil:
			value = s.b.Bad(i)
			bad++
		case i%5 == 4 && s.b.Skip != nil:
			value = s.b.Skip(i)
			skipped++
		}
		if err := s.try(value, i); err != nil {
			s.b.t.Fatalf("Write of record %d: %v", i, err)
		}
	}
	return bad, skipped
}

// good are the numbers that mixed wrote as they should be.
func (b *bench[T]) good(n int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if i%5 == 2 && b.Bad != nil || i%5 == 4 && b.Skip != nil {
				continue
			}
			if !yield(i) {
				return
			}
		}
	}
}

func checkTally[T any](t TB, h SinkHarness[T]) {
	b := h.bench(t)
	defer b.close()
	s := b.writer(0, 1, nil)
	defer s.close()
	tallier, ok := s.writer.(stream.Tallier)
	if !ok {
		t.Logf("the writer keeps no tally")
		return
	}
	var bad, skipped int
	for i := range 3 {
		moreBad, moreSkipped := s.mixed(10*i, 10*i+10)
		bad, skipped = bad+moreBad, skipped+moreSkipped
		s.checkpoint(false)
		got := tallier.Tally()
		got.Bytes = 0
		want := stream.Tally{Written: int64(s.wrote - bad - skipped), DeadLettered: int64(bad), Skipped: int64(skipped)}
		if got != want {
			t.Errorf("after checkpoint %d the tally is %+v, want %+v", i+1, got, want)
		}
	}
}

func checkBadRecords[T any](t TB, h SinkHarness[T]) {
	b := h.bench(t)
	defer b.close()
	s := b.writer(0, 1, nil)
	bad, _ := s.mixed(0, 40)
	out := s.checkpoint(false)
	s.close()
	b.commit(out.committables...)
	b.seesThose("with bad records in between", true, b.good(40))
	if got := len(b.failures.handled); got != bad {
		t.Errorf("the failure handler was given %d records, want %d", got, bad)
	}
	for _, f := range b.failures.handled {
		if f.Connector == "" || f.Destination == "" || f.Reason == "" {
			t.Errorf("a failed record lacks connector, destination or reason: %+v", f)
		}
		if f.At.Name != "input" || f.At.Row%5 != 2 {
			t.Errorf("a failed record says that it was read at %s", f.At)
		}
	}
}

func checkHandlerRefuses[T any](t TB, h SinkHarness[T]) {
	b := h.bench(t)
	defer b.close()
	if b.Bad == nil {
		t.Logf("the sink refuses no records")
		return
	}
	b.failures.refuse = errors.New("the handler refuses")
	s := b.writer(0, 1, nil)
	s.write(0, 2)
	err := s.try(b.Bad(2), 2)
	if err == nil {
		_, err = s.tryCheckpoint(false)
	}
	if !errors.Is(err, b.failures.refuse) {
		t.Errorf("the handler refused a record, and the writer answered %v", err)
	}
	s.writer.Close()
}

func checkHandlerFlushed[T any](t TB, h SinkHarness[T]) {
	b := h.bench(t)
	defer b.close()
	s := b.writer(0, 1, nil)
	defer s.close()
	for i := range 3 {
		s.mixed(10*i, 10*i+10)
		before := b.failures.flushes
		s.checkpoint(i == 2)
		if b.failures.flushes == before {
			t.Errorf("checkpoint %d did not flush the failure handler", i+1)
		}
		if n := b.failures.unsafe; n > 0 {
			t.Errorf("checkpoint %d left %d records with the failure handler that it has not flushed", i+1, n)
		}
	}
}

func checkHandlerClosed[T any](t TB, h SinkHarness[T]) {
	for _, flush := range []bool{true, false} {
		b := h.bench(t)
		s := b.writer(0, 1, nil)
		s.mixed(0, 10)
		if flush {
			s.checkpoint(true)
		}
		s.close()
		if b.failures.made != 1 || b.failures.closed != 1 {
			t.Errorf("the writer made %d failure handlers and closed %d times, want 1 and 1", b.failures.made, b.failures.closed)
		}
		b.close()
	}
}

func checkBulk[T any](t TB, h SinkHarness[T]) {
	b := h.bench(t)
	defer b.close()
	s := b.writer(0, 1, nil)
	bulk, ok := s.writer.(stream.RecordsWriter[T])
	if !ok {
		t.Logf("the writer takes records one by one")
		s.close()
		return
	}
	for _, size := range []int{1, 4, 35} {
		var records []stream.Record[T]
		for range size {
			i := s.wrote
			records = append(records, stream.Record[T]{Value: b.Record(i), At: stream.Position{Split: "input", Row: int64(i)}})
			s.wrote++
		}
		if n, err := bulk.WriteRecords(t.Context(), records); err != nil || n != size {
			t.Fatalf("WriteRecords of %d records answered %d, %v", size, n, err)
		}
	}
	out := s.checkpoint(false)
	s.close()
	b.commit(out.committables...)
	b.sees("after records in bulk", 40)
}

// checkEncoded encodes in one process and writes in another.
func checkEncoded[T any](t TB, h SinkHarness[T]) {
	b := h.bench(t)
	defer b.close()
	encoding, ok := b.Sink(b.failures).(stream.Encoding[T])
	if !ok {
		t.Logf("the sink has no encoder")
		return
	}
	if _, err := encoding.NewEncoder(t.Context(), stream.WriterContext{Job: testJob, Lanes: 1, Meter: stream.NoMeter, Log: quiet}); errors.Is(err, errors.ErrUnsupported) {
		t.Logf("the sink has no encoder as it is configured")
		return
	}
	batches := b.encode(encoding, 40)
	policy := &failureLog{}
	far := &bench[T]{t: t, h: h, SinkTarget: b.SinkTarget, failures: policy}
	s := far.writer(0, 1, nil)
	w, ok := s.writer.(stream.EncodedWriter)
	if !ok {
		t.Fatalf("the sink has an encoder, and its writer takes no encoded batches")
	}
	for _, batch := range batches {
		if err := w.WriteEncoded(t.Context(), batch); err != nil {
			t.Fatalf("WriteEncoded: %v", err)
		}
	}
	out := s.checkpoint(false)
	s.close()
	b.commit(out.committables...)
	b.seesThose("after writing what an encoder made", true, b.good(40))
	if want := len(b.badOnes(40)); len(b.failures.handled) != want || len(policy.handled) != 0 {
		t.Errorf("the failure handlers of encoder and writer were given %d and %d records, want %d and 0",
			len(b.failures.handled), len(policy.handled), want)
	}
}

func (b *bench[T]) badOnes(n int) (bad []int) {
	for i := range n {
		if i%5 == 2 && b.Bad != nil {
			bad = append(bad, i)
		}
	}
	return bad
}

// encode encodes what mixed would write, over several bundles.
func (b *bench[T]) encode(encoding stream.Encoding[T], n int) (batches []stream.EncodedBatch) {
	b.t.Helper()
	ctx := b.t.Context()
	e, err := encoding.NewEncoder(ctx, stream.WriterContext{Job: testJob, Lanes: 1, Meter: stream.NoMeter, Log: quiet})
	if err != nil {
		b.t.Fatalf("NewEncoder: %v", err)
	}
	emit := func(batch stream.EncodedBatch) error {
		batch.Data = slices.Clone(batch.Data)
		batches = append(batches, batch)
		return nil
	}
	good := slices.Collect(b.good(n))
	bad := b.badOnes(n)
	for i := range n {
		r := stream.Record[T]{Value: b.Record(i), At: stream.Position{Split: "input", Row: int64(i)}}
		if slices.Contains(bad, i) {
			r.Value = b.Bad(i)
		} else if !slices.Contains(good, i) {
			r.Value = b.Skip(i)
		}
		if err := e.Encode(ctx, &r, emit); err != nil {
			b.t.Fatalf("Encode of record %d: %v", i, err)
		}
		if i%15 == 14 || i == n-1 {
			if err := e.Flush(ctx, emit); err != nil {
				b.t.Fatalf("Encoder.Flush: %v", err)
			}
		}
	}
	if err := e.Close(); err != nil {
		b.t.Errorf("Encoder.Close: %v", err)
	}
	return batches
}

func checkCommitterClose[T any](t TB, h SinkHarness[T]) {
	b := h.bench(t)
	defer b.close()
	two := b.twoPhase()
	if two == nil {
		t.Logf("the sink commits in one phase")
		return
	}
	c, err := two.NewCommitter(t.Context(), stream.CommitterContext{Job: testJob, Meter: stream.NoMeter, Log: quiet})
	if err != nil {
		t.Fatalf("NewCommitter: %v", err)
	}
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Errorf("Committer.Close: %v", err)
	}
}

func checkSinkLeaks[T any](t TB, h SinkHarness[T]) {
	b := h.bench(t)
	defer b.close()
	before := append([]goleak.Option{goleak.IgnoreCurrent()}, h.Leaks...)
	for _, flush := range []bool{true, false} {
		s := b.writer(0, 1, nil)
		s.write(0, 40)
		if flush {
			b.commit(s.checkpoint(true).committables...)
		}
		s.close()
	}
	if err := goleak.Find(before...); err != nil {
		t.Errorf("after everything was closed: %v", err)
	}
}
