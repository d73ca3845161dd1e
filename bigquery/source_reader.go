package bigquery

import (
	"context"
	"reflect"

	"github.com/millrace-dev/millrace/bigquery/internal/storageread"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/stream"
)

// sourceReader turns the rows of a storageread.Reader into records.
type sourceReader[T any] struct {
	source           *Source[T]
	in               *storageread.Reader
	isNil            func(T) bool  // nil where no T is
	emit             func(T) error // r.take, made once
	take             func(*row.Row, int64, int) error
	emitted, skipped stream.Counter

	split string

	// Of the fetch under way.
	batch    *stream.Batch[T]
	at       int64 // position of the row being deserialized; notARow between rows
	emitErr  error // the row's first error from emit
	dropped  int64 // rows without records
	rowError error // what a row failed with; it stays, for the fetches after
}

const notARow = -1

func (s *Source[T]) reader(a storageread.Attempt) *sourceReader[T] {
	r := &sourceReader[T]{
		source:  s,
		in:      s.config.NewReader(a),
		isNil:   nilCheck[T](),
		emitted: a.Meter.Counter(storageread.RecordsEmitted),
		skipped: a.Meter.Counter(storageread.RecordsSkipped),
		at:      notARow,
	}
	r.emit, r.take = r.add, r.row
	return r
}

// nilCheck is how to tell that a T is nil, or nil where it never is.
func nilCheck[T any]() func(T) bool {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface, reflect.Func, reflect.Chan:
		return func(v T) bool { return reflect.ValueOf(&v).Elem().IsNil() }
	}
	return nil
}

func (r *sourceReader[T]) Open(ctx context.Context, s stream.Split) error {
	r.split, r.rowError = s.ID, nil
	return r.in.Open(ctx, s)
}

// Fetch hands over the rows before one that fails, and the failure the next time: the rows are good, and a checkpoint
// behind them spares reading them again.
func (r *sourceReader[T]) Fetch(ctx context.Context, b *stream.Batch[T]) error {
	b.Reset()
	if r.rowError != nil {
		return r.rowError
	}
	r.batch, r.dropped = b, 0
	err := r.in.Fetch(ctx, r.take)
	r.batch = nil
	if err != nil && (r.rowError == nil || b.Len() == 0) {
		b.Reset()
		return err
	}
	r.emitted.Add(int64(len(b.Records())))
	r.skipped.Add(r.dropped)
	return nil
}

// row makes the records of one row. A row counts as consumed only when Deserialize and every emit succeeded.
func (r *sourceReader[T]) row(in *row.Row, at int64, size int) error {
	before := len(r.batch.Records())
	r.batch.Row(at, at+1)
	r.at, r.emitErr = at, nil
	err := r.source.rows.Deserialize(in, r.emit)
	r.at = notARow
	if err == nil {
		err = r.emitErr
	}
	if err != nil {
		r.batch.Drop()
		r.rowError = &stream.PositionError{At: r.position(at).Location(), Err: err}
		return r.rowError
	}
	r.batch.Bytes += int64(size)
	if len(r.batch.Records()) == before {
		r.dropped++
	}
	return nil
}

// add is the emit of a row.
func (r *sourceReader[T]) add(v T) error {
	if r.at == notARow {
		return row.ErrEmitterClosed
	}
	if r.isNil != nil && r.isNil(v) {
		r.emitErr = row.ErrNilRecord
		return r.emitErr
	}
	r.batch.Emit(stream.Record[T]{Value: v, At: r.position(r.at)})
	return nil
}

func (r *sourceReader[T]) position(at int64) stream.Position {
	return stream.Position{Split: r.split, Row: at, Locator: r.source}
}

func (r *sourceReader[T]) Close() error { return r.in.Close() }
