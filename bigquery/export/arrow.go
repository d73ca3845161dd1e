package export

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/bigquery"
)

// endOfStream ends a stream of messages (Arrow specification, "IPC Streaming Format").
const endOfStream = "\xff\xff\xff\xff\x00\x00\x00\x00"

// messages are an Arrow stream's: the service's own record batches.
type messages struct {
	schema []byte
	cut    bool // the last batch of the read may hold more rows than count: blocks are whole and not in parts
}

func (e messages) add(b bigquery.Block, emit func(chunk) error) error {
	parts := b.Parts
	if e.cut {
		data, err := shortened(e.schema, b)
		if err != nil {
			return err
		}
		parts = [][]byte{data}
	}
	if b.Rows == 0 {
		return nil
	}
	return emit(chunk{rows: b.Rows, parts: parts, progress: b.Progress, free: b.Free})
}

func (e messages) end(func(chunk) error) error { return nil }
func (e messages) close()                      {}

// shortened is the message of a block without the rows that do not count.
func shortened(schema []byte, b bigquery.Block) ([]byte, error) {
	batch, err := batchOf(schema, b)
	if err != nil {
		return nil, err
	}
	defer batch.Release()
	if batch.NumRows() == b.Rows {
		return b.Data, nil
	}
	part := batch.NewSlice(0, b.Rows)
	defer part.Release()
	p, err := ipc.GetRecordBatchPayload(part)
	if err != nil {
		return nil, err
	}
	defer p.Release()
	var out bytes.Buffer
	_, err = p.WritePayload(&out)
	return out.Bytes(), err
}

// batchOf is the batch of a block, which the caller releases. It shares the block's bytes.
func batchOf(schema []byte, b bigquery.Block) (arrow.RecordBatch, error) {
	r, err := ipc.NewReaderFromMessageReader(&inPlace{messages: [][]byte{schema, b.Data}})
	if err != nil {
		return nil, fmt.Errorf("block at row %d of the read stream %s: %w", b.Offset, b.Stream, err)
	}
	defer r.Release()
	if !r.Next() {
		return nil, fmt.Errorf("block at row %d of the read stream %s holds no record batch: %w", b.Offset, b.Stream, r.Err())
	}
	batch := r.RecordBatch()
	if batch.NumRows() < b.Rows {
		return nil, fmt.Errorf("block at row %d of the read stream %s holds %d rows and says %d", b.Offset, b.Stream, batch.NumRows(), b.Rows)
	}
	batch.Retain()
	return batch, nil
}

// inPlace reads messages where they lie.
type inPlace struct{ messages [][]byte }

func (p *inPlace) Retain()  {}
func (p *inPlace) Release() {}

// Message answers the next: a marker, the length of the metadata, the metadata, and the body (Arrow specification, "Encapsulated
// message format").
func (p *inPlace) Message() (*ipc.Message, error) {
	if len(p.messages) == 0 {
		return nil, io.EOF
	}
	m := p.messages[0]
	p.messages = p.messages[1:]
	const head = 8
	if len(m) < head || binary.LittleEndian.Uint32(m) != math.MaxUint32 {
		return nil, errors.New("these bytes are no message of Arrow")
	}
	end := head + int64(binary.LittleEndian.Uint32(m[4:]))
	if end <= head || end > int64(len(m)) {
		return nil, errors.New("the message of Arrow is cut")
	}
	return ipc.NewMessage(memory.NewBufferBytes(m[head:end]), memory.NewBufferBytes(m[end:])), nil
}

func schemaOf(message []byte) (*arrow.Schema, error) {
	r, err := ipc.NewReader(bytes.NewReader(message))
	if err != nil {
		return nil, fmt.Errorf("schema of the read: %w", err)
	}
	defer r.Release()
	return r.Schema(), nil
}
