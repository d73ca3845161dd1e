package arrowipc

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// MaxRows is the most rows a batch may have: as many as the smallest rows of protocol buffers, of two bytes, make in the
// largest request. A few bytes of Arrow can declare any number.
const MaxRows = 20 << 20 / 2

// Batch is a decoded record batch. It shares memory with the bytes it was read from.
type Batch struct {
	Rows    int
	Columns []*Column
}

// Column is the values of one field, at any depth.
type Column struct {
	Field *Field
	Len   int
	// Values holds numbers, bits, or the bytes of text one behind the other.
	Values []byte
	// Fields are the elements of a List, or the members of a Struct.
	Fields  []*Column
	valid   []byte // nil where there are no nulls
	offsets []byte // Len+1 of them, of a List, Utf8 or Binary
	width   int    // bytes of a value, of the kinds of fixed width
}

// Rows is how many rows a record batch message says it has, at most MaxRows+1. Nothing behind its metadata is looked at.
func Rows(b []byte) (int64, error) {
	m, err := parse(b, headerRecordBatch)
	if err != nil {
		return 0, err
	}
	rows := m.header.int64(0)
	if rows < 0 {
		return 0, fmt.Errorf("the record batch says it has %d rows", rows)
	}
	return min(rows, MaxRows+1), nil
}

// Decode reads a record batch message of a schema, all of whose fields must be of other kinds than Other.
func Decode(b []byte, s *Schema) (*Batch, error) {
	m, err := parse(b, headerRecordBatch)
	if err != nil {
		return nil, err
	}
	r, rows, err := newBatchReader(m)
	if err != nil {
		return nil, err
	}
	batch := &Batch{Rows: rows, Columns: make([]*Column, len(s.Fields))}
	for i, f := range s.Fields {
		if batch.Columns[i], err = r.column(f, rows, false); err != nil {
			return nil, err
		}
	}
	if r.nodes != 0 || r.buffers != 0 {
		return nil, fmt.Errorf("the record batch has %d columns and %d buffers more than the writer schema says", r.nodes, r.buffers)
	}
	return batch, nil
}

// batchReader walks the lists of columns and buffers that lie flat in a record batch.
type batchReader struct {
	meta            *flatbuffer
	body            []byte
	nextNode, nodes int // place of the next, and how many are left
	next, buffers   int
	end             int64 // of the last buffer in the body
	inflate         *inflater
}

func newBatchReader(m *message) (*batchReader, int, error) {
	r := &batchReader{meta: m.meta, body: m.body}
	rows := m.header.int64(0)
	r.nextNode, r.nodes = m.header.vector(1, 16)
	r.next, r.buffers = m.header.vector(2, 16)
	compression, compressed := m.header.sub(3)
	codec, method := compression.byte(0, 0), compression.byte(1, 0)
	switch {
	case m.meta.broken:
		return nil, 0, fmt.Errorf("the record batch's metadata is malformed")
	case rows < 0 || rows > MaxRows:
		return nil, 0, fmt.Errorf("the record batch says it has %d rows: at most %d are allowed", rows, MaxRows)
	case !compressed:
		return r, int(rows), nil
	case method != 0 || codec > codecZstd:
		return nil, 0, fmt.Errorf("the record batch is compressed by method %d and codec %d, expected buffers compressed by LZ4_FRAME or ZSTD", method, codec)
	}
	r.inflate = &inflater{codec: codec}
	return r, int(rows), nil
}

// column reads one column and those below it. A list's element may be longer than what its lists take up.
func (r *batchReader) column(f *Field, want int, longer bool) (*Column, error) {
	if r.nodes == 0 {
		return nil, fmt.Errorf("the record batch has fewer columns than the writer schema: %s is missing", f.Name)
	}
	length, nulls := r.meta.int64(r.nextNode), r.meta.int64(r.nextNode+8)
	r.nextNode, r.nodes = r.nextNode+16, r.nodes-1
	if length < int64(want) || length > int64(want) && !longer || length > 1<<31-1 || nulls < 0 || nulls > length {
		return nil, fmt.Errorf("column %s has %d values and %d nulls by its own account, expected %d values", f.Name, length, nulls, want)
	}
	c := &Column{Field: f, Len: int(length)}
	if err := r.validity(c, int(nulls)); err != nil {
		return nil, err
	}
	return c, r.values(c)
}

func (r *batchReader) validity(c *Column, nulls int) error {
	b, err := r.buffer(c.Field)
	if err != nil || nulls == 0 {
		return err
	}
	if len(b) < bytesOf(c.Len) {
		return c.short("validity", len(b), bytesOf(c.Len))
	}
	if n := c.Len - ones(b, c.Len); n != nulls {
		return fmt.Errorf("column %s has %d nulls by its own account and %d by its validity buffer", c.Field.Name, nulls, n)
	}
	c.valid = b
	return nil
}

func bytesOf(bits int) int { return (bits + 7) / 8 }

func ones(b []byte, n int) (count int) {
	for _, x := range b[:n/8] {
		count += bits.OnesCount8(x)
	}
	if rest := n % 8; rest > 0 {
		count += bits.OnesCount8(b[n/8] & (1<<rest - 1))
	}
	return count
}

func (c *Column) short(what string, has, want int) error {
	return fmt.Errorf("the %s buffer of column %s has %d bytes, expected at least %d", what, c.Field.Name, has, want)
}

var widths = map[Kind]int{Date: 4, Time: 8, Timestamp: 8, YearMonth: 4, DayTime: 8, MonthDayNano: 16}

// values reads what follows the validity buffer.
func (r *batchReader) values(c *Column) error {
	switch c.Field.Kind {
	case Struct:
		return r.members(c)
	case List:
		last, err := r.ends(c)
		if err != nil {
			return err
		}
		element, err := r.column(c.Field.Fields[0], last, true)
		c.Fields = []*Column{element}
		return err
	case Utf8, Binary:
		last, err := r.ends(c)
		if err != nil {
			return err
		}
		return r.fixed(c, last)
	case Bool:
		return r.fixed(c, bytesOf(c.Len))
	case Other:
		return fmt.Errorf("column %s is of Arrow type %s, which is not supported", c.Field.Name, c.Field.Type)
	}
	c.width = c.Field.Bits / 8
	if w, ok := widths[c.Field.Kind]; ok {
		c.width = w
	}
	return r.fixed(c, c.Len*c.width)
}

func (r *batchReader) members(c *Column) error {
	c.Fields = make([]*Column, len(c.Field.Fields))
	for i, f := range c.Field.Fields {
		var err error
		if c.Fields[i], err = r.column(f, c.Len, false); err != nil {
			return err
		}
	}
	return nil
}

func (r *batchReader) fixed(c *Column, size int) error {
	b, err := r.buffer(c.Field)
	if err != nil {
		return err
	}
	if len(b) < size {
		return c.short("data", len(b), size)
	}
	c.Values = b
	return nil
}

// ends reads the offsets of a column of variable width and answers the last.
func (r *batchReader) ends(c *Column) (last int, err error) {
	c.offsets, err = r.buffer(c.Field)
	if err != nil || c.Len == 0 { // without values, writers leave the one offset out
		return 0, err
	}
	if want := 4 * (c.Len + 1); len(c.offsets) < want {
		return 0, c.short("offset", len(c.offsets), want)
	}
	for i := range c.Len + 1 {
		at := c.offset(i)
		if at < last {
			return 0, fmt.Errorf("offset %d of column %s is %d, behind one of %d", i, c.Field.Name, at, last)
		}
		last = at
	}
	return last, nil
}

// buffer is the next buffer's bytes.
func (r *batchReader) buffer(f *Field) ([]byte, error) {
	if r.buffers == 0 {
		return nil, fmt.Errorf("the record batch has too few buffers for column %s", f.Name)
	}
	offset, length := r.meta.int64(r.next), r.meta.int64(r.next+8)
	r.next, r.buffers = r.next+16, r.buffers-1
	size := int64(len(r.body))
	switch {
	case length == 0:
		return nil, nil
	case offset < 0 || length < 0 || length > size || offset > size-length:
		return nil, fmt.Errorf("a buffer of column %s lies at %d+%d in a body of %d bytes", f.Name, offset, length, size)
	case offset < r.end:
		return nil, fmt.Errorf("a buffer of column %s lies at %d, in or before the buffer that ends at %d", f.Name, offset, r.end)
	}
	r.end = offset + length
	b := r.body[offset:r.end]
	if r.inflate == nil {
		return b, nil
	}
	b, err := r.inflate.buffer(b)
	if err != nil {
		return nil, fmt.Errorf("a buffer of column %s: %w", f.Name, err)
	}
	return b, nil
}

func (c *Column) offset(i int) int { return int(int32(binary.LittleEndian.Uint32(c.offsets[4*i:]))) }
