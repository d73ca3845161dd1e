package ownparts

import (
	"context"
	"errors"

	"github.com/millrace-dev/millrace/stream"
)

// Ledger is the service that is written to. What Append has answered is there for good.
type Ledger interface {
	Append(ctx context.Context, entries []string) error
}

// Sink writes entries to a ledger, at least once each: it has no second phase, so what it has flushed is visible.
type Sink struct {
	Ledger   Ledger
	Failures stream.FailurePolicy
}

var _ stream.Sink[string] = Sink{}

// NewWriter makes the writer of one lane, the failure handler first.
func (s Sink) NewWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[string], error) {
	h, err := s.Failures.NewHandler(ctx, stream.HandlerContext{Job: wc.Job, Lane: wc.Lane, Meter: wc.Meter, Log: wc.Log})
	if err != nil {
		return nil, err
	}
	return &writer{ledger: s.Ledger, handler: h}, nil
}

// maxPending bounds what a lane holds that the ledger does not have.
const maxPending = 100

type writer struct {
	ledger  Ledger
	handler stream.FailureHandler
	pending []string
	tally   stream.Tally
}

var errEmpty = errors.New("the entry is empty")

// Write takes one entry. An empty one is wrong by itself: the policy decides, and the job goes on unless that says no.
func (w *writer) Write(ctx context.Context, r *stream.Record[string]) error {
	if r.Value == "" {
		err := w.handler.Handle(ctx, &stream.FailedRecord{Connector: "ledger", Destination: "ledger",
			Reason: errEmpty.Error(), Err: errEmpty, At: r.At.Location()})
		if err == nil {
			w.tally.DeadLettered++
		}
		return err
	}
	w.pending = append(w.pending, r.Value)
	if len(w.pending) < maxPending {
		return nil
	}
	return w.send(ctx)
}

func (w *writer) send(ctx context.Context) error {
	if len(w.pending) == 0 {
		return nil
	}
	if err := w.ledger.Append(ctx, w.pending); err != nil {
		return err
	}
	w.tally.Written += int64(len(w.pending))
	w.pending = w.pending[:0]
	return nil
}

// Flush returns once the ledger has everything, and the handler too.
func (w *writer) Flush(ctx context.Context, _ bool) error {
	if err := w.send(ctx); err != nil {
		return err
	}
	return w.handler.Flush(ctx)
}

// Prepare has nothing to commit.
func (w *writer) Prepare(context.Context, int64) ([]stream.Committable, error) { return nil, nil }

// Snapshot has nothing to remember: after a failure the source's positions say what to write again.
func (w *writer) Snapshot(context.Context, int64) ([]stream.State, error) { return nil, nil }

// Tally says what became of the entries; the engine checks it at every checkpoint.
func (w *writer) Tally() stream.Tally { return w.tally }

func (w *writer) Close() error { return w.handler.Close() }
