package bigquery

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/bigquery/internal/storagewrite"
	"github.com/millrace-dev/millrace/stream"
)

// NewEncoder makes the half of a writer that stands beside the records, for engines that move data between processes.
// What it emits goes to WriteEncoded of a writer of this sink.
func (s *Sink[T]) NewEncoder(ctx context.Context, wc stream.WriterContext) (stream.Encoder[T], error) {
	if s.config.method == MethodFileLoads {
		return nil, fmt.Errorf("bigquery sink: %w: batches that are encoded elsewhere go to streams: use another method", errors.ErrUnsupported)
	}
	core, err := storagewrite.NewEncoder(ctx, s.laneConfig(wc))
	if err != nil {
		return nil, fmt.Errorf("bigquery sink: %w", err)
	}
	return &sinkEncoder[T]{s.front(wc.Log), core}, nil
}

type sinkEncoder[T any] struct {
	front[T]
	core *storagewrite.Encoder
}

// Encode adds a record to the batch of its table and emits the batch when it is full.
func (e *sinkEncoder[T]) Encode(ctx context.Context, r *stream.Record[T], emit func(stream.EncodedBatch) error) error {
	dst, err := e.resolve(ctx, r)
	if err != nil {
		f, err := e.unresolved(r, err)
		if err != nil {
			return err
		}
		return e.core.Reject(ctx, nil, f)
	}
	p, err := e.core.Packer(dst)
	if err != nil {
		return &stream.PositionError{At: r.At.Location(), Err: err}
	}
	buf, err := e.encode(p.Begin(), dst, r.Value)
	if skipped(err) {
		e.core.Skip()
		return nil
	}
	if misconfigured(err) {
		return misconfigurationOf(dst, &r.At, err)
	}
	if err == nil {
		if err = p.Commit(buf, emit); !errors.Is(err, storagewrite.ErrRowTooLong) {
			return err
		}
	}
	return e.core.Reject(ctx, p, e.failed(r, err))
}

// Flush emits what is left, so that the encoder is as new.
func (e *sinkEncoder[T]) Flush(ctx context.Context, emit func(stream.EncodedBatch) error) error {
	return e.core.Flush(ctx, emit)
}

// Close frees everything without flushing.
func (e *sinkEncoder[T]) Close() error { return e.core.Close() }
