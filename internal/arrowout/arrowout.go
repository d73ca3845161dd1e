// Package arrowout writes what the Storage Read API answers in Arrow to files.
package arrowout

import (
	"bytes"
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// Batch is one record batch message, of which the first Rows rows count.
type Batch struct {
	Data []byte
	Rows int64
}

// endOfStream ends a stream of messages (Arrow specification, "IPC Streaming Format").
const endOfStream = "\xff\xff\xff\xff\x00\x00\x00\x00"

// Stream writes an Arrow stream of batches that all count whole: the service's own messages, which are neither decoded nor
// changed.
func Stream(w io.Writer, schema []byte, batches iter.Seq2[Batch, error]) (rows int64, err error) {
	if _, err := w.Write(schema); err != nil {
		return 0, err
	}
	for b, err := range batches {
		if err == nil {
			_, err = w.Write(b.Data)
		}
		if err != nil {
			return rows, err
		}
		rows += b.Rows
	}
	_, err = io.WriteString(w, endOfStream)
	return rows, err
}

// CutStream is Stream for batches of which only the first rows count.
func CutStream(w io.Writer, schema []byte, batches iter.Seq2[Batch, error]) (rows int64, err error) {
	s, err := schemaOf(schema)
	if err != nil {
		return 0, err
	}
	out := ipc.NewWriter(w, ipc.WithSchema(s))
	if rows, err = each(schema, batches, out.Write); err != nil {
		return rows, err
	}
	return rows, out.Close()
}

// Parquet writes a Parquet file, packed with zstd, that also holds the Arrow schema: it tells, among others, which texts are
// JSON.
func Parquet(w io.Writer, schema []byte, batches iter.Seq2[Batch, error]) (rows int64, err error) {
	s, err := schemaOf(schema)
	if err != nil {
		return 0, err
	}
	out, err := pqarrow.NewFileWriter(s, struct{ io.Writer }{w}, parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd)),
		pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		return 0, fmt.Errorf("columns of the read have no form in Parquet: %w", err)
	}
	if rows, err = each(schema, batches, out.WriteBuffered); err != nil {
		return rows, err
	}
	return rows, out.Close()
}

func schemaOf(schema []byte) (*arrow.Schema, error) {
	r, err := ipc.NewReader(bytes.NewReader(schema))
	if err != nil {
		return nil, fmt.Errorf("schema of the read: %w", err)
	}
	defer r.Release()
	return r.Schema(), nil
}

// each calls write for the rows of every batch that count.
func each(schema []byte, batches iter.Seq2[Batch, error], write func(arrow.RecordBatch) error) (rows int64, err error) {
	for b, err := range batches {
		if err == nil {
			err = one(schema, b, write)
		}
		if err != nil {
			return rows, err
		}
		rows += b.Rows
	}
	return rows, nil
}

func one(schema []byte, b Batch, write func(arrow.RecordBatch) error) error {
	r, err := ipc.NewReader(io.MultiReader(bytes.NewReader(schema), bytes.NewReader(b.Data)))
	if err != nil {
		return err
	}
	defer r.Release()
	if !r.Next() {
		return fmt.Errorf("a block of the read holds no record batch: %w", r.Err())
	}
	record := r.RecordBatch()
	if record.NumRows() < b.Rows {
		return fmt.Errorf("a block of the read holds %d rows and says %d", record.NumRows(), b.Rows)
	}
	record = record.NewSlice(0, b.Rows)
	defer record.Release()
	return write(record)
}
