package bigquery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// front is the part of a lane that knows what a record is: it finds the table and makes the row. It belongs to one lane.
type front[T any] struct {
	to       Resolver[T]
	rows     row.Serializer[T]
	original func(*stream.Record[T]) []byte
}

func (s *Sink[T]) front() front[T] {
	return front[T]{laneResolver(s.to), s.rows, s.original}
}

// resolve finds the table of a record. An Unroutable is the record's own fault, any other error is not.
func (f *front[T]) resolve(ctx context.Context, r *stream.Record[T]) (table.Destination, *Unroutable, error) {
	dst, err := f.to.Resolve(ctx, r)
	if err == nil && dst != (table.Destination{}) {
		return dst, nil, nil
	}
	var u *Unroutable
	switch {
	case err == nil:
		err = ErrNilResolution
	case errors.As(err, &u):
		return dst, u, nil
	default:
		err = fmt.Errorf("destination resolver: %w", err)
	}
	return dst, nil, &stream.PositionError{At: r.At.Location(), Err: err}
}

// encode appends the row of a record. A serializer that panics has failed at this record.
func (f *front[T]) encode(log *slog.Logger, buf []byte, dst table.Destination, rec T) (_ []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("serializer panicked", "destination", dst.String(), "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("serializer panicked: %v", p)
		}
	}()
	return f.rows.AppendRow(buf, dst, rec)
}

func skipped(err error) bool { return errors.Is(err, row.ErrSkip) || errors.Is(err, stream.ErrSkip) }

// failed describes a record that is wrong by itself.
func (f *front[T]) failed(r *stream.Record[T], err error) *stream.FailedRecord {
	return &stream.FailedRecord{Reason: err.Error(), Err: err, Original: f.originalOf(r), At: r.At.Location()}
}

func (f *front[T]) originalOf(r *stream.Record[T]) []byte {
	if f.original == nil {
		return nil
	}
	return f.original(r)
}
