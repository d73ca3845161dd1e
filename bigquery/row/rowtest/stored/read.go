package stored

import (
	"bytes"
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/arrowrow"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func (l *Local) options() bigquery.SourceOptions {
	return bigquery.SourceOptions{Connection: l.Connection, MaxStreamCount: 1} // one stream, so that rows come in order
}

// Session plans a read of a table in Avro.
func Session[T any](ctx context.Context, l *Local, dst table.Destination, rows row.Deserializer[T]) (*bigquery.ReadSession[T], error) {
	source, err := bigquery.NewSource(bigquery.FromTable(dst), rows, l.options())
	if err != nil {
		return nil, err
	}
	return source.Session(ctx)
}

// Read reads a table in Avro, as records.
func Read[T any](ctx context.Context, l *Local, dst table.Destination, rows row.Deserializer[T]) (records []T, err error) {
	s, err := Session(ctx, l, dst, rows)
	if err != nil {
		return nil, err
	}
	for r, err := range s.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}

// Keep is a Deserializer to the values themselves, copied.
type Keep struct{}

// Deserialize emits the values of r.
func (Keep) Deserialize(r *row.Row, emit func([]row.Value) error) error { return emit(clone(r.Values)) }

func clone(values []row.Value) []row.Value {
	out := slices.Clone(values)
	for i := range out {
		out[i].Bytes, out[i].List = bytes.Clone(out[i].Bytes), clone(out[i].List)
	}
	return out
}

// ReadArrow reads a table in Arrow, as records.
func ReadArrow[T any](ctx context.Context, l *Local, dst table.Destination, rows row.Deserializer[T]) (records []T, err error) {
	s, err := bigquery.ReadArrow(ctx, bigquery.FromTable(dst), l.options())
	if err != nil {
		return nil, err
	}
	for b, err := range s.Blocks(ctx) {
		if err != nil {
			return nil, err
		}
		if records, err = fromBlock(records, slices.Concat(s.Schema(), b.Data), rows); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// fromBlock appends the records of an Arrow stream.
func fromBlock[T any](records []T, data []byte, rows row.Deserializer[T]) ([]T, error) {
	in, err := ipc.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer in.Release()
	reader, err := arrowrow.NewReader(in.Schema())
	if err != nil {
		return nil, err
	}
	for in.Next() {
		batch, err := arrowrow.NewBatch(in.RecordBatch())
		if err != nil {
			return nil, err
		}
		for i := range batch.Len() {
			r, err := reader.Read(arrowrow.Row{Batch: batch, Index: i})
			if err == nil {
				err = rows.Deserialize(r, func(rec T) error { records = append(records, rec); return nil })
			}
			if err != nil {
				batch.Release()
				return nil, err
			}
		}
		batch.Release()
	}
	return records, in.Err()
}
