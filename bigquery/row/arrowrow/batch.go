package arrowrow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Row is one row of a batch: the record that a Serializer takes.
type Row struct {
	Batch *Batch
	Index int
}

// Batch is a record batch taken apart. It keeps the memory of the batch in use, which must not change; it may be used from
// many goroutines.
type Batch struct {
	record  arrow.RecordBatch
	columns []vector
	rows    int
	plan    atomic.Pointer[plan] // of the serializer that made its last row
	asIs    atomic.Pointer[asIs] // for the serializer that was asked last
}

// ErrDamaged is found in the error of a batch whose parts do not fit together, as one that was read from a damaged file.
var ErrDamaged = errors.New("Arrow batch is damaged")

// NewBatch takes a record batch apart. It checks that every offset, length and index of it lies within its memory, so that
// its rows can be read without doing so again. It retains the batch until Release.
func NewBatch(b arrow.RecordBatch) (*Batch, error) {
	if b == nil {
		return nil, errors.New("Arrow batch is missing")
	}
	out := &Batch{record: b, rows: int(b.NumRows()), columns: make([]vector, b.NumCols())}
	for i, c := range b.Columns() {
		v, err := take(c.Data(), out.rows)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", b.ColumnName(i), err)
		}
		out.columns[i] = *v
	}
	b.Retain()
	return out, nil
}

// Len is the number of rows.
func (b *Batch) Len() int { return b.rows }

// Schema is the schema of the batch.
func (b *Batch) Schema() *arrow.Schema { return b.record.Schema() }

// Record is the record batch.
func (b *Batch) Record() arrow.RecordBatch { return b.record }

// Release gives the memory of the batch back. Its rows must not be used any more.
func (b *Batch) Release() { b.record.Release() }

// vector is an array taken apart. Values are counted from 0, wherever the array begins in its buffers.
type vector struct {
	valid    []byte // bitmap, nil when nothing is null
	offset   int    // of value 0 in buffers
	length   int
	data     []byte // values of a fixed width, or bits, or view headers, or a dictionary's indexes
	offsets  []byte // 32 or 64 bits each
	sizes    []byte // of list views
	bytes    []byte // of texts
	heap     [][]byte
	children []vector
	dict     *vector
	wide     bool // offsets have 64 bits
	index    load // how indexes of a dictionary lie in data
}

func (v *vector) null(i int) bool {
	if v.valid == nil {
		return false
	}
	i += v.offset
	return v.valid[i>>3]>>(i&7)&1 == 0
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

func content(b *memory.Buffer) []byte {
	if b == nil {
		return nil
	}
	return b.Bytes()
}

// take takes an array apart of which the first n values are used.
func take(d arrow.ArrayData, n int) (*vector, error) {
	v := &vector{offset: d.Offset(), length: d.Len()}
	if v.offset < 0 || v.length < n || n < 0 {
		return nil, damaged("it has %d values from %d on, expected %d", v.length, v.offset, n)
	}
	v.length = n
	if v.offset > maxValues-n {
		return nil, damaged("it begins at value %d", v.offset)
	}
	end := v.offset + n
	buffers := d.Buffers()
	t := d.DataType()
	if e, ok := t.(arrow.ExtensionType); ok {
		t = e.StorageType()
	}
	if want := bufferCount(t); len(buffers) < want {
		return nil, damaged("%s has %d buffers, expected %d", t, len(buffers), want)
	}
	if len(buffers) > 0 && d.NullN() != 0 {
		if v.valid = content(buffers[0]); len(v.valid) > 0 && len(v.valid) < (end+7)/8 {
			return nil, damaged("its validity has %d bytes for %d values", len(v.valid), end)
		}
		if len(v.valid) == 0 {
			v.valid = nil
		}
	}
	return v, v.take(t, d, buffers, end)
}

// maxValues is more values than an array in memory has.
const maxValues = 1 << 48

func bufferCount(t arrow.DataType) int {
	switch t.ID() {
	case arrow.NULL, arrow.SPARSE_UNION, arrow.DENSE_UNION, arrow.RUN_END_ENCODED:
		return 0
	case arrow.STRUCT, arrow.FIXED_SIZE_LIST:
		return 1
	case arrow.STRING, arrow.BINARY, arrow.LARGE_STRING, arrow.LARGE_BINARY, arrow.LIST_VIEW, arrow.LARGE_LIST_VIEW:
		return 3
	}
	return 2
}

// take fills in what is of the type; end values lie in the buffers.
func (v *vector) take(t arrow.DataType, d arrow.ArrayData, buffers []*memory.Buffer, end int) error {
	switch t := t.(type) {
	case *arrow.StringType, *arrow.BinaryType:
		return v.texts(buffers, end)
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		v.wide = true
		return v.texts(buffers, end)
	case *arrow.StringViewType, *arrow.BinaryViewType:
		return v.views(buffers, end)
	case *arrow.ListType, *arrow.MapType:
		return v.list(d, buffers, end)
	case *arrow.LargeListType:
		v.wide = true
		return v.list(d, buffers, end)
	case *arrow.ListViewType:
		return v.listViews(d, buffers, end)
	case *arrow.LargeListViewType:
		v.wide = true
		return v.listViews(d, buffers, end)
	case *arrow.FixedSizeListType:
		n := int(t.Len())
		if n < 0 || n > 0 && end > maxValues/n {
			return damaged("its lists have %d elements", n)
		}
		return v.child(d, end*n)
	case *arrow.StructType:
		return v.members(t, d, end)
	case *arrow.DictionaryType:
		return v.dictionary(t, d, buffers, end)
	case arrow.FixedWidthDataType:
		return v.fixed(buffers[1], t.BitWidth(), end)
	}
	return nil // a type without a column: plans refuse it
}

func (v *vector) fixed(b *memory.Buffer, bits, end int) error {
	v.data = content(b)
	if need := (end*bits + 7) / 8; v.length > 0 && len(v.data) < need {
		return damaged("its values have %d bytes, expected %d", len(v.data), need)
	}
	return nil
}

// position is offset i as it lies in the buffer, v.offset included by the caller.
func (v *vector) position(i int) int {
	if v.wide {
		return int(binary.LittleEndian.Uint64(v.offsets[i*8:]))
	}
	return int(int32(binary.LittleEndian.Uint32(v.offsets[i*4:])))
}

func (v *vector) width() int {
	if v.wide {
		return 8
	}
	return 4
}

// spans checks that the offsets of used values never fall and end within limit. An empty array needs no offsets.
func (v *vector) spans(b *memory.Buffer, end int) (last int, err error) {
	v.offsets = content(b)
	if v.length == 0 {
		return 0, nil
	}
	if len(v.offsets)/v.width() < end+1 {
		return 0, damaged("it has %d offsets, expected %d", len(v.offsets)/v.width(), end+1)
	}
	last = v.position(v.offset)
	if last < 0 {
		return 0, damaged("its offsets begin at %d", last)
	}
	for i := v.offset + 1; i <= end; i++ {
		next := v.position(i)
		if next < last {
			return 0, damaged("its offsets fall from %d to %d", last, next)
		}
		last = next
	}
	return last, nil
}

func (v *vector) texts(buffers []*memory.Buffer, end int) error {
	last, err := v.spans(buffers[1], end)
	if err != nil {
		return err
	}
	if v.bytes = content(buffers[2]); last > len(v.bytes) {
		return damaged("its offsets end at %d, and it has %d bytes", last, len(v.bytes))
	}
	return nil
}

// Layout of a view: a length, then 12 bytes in place, or a prefix, the number of a buffer and an offset there.
const (
	viewBytes  = 16
	viewInline = 12
)

func (v *vector) views(buffers []*memory.Buffer, end int) error {
	if err := v.fixed(buffers[1], viewBytes*8, end); err != nil {
		return err
	}
	for _, b := range buffers[2:] {
		v.heap = append(v.heap, content(b))
	}
	for i := range v.length {
		if v.null(i) {
			continue
		}
		h := v.data[(v.offset+i)*viewBytes:]
		n, buffer, at := int32(binary.LittleEndian.Uint32(h)), int32(binary.LittleEndian.Uint32(h[8:])), int32(binary.LittleEndian.Uint32(h[12:]))
		switch {
		case n < 0:
			return damaged("a view has the length %d", n)
		case n <= viewInline:
		case buffer < 0 || int(buffer) >= len(v.heap) || at < 0 || int(at)+int(n) > len(v.heap[buffer]):
			return damaged("a view lies outside its buffers")
		}
	}
	return nil
}

func (v *vector) view(i int) []byte {
	h := v.data[(v.offset+i)*viewBytes:]
	n := int(binary.LittleEndian.Uint32(h))
	if n <= viewInline {
		return h[4 : 4+n]
	}
	at := int(binary.LittleEndian.Uint32(h[12:]))
	return v.heap[binary.LittleEndian.Uint32(h[8:])][at : at+n]
}

// child takes the elements apart, of which n must be there.
func (v *vector) child(d arrow.ArrayData, n int) error {
	children := d.Children()
	if len(children) != 1 || children[0] == nil {
		return damaged("a list has %d children, expected 1", len(children))
	}
	c, err := take(children[0], n)
	if err != nil {
		return err
	}
	v.children = []vector{*c}
	return nil
}

func (v *vector) list(d arrow.ArrayData, buffers []*memory.Buffer, end int) error {
	last, err := v.spans(buffers[1], end)
	if err != nil {
		return err
	}
	return v.child(d, last)
}

func (v *vector) listViews(d arrow.ArrayData, buffers []*memory.Buffer, end int) error {
	v.offsets, v.sizes = content(buffers[1]), content(buffers[2])
	if v.length > 0 && min(len(v.offsets), len(v.sizes))/v.width() < end {
		return damaged("it has too few offsets or sizes for %d lists", end)
	}
	last := 0
	for i := range v.length {
		if v.null(i) {
			continue
		}
		from, n := v.position(v.offset+i), v.sizeAt(v.offset+i)
		if from < 0 || n < 0 || from > maxValues || n > maxValues {
			return damaged("a list begins at %d and has %d elements", from, n)
		}
		last = max(last, from+n)
	}
	return v.child(d, last)
}

func (v *vector) sizeAt(i int) int {
	if v.wide {
		return int(binary.LittleEndian.Uint64(v.sizes[i*8:]))
	}
	return int(int32(binary.LittleEndian.Uint32(v.sizes[i*4:])))
}

func (v *vector) members(t *arrow.StructType, d arrow.ArrayData, end int) error {
	children := d.Children()
	if len(children) != t.NumFields() {
		return damaged("a struct has %d children, expected %d", len(children), t.NumFields())
	}
	v.children = make([]vector, len(children))
	for i, c := range children {
		m, err := take(c, end)
		if err != nil {
			return fmt.Errorf("%s: %w", t.Field(i).Name, err)
		}
		v.children[i] = *m
	}
	return nil
}

func (v *vector) dictionary(t *arrow.DictionaryType, d arrow.ArrayData, buffers []*memory.Buffer, end int) error {
	index, ok := t.IndexType.(arrow.FixedWidthDataType)
	values, _ := d.Dictionary().(*array.Data)
	if !ok || values == nil {
		return damaged("a dictionary is missing")
	}
	if err := v.fixed(buffers[1], index.BitWidth(), end); err != nil {
		return err
	}
	dict, err := take(values, values.Len())
	if err != nil {
		return err
	}
	v.dict, v.index = dict, loads[t.IndexType.ID()]
	l := v.index
	if l == loadNone || l > loadUint64 {
		return damaged("a dictionary is indexed by %s", t.IndexType)
	}
	for i := range v.length {
		if n, err := v.integer(l, i); !v.null(i) && (err != nil || n < 0 || n >= int64(dict.length)) {
			return damaged("a dictionary of %d values is asked for value %d", dict.length, n)
		}
	}
	return nil
}
