package streamtest

import (
	"context"

	"github.com/millrace-dev/millrace/stream"
)

// InSource makes every call of a source's parts a step of the process.
func InSource[T any](p *Process, s stream.Source[T]) stream.Source[T] { return cutSource[T]{s, p} }

// InSink makes every call of a sink's parts a step of the process. The optional interfaces kept are TwoPhase and
// Tallier.
func InSink[T any](p *Process, s stream.Sink[T]) stream.Sink[T] {
	cut := cutSink[T]{s, p}
	if two := stream.CommitsOf(s); two != nil {
		return cutTwoPhase[T]{cut, two}
	}
	return cut
}

// step is Process.Step for calls that answer something.
func step[R any](p *Process, name string, do func() (R, error)) (r R, err error) {
	err = p.Step(name, func() error {
		r, err = do()
		return err
	})
	if err != nil {
		r = *new(R)
	}
	return r, err
}

// made is step for calls that make something to be closed. What was made for a process that did not live to hear of it
// holds goroutines of the test, so it is closed.
func made[R interface{ Close() error }](p *Process, name string, do func() (R, error)) (r R, err error) {
	ok := false
	err = p.Step(name, func() error {
		r, err = do()
		ok = err == nil
		return err
	})
	if err != nil && ok {
		r.Close()
	}
	return r, err
}

type cutSource[T any] struct {
	stream.Source[T]
	p *Process
}

func (s cutSource[T]) NewEnumerator(ctx context.Context, ec stream.EnumeratorContext) (stream.Enumerator, error) {
	e, err := made(s.p, "new enumerator", func() (stream.Enumerator, error) { return s.Source.NewEnumerator(ctx, ec) })
	if err != nil {
		return nil, err
	}
	return cutEnumerator{e, s.p}, nil
}

func (s cutSource[T]) NewReader(ctx context.Context, rc stream.ReaderContext) (stream.Reader[T], error) {
	r, err := made(s.p, "new reader", func() (stream.Reader[T], error) { return s.Source.NewReader(ctx, rc) })
	if err != nil {
		return nil, err
	}
	cut := cutReader[T]{r, s.p}
	if a, ok := r.(stream.Acknowledger); ok {
		return cutAcknowledger[T]{cut, a}, nil
	}
	return cut, nil
}

type cutEnumerator struct {
	stream.Enumerator
	p *Process
}

func (e cutEnumerator) Next(lane int) (stream.Split, error) {
	return step(e.p, "next split", func() (stream.Split, error) { return e.Enumerator.Next(lane) })
}

func (e cutEnumerator) Snapshot() ([]byte, error) {
	return step(e.p, "snapshot enumerator", e.Enumerator.Snapshot)
}

type cutReader[T any] struct {
	stream.Reader[T]
	p *Process
}

func (r cutReader[T]) Open(ctx context.Context, s stream.Split) error {
	return r.p.Step("open split", func() error { return r.Reader.Open(ctx, s) })
}

func (r cutReader[T]) Fetch(ctx context.Context, b *stream.Batch[T]) error {
	err := r.p.Step("fetch", func() error { return r.Reader.Fetch(ctx, b) })
	if err != nil {
		b.Reset()
	}
	return err
}

type cutAcknowledger[T any] struct {
	cutReader[T]
	a stream.Acknowledger
}

func (r cutAcknowledger[T]) Barrier(checkpoint, consumed int64) {
	r.p.Step("barrier", func() error { r.a.Barrier(checkpoint, consumed); return nil })
}

func (r cutAcknowledger[T]) Acknowledge(ctx context.Context, checkpoint int64) error {
	return r.p.Step("acknowledge", func() error { return r.a.Acknowledge(ctx, checkpoint) })
}

type cutSink[T any] struct {
	stream.Sink[T]
	p *Process
}

func (s cutSink[T]) NewWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[T], error) {
	w, err := made(s.p, "new writer", func() (stream.Writer[T], error) { return s.Sink.NewWriter(ctx, wc) })
	if err != nil {
		return nil, err
	}
	cut := cutWriter[T]{w, s.p}
	if t, ok := w.(stream.Tallier); ok {
		return cutTallier[T]{cut, t}, nil
	}
	return cut, nil
}

type cutTwoPhase[T any] struct {
	cutSink[T]
	two stream.TwoPhase
}

func (s cutTwoPhase[T]) CommitScope() stream.CommitScope { return s.two.CommitScope() }

func (s cutTwoPhase[T]) NewCommitter(ctx context.Context, cc stream.CommitterContext) (stream.Committer, error) {
	c, err := made(s.p, "new committer", func() (stream.Committer, error) { return s.two.NewCommitter(ctx, cc) })
	if err != nil {
		return nil, err
	}
	return cutCommitter{c, s.p}, nil
}

type cutWriter[T any] struct {
	stream.Writer[T]
	p *Process
}

func (w cutWriter[T]) Write(ctx context.Context, r *stream.Record[T]) error {
	return w.p.Step("write", func() error { return w.Writer.Write(ctx, r) })
}

func (w cutWriter[T]) Flush(ctx context.Context, final bool) error {
	return w.p.Step("flush", func() error { return w.Writer.Flush(ctx, final) })
}

func (w cutWriter[T]) Prepare(ctx context.Context, checkpoint int64) ([]stream.Committable, error) {
	return step(w.p, "prepare", func() ([]stream.Committable, error) { return w.Writer.Prepare(ctx, checkpoint) })
}

func (w cutWriter[T]) Snapshot(ctx context.Context, checkpoint int64) ([]stream.State, error) {
	return step(w.p, "snapshot writer", func() ([]stream.State, error) { return w.Writer.Snapshot(ctx, checkpoint) })
}

type cutTallier[T any] struct {
	cutWriter[T]
	t stream.Tallier
}

func (w cutTallier[T]) Tally() stream.Tally { return w.t.Tally() }

type cutCommitter struct {
	stream.Committer
	p *Process
}

func (c cutCommitter) Commit(ctx context.Context, cs []stream.Committable) error {
	return c.p.Step("commit", func() error { return c.Committer.Commit(ctx, cs) })
}

// InPolicy makes every call of a policy's handlers a step of the process.
func InPolicy(p *Process, f stream.FailurePolicy) stream.FailurePolicy { return cutPolicy{f, p} }

type cutPolicy struct {
	stream.FailurePolicy
	p *Process
}

func (f cutPolicy) NewHandler(ctx context.Context, hc stream.HandlerContext) (stream.FailureHandler, error) {
	h, err := made(f.p, "new handler", func() (stream.FailureHandler, error) { return f.FailurePolicy.NewHandler(ctx, hc) })
	if err != nil {
		return nil, err
	}
	return cutHandler{h, f.p}, nil
}

type cutHandler struct {
	stream.FailureHandler
	p *Process
}

func (h cutHandler) Handle(ctx context.Context, f *stream.FailedRecord) error {
	return h.p.Step("handle failure", func() error { return h.FailureHandler.Handle(ctx, f) })
}

func (h cutHandler) Flush(ctx context.Context) error {
	return h.p.Step("flush failures", func() error { return h.FailureHandler.Flush(ctx) })
}
