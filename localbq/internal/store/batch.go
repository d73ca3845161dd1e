package store

import (
	"encoding/binary"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// A batch on disk is its number of rows and its columns in the order of the schema, which the reader knows. A column is its
// length, its nulls, its buffers (length plus one, zero standing for no buffer, then the bytes at a multiple of eight) and
// its children. Numbers are uvarints, integers of buffers little endian. The reader's arrays share memory with the payload.

// appendBatch encodes a batch. The buffer must begin at a multiple of eight in the payload.
func appendBatch(buf []byte, b arrow.RecordBatch) []byte {
	if !tightBatch(b) {
		b = Concatenate([]arrow.RecordBatch{b})
	}
	buf = binary.AppendUvarint(buf, uint64(b.NumRows()))
	for _, column := range b.Columns() {
		buf = appendData(buf, column.Data())
	}
	return pad(buf)
}

func appendData(buf []byte, d arrow.ArrayData) []byte {
	buf = binary.AppendUvarint(buf, uint64(d.Len()))
	buf = binary.AppendUvarint(buf, nullCount(d))
	for _, b := range d.Buffers() {
		if b == nil {
			buf = append(buf, 0)
			continue
		}
		buf = pad(binary.AppendUvarint(buf, uint64(b.Len())+1))
		buf = append(buf, b.Bytes()...)
	}
	for _, child := range d.Children() {
		buf = appendData(buf, child)
	}
	return buf
}

// nullCount counts the nulls where slicing has left that open.
func nullCount(d arrow.ArrayData) uint64 {
	if n := d.NullN(); n >= 0 {
		return uint64(n)
	}
	return uint64(array.MakeFromData(d).NullN())
}

// tightBatch reports whether the buffers hold the batch's rows and nothing else.
func tightBatch(b arrow.RecordBatch) bool {
	for _, column := range b.Columns() {
		if !tight(column.Data(), int(b.NumRows())) {
			return false
		}
	}
	return true
}

func tight(d arrow.ArrayData, rows int) bool {
	if d.Offset() != 0 || d.Len() != rows || d.NullN() < 0 {
		return false
	}
	buffers := d.Buffers()
	switch t := d.DataType().(type) {
	case *arrow.StructType:
		for _, child := range d.Children() {
			if !tight(child, rows) {
				return false
			}
		}
		return true
	case *arrow.ListType:
		n, ok := lastOffset(buffers[1], rows)
		return ok && tight(d.Children()[0], n)
	case *arrow.StringType, *arrow.BinaryType:
		n, ok := lastOffset(buffers[1], rows)
		return ok && (buffers[2] == nil && n == 0 || buffers[2] != nil && buffers[2].Len() == n)
	case arrow.FixedWidthDataType:
		const slack = 64 // builders round up
		return buffers[1] == nil && rows == 0 || buffers[1] != nil && buffers[1].Len() <= (rows*t.BitWidth()+7)/8+slack
	}
	return false
}

// lastOffset reads the end of the last of n values.
func lastOffset(b *memory.Buffer, n int) (int, bool) {
	if b == nil || b.Len() < 4*(n+1) {
		return 0, b == nil && n == 0
	}
	offsets := arrow.Int32Traits.CastFromBytes(b.Bytes())
	return int(offsets[n]), offsets[0] == 0 && b.Len() <= 4*(n+1)+64
}

var errBatch = errors.New("encoded batch is damaged")

// batchReader decodes batches from a payload.
type batchReader struct {
	payload []byte
	at      int
	failed  bool
}

// batch decodes the next batch of that schema.
func (r *batchReader) batch(s *arrow.Schema) (arrow.RecordBatch, error) {
	rows := int64(r.uvarint())
	columns := make([]arrow.Array, s.NumFields())
	for i := range columns {
		d := r.data(s.Field(i).Type)
		if r.failed || int64(d.Len()) != rows || !wellFormed(d) {
			return nil, errBatch
		}
		columns[i] = array.MakeFromData(d)
	}
	r.align()
	if r.failed || rows > 0 && len(columns) == 0 { // of rows without columns a few bytes could make any number
		return nil, errBatch
	}
	return array.NewRecordBatch(s, columns, rows), nil
}

// wellFormed checks what Arrow takes for granted: buffers of sufficient length and offsets that ascend within them.
func wellFormed(d arrow.ArrayData) bool {
	n, buffers := d.Len(), d.Buffers()
	bitmap := buffers[0]
	if d.NullN() > n || bitmap == nil && d.NullN() > 0 || bitmap != nil && bitmap.Len() < (n+7)/8 {
		return false
	}
	switch t := d.DataType().(type) {
	case *arrow.StructType:
		for _, child := range d.Children() {
			if child.Len() != n || !wellFormed(child) {
				return false
			}
		}
		return true
	case *arrow.ListType:
		child := d.Children()[0]
		return ascending(buffers[1], n, child.Len()) && wellFormed(child)
	case *arrow.StringType, *arrow.BinaryType:
		return ascending(buffers[1], n, bufferLen(buffers[2]))
	case arrow.FixedWidthDataType:
		return bufferLen(buffers[1]) >= (n*t.BitWidth()+7)/8
	}
	return false
}

func ascending(b *memory.Buffer, n, limit int) bool {
	if n == 0 {
		return true
	}
	if bufferLen(b) < 4*(n+1) {
		return false
	}
	last := int32(0)
	for _, offset := range arrow.Int32Traits.CastFromBytes(b.Bytes())[:n+1] {
		if offset < last {
			return false
		}
		last = offset
	}
	return int(last) <= limit
}

func bufferLen(b *memory.Buffer) int {
	if b == nil {
		return 0
	}
	return b.Len()
}

func (r *batchReader) data(t arrow.DataType) arrow.ArrayData {
	length, nulls := r.uvarint(), r.uvarint()
	buffers := make([]*memory.Buffer, len(t.Layout().Buffers))
	for i := range buffers {
		buffers[i] = r.buffer()
	}
	var children []arrow.ArrayData
	if nested, ok := t.(arrow.NestedType); ok {
		for _, f := range nested.Fields() {
			if r.failed {
				break
			}
			children = append(children, r.data(f.Type))
		}
	}
	return array.NewData(t, int(length), buffers, children, int(nulls), 0)
}

func (r *batchReader) buffer() *memory.Buffer {
	n := r.uvarint()
	if n == 0 || r.failed {
		return nil
	}
	r.align()
	n--
	if n > uint64(len(r.payload)-r.at) {
		r.failed = true
		return nil
	}
	b := memory.NewBufferBytes(r.payload[r.at : r.at+int(n) : r.at+int(n)])
	r.at += int(n)
	return b
}

func (r *batchReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.payload[r.at:])
	if n <= 0 || v > maxFrame {
		r.failed = true
		return 0
	}
	r.at += n
	return v
}

func (r *batchReader) align() {
	r.at = min((r.at+7)/8*8, len(r.payload))
}
