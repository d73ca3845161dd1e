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
	single   bool // all records go to one table
	rows     row.Serializer[T]
	original func(*stream.Record[T]) []byte
	log      *slog.Logger
}

func (s *Sink[T]) front(log *slog.Logger) front[T] {
	_, single := destination(s.to)
	return front[T]{laneResolver(s.to), single, s.rows, s.original, log}
}

// resolve finds the table of a record.
func (f *front[T]) resolve(ctx context.Context, r *stream.Record[T]) (table.Destination, error) {
	dst, err := f.to.Resolve(ctx, r)
	if err == nil && dst.Table == "" && dst == (table.Destination{}) {
		err = ErrNilResolution
	}
	return dst, err
}

// unresolved tells an error of resolve that is the record's own fault from one that is not.
func (f *front[T]) unresolved(r *stream.Record[T], err error) (*stream.FailedRecord, error) {
	var u *Unroutable
	if errors.As(err, &u) {
		return f.failed(r, u), nil
	}
	return nil, &stream.PositionError{At: r.At.Location(), Err: fmt.Errorf("destination resolver: %w", err)}
}

// encode appends the row of a record. A serializer that panics has failed at this record.
func (f *front[T]) encode(buf []byte, dst table.Destination, rec T) (_ []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = f.panicked(dst, p)
		}
	}()
	return f.rows.AppendRow(buf, dst, rec)
}

func (f *front[T]) panicked(dst table.Destination, p any) error {
	f.log.Error("serializer panicked", "destination", dst.String(), "panic", p, "stack", string(debug.Stack()))
	return fmt.Errorf("serializer panicked: %v", p)
}

// misconfigured says whether a serializer's error is one that every record of the table would meet, or no record's fault at all.
func misconfigured(err error) bool {
	var e *row.Error
	return errors.As(err, &e) && e.Kind.Configuration() || errors.Is(err, row.ErrUnavailable)
}

// misconfiguration is such an error. It ends the attempt.
type misconfiguration struct{ error }

func (m misconfiguration) Unwrap() error { return m.error }

// Permanent says that the next attempt would meet it again: see engine.Restart.
func (m misconfiguration) Permanent() bool { return !errors.Is(m.error, row.ErrUnavailable) }

func misconfigurationOf(dst table.Destination, at *stream.Position, err error) error {
	return misconfiguration{&stream.PositionError{At: at.Location(), Err: fmt.Errorf("row of %s: %w", dst, err)}}
}

func skipped(err error) bool { return errors.Is(err, row.ErrSkip) || errors.Is(err, stream.ErrSkip) }

// failed describes a record that is wrong by itself.
func (f *front[T]) failed(r *stream.Record[T], err error) *stream.FailedRecord {
	return &stream.FailedRecord{Reason: err.Error(), Err: err, Original: f.originalOf(r), At: r.At.Location(), Split: r.At.Split}
}

func (f *front[T]) originalOf(r *stream.Record[T]) []byte {
	if f.original == nil {
		return nil
	}
	return f.original(r)
}
