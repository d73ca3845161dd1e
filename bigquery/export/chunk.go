package export

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/parquet/metadata"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
)

// chunk is a run of rows of one stream as a file holds them.
type chunk struct {
	rows     int64
	parts    [][]byte
	group    *metadata.FileMetaData // of Parquet: a file of this row group alone
	progress float64                // share of the stream that ends with it
	free     func()                 // gives the bytes back
}

// encoder makes chunks of the blocks of streams, one stream at a time. Each lane has its own. Where chunks end depends on the rows
// since the first that is added and on nothing else, but for the formats whose blocks are the service's.
type encoder interface {
	add(b bigquery.Block, emit func(chunk) error) error
	// end makes a chunk of what is left.
	end(emit func(chunk) error) error
	close()
}

const (
	chunkRows  = 16_384
	chunkBytes = 512 << 10 // as the service encodes rows
)

// lines makes text of rows, a line each.
type lines struct {
	decode func(*bigquery.Block) (*row.Row, error)
	line   func(buf []byte, r *row.Row) ([]byte, error)
	pack   packer
	size   sizes

	bufs     buffers
	buf      []byte
	rows     int64
	bytes    int64
	progress float64
}

func (e *lines) add(b bigquery.Block, emit func(chunk) error) error {
	whole := b
	for b.Rows > 0 {
		if e.buf == nil {
			e.buf = e.bufs.take()
		}
		at, size := b.Offset, len(b.Data)
		r, err := e.decode(&b)
		if err == nil {
			e.buf, err = e.line(e.buf, r)
		}
		if err != nil {
			return fmt.Errorf("row %d of the read stream %s: %w", at, b.Stream, err)
		}
		e.rows++
		e.bytes += int64(size - len(b.Data))
		e.progress = b.Progress
		if e.rows == e.size.rows || e.bytes >= e.size.bytes {
			if err := e.end(emit); err != nil {
				return err
			}
		}
	}
	whole.Free()
	return nil
}

func (e *lines) end(emit func(chunk) error) error {
	if e.rows == 0 {
		return nil
	}
	buf, part := e.buf, e.buf
	if e.pack != nil {
		part = e.pack.pack(part)
	}
	c := chunk{rows: e.rows, parts: [][]byte{part}, progress: e.progress, free: func() { e.bufs.give(buf) }}
	e.buf, e.rows, e.bytes = nil, 0, 0
	return emit(c)
}

func (e *lines) close() {}

// buffers are a lane's, which come back when they have been written.
type buffers struct {
	spare chan []byte
	size  int // of a new one
}

func newBuffers(size int) buffers { return buffers{make(chan []byte, 2), size} }

func (b buffers) take() []byte {
	select {
	case buf := <-b.spare:
		return buf[:0]
	default:
		return make([]byte, 0, b.size)
	}
}

// give keeps a buffer, unless it has grown out of proportion for one long row.
func (b buffers) give(buf []byte) {
	if cap(buf) > 8*b.size {
		return
	}
	select {
	case b.spare <- buf:
	default:
	}
}

// blocks makes an Avro file's block of each of the service's, which come in parts.
type blocks struct{ sync []byte }

func (e blocks) add(b bigquery.Block, emit func(chunk) error) error {
	if b.Rows == 0 {
		return nil
	}
	size := 0
	for _, p := range b.Parts {
		size += len(p)
	}
	head := binary.AppendVarint(binary.AppendVarint(nil, b.Rows), int64(size))
	return emit(chunk{rows: b.Rows, parts: slices.Concat([][]byte{head}, b.Parts, [][]byte{e.sync}), progress: b.Progress, free: b.Free})
}

func (e blocks) end(func(chunk) error) error { return nil }
func (e blocks) close()                      {}
