package bigquery

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/bigquery/internal/storageread"
	"github.com/millrace-dev/millrace/stream"
)

// BatchDeserializer turns record batches of Arrow into records. arrowrow.NewSlices makes one. It is used by all lanes at once.
type BatchDeserializer[T any] interface {
	// DeserializeBatch gets a schema message and a record batch message (arrow.proto), of which the first rows count. It goes through
	// them in order: begin says that the next rows, at most most, are a slice, and emit adds a record of it; none is a slice that is
	// skipped. A slice counts as consumed, all rows of it, when the next begins or the call returns without an error. An error takes
	// back the slice that was begun last, and the read fails at its first row. schema and data are valid during the call, and so are
	// begin and emit.
	DeserializeBatch(schema, data []byte, rows, most int64, begin func(rows int64), emit func(T) error) error
}

// ArrowSource is a Source that reads in Arrow, slice after slice of the service's batches. Positions are rows, so that a restart
// begins behind a slice, wherever in a batch that is.
type ArrowSource[T any] struct {
	of      *Source[T] // without a deserializer
	batches BatchDeserializer[T]
}

var (
	_ stream.Source[int] = (*ArrowSource[int])(nil)
	_ stream.Locator     = (*ArrowSource[int])(nil)
)

// NewArrowSource makes a source of slices of at most MaxRecordsPerFetch rows, and about MaxBytesPerFetch bytes, for programs that
// take many rows at once. SourceOptions.ReaderSchema is refused, as ReadArrow refuses it. Every fault of the options is reported at
// once.
func NewArrowSource[T any](from Input, batches BatchDeserializer[T], o SourceOptions) (*ArrowSource[T], error) {
	config, err := o.resolve(from)
	faults := []error{err}
	if missing(batches) {
		faults = append(faults, errors.New("a deserializer of batches is required"))
	}
	if o.ReaderSchema != "" {
		faults = append(faults, errReaderSchema)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("bigquery source: %w", err)
	}
	config.Arrow, config.Board = true, &storageread.Board{}
	return &ArrowSource[T]{&Source[T]{config: config}, batches}, nil
}

// Bounded is true: a table at one instant has an end.
func (s *ArrowSource[T]) Bounded() bool { return true }

// NewEnumerator plans the read, unless the state says it has been planned.
func (s *ArrowSource[T]) NewEnumerator(ctx context.Context, ec stream.EnumeratorContext) (stream.Enumerator, error) {
	return s.of.NewEnumerator(ctx, ec)
}

// Locate names the read stream and the row in it.
func (s *ArrowSource[T]) Locate(p stream.Position) stream.Location { return s.of.Locate(p) }

// Report answers how the read of an engine is going. It may be called at any time.
func (s *ArrowSource[T]) Report() SourceReport { return s.of.Report() }

// Lineage is the table that is read; none with a query.
func (s *ArrowSource[T]) Lineage() []Dataset { return s.of.Lineage() }

// NewReader makes the reader of one lane. It has a connection of its own, opened with its first split.
func (s *ArrowSource[T]) NewReader(_ context.Context, rc stream.ReaderContext) (stream.Reader[T], error) {
	r := &batchReader[T]{sourceReader: s.of.reader(storageread.Attempt{Job: rc.Job, Meter: rc.Meter, Log: rc.Log}), batches: s.batches}
	r.emit, r.begin = r.add, r.slice
	return r, nil
}

// batchReader makes one batch of each response of the service.
type batchReader[T any] struct {
	*sourceReader[T]
	batches BatchDeserializer[T]
	begin   func(rows int64)
	next    int64 // row behind the slice that was begun last
}

// Fetch hands over the slices before one that fails, and the failure the next time.
func (r *batchReader[T]) Fetch(ctx context.Context, b *stream.Batch[T]) error {
	b.Reset()
	if r.rowError != nil {
		return r.rowError
	}
	in, err := r.in.Block(ctx)
	if err != nil {
		return err
	}
	r.batch, r.dropped, r.emitErr, r.next = b, 0, nil, in.Offset
	r.at = notARow
	err = r.batches.DeserializeBatch([]byte(r.in.OpenSchema()), in.Data, in.Rows, r.most(in), r.begin, r.emit)
	at := r.at
	r.at = notARow
	if err == nil {
		err = r.emitErr
	}
	if end := in.Offset + in.Rows; err == nil && r.next != end {
		err = fmt.Errorf("slices of %d rows of a batch of %d", r.next-in.Offset, in.Rows)
	}
	if err != nil {
		if at == notARow {
			at = in.Offset
		}
		r.rowError = &stream.PositionError{At: r.position(at).Location(), Err: err}
		if b.Len() > 0 {
			b.Drop()
		}
		if b.Len() == 0 {
			return r.rowError
		}
	}
	b.Bytes = int64(len(in.Data))
	r.emitted.Add(int64(len(b.Records())))
	r.skipped.Add(skippedRows(b))
	r.batch = nil
	return nil
}

// most is how many rows a slice of a block may have.
func (r *batchReader[T]) most(in storageread.Block) int64 {
	c := &r.source.config
	byBytes := max(1, int64(float64(in.Rows)*float64(c.MaxBytesPerFetch)/float64(max(1, len(in.Data)))))
	return min(int64(c.MaxRecordsPerFetch), byBytes)
}

// slice is the begin of a block.
func (r *batchReader[T]) slice(rows int64) {
	if r.batch == nil || rows <= 0 || r.emitErr != nil {
		return // which the sum of the slices tells
	}
	r.at = r.next
	r.next += rows
	r.batch.Row(r.at, r.next)
}

// skippedRows are those of slices without records.
func skippedRows[T any](b *stream.Batch[T]) (n int64) {
	for i := range b.Len() {
		if records, at, next := b.At(i); len(records) == 0 {
			n += next - at
		}
	}
	return n
}
