package stream

import (
	"context"
	"errors"
)

// Func makes zero, one or many records of one. It runs on the lane, between the reader and the writer; emit is valid
// during the call only and returns an error when the writer failed, which the Func passes on. An emitted record whose
// At is zero gets that of in.
//
// A Func that returns ErrSkip drops the record, counted as skipped. Any other error is handed to the job's failure policy
// when it is wrapped in a *RecordError, and ends the attempt when it is not. A panic ends the job, with the position of
// the record, and is not retried.
type Func[In, Out any] func(ctx context.Context, in *Record[In], emit func(*Record[Out]) error) error

// ErrSkip is returned by a Func, or by a serializer, for a record that is to be written nowhere.
var ErrSkip = errors.New("skip this record")

// RecordError is an error that is the record's own fault: the failure policy decides what becomes of the record.
type RecordError struct{ Err error }

func (e *RecordError) Error() string { return e.Err.Error() }
func (e *RecordError) Unwrap() error { return e.Err }

// Through is the Func that passes records on unchanged.
func Through[T any](_ context.Context, in *Record[T], emit func(*Record[T]) error) error {
	return emit(in)
}

// Then joins two Funcs. A record that g skips is dropped by itself; f does not hear of it.
func Then[A, B, C any](f Func[A, B], g Func[B, C]) Func[A, C] {
	return func(ctx context.Context, in *Record[A], emit func(*Record[C]) error) error {
		return f(ctx, in, func(mid *Record[B]) error {
			if mid.At == (Position{}) {
				mid.At = in.At
			}
			if err := g(ctx, mid, emit); !errors.Is(err, ErrSkip) {
				return err
			}
			return nil
		})
	}
}
