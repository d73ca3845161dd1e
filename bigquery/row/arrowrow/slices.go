package arrowrow

import (
	"bytes"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/bigquery/row"
)

// Slices turns record batches that are read into records, slice after slice: what bigquery.NewArrowSource takes. It may be used
// from many goroutines.
type Slices[T any] struct {
	from func(rec arrow.RecordBatch, emit func(T) error) error
	mem  memory.Allocator
}

// SliceOptions change where memory comes from.
type SliceOptions struct {
	// Allocator is where batches are read into where their bytes cannot be used as they are. Default: memory.DefaultAllocator.
	Allocator memory.Allocator
}

// NewSlices makes records with from. A slice is valid until from returns: it retains what it keeps. Slices of one batch share its
// memory. An error fails the read at the first row of the slice.
func NewSlices[T any](from func(rec arrow.RecordBatch, emit func(T) error) error, o SliceOptions) *Slices[T] {
	if o.Allocator == nil {
		o.Allocator = memory.DefaultAllocator
	}
	return &Slices[T]{from, o.Allocator}
}

// DeserializeBatch implements bigquery.BatchDeserializer.
func (s *Slices[T]) DeserializeBatch(schema, data []byte, rows, most int64, begin func(rows int64), emit func(T) error) error {
	r, err := ipc.NewReader(io.MultiReader(bytes.NewReader(schema), bytes.NewReader(data)), ipc.WithAllocator(s.mem))
	if err != nil {
		return decodeFault("the Arrow schema cannot be read: %v", err)
	}
	defer r.Release()
	rec, err := r.Read()
	if err != nil {
		return decodeFault("the record batch cannot be read: %v", err)
	}
	if rec.NumRows() < rows {
		return decodeFault("a record batch of %d rows, where %d are declared", rec.NumRows(), rows)
	}
	for from := int64(0); from < rows; from += most {
		if err := s.slice(rec, from, min(from+most, rows), begin, emit); err != nil {
			return err
		}
	}
	return nil
}

func (s *Slices[T]) slice(rec arrow.RecordBatch, from, to int64, begin func(rows int64), emit func(T) error) error {
	part := rec.NewSlice(from, to)
	defer part.Release()
	begin(to - from)
	return s.from(part, emit)
}

func decodeFault(format string, args ...any) error {
	return &row.Error{Kind: row.KindDecode, Offset: -1, Msg: fmt.Sprintf(format, args...)}
}
