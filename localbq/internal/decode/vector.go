package decode

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// vector is the values of one column of the batch that is being made.
type vector interface {
	// null appends what stands for no value: NULL, or an empty list. It also fills the place of a value that was refused.
	null()
	// take hands the values over as Arrow data of the type and starts afresh.
	take(t arrow.DataType) arrow.ArrayData
	// reset forgets the values and keeps the memory.
	reset()
}

// validity is Arrow's validity bitmap, made when the first NULL comes.
type validity struct {
	n     int // values so far
	nulls int
	bits  []byte // nil while there are no nulls
}

func (v *validity) valid() {
	if v.bits != nil {
		if v.n>>3 == len(v.bits) {
			v.bits = append(v.bits, 0)
		}
		v.bits[v.n>>3] |= 1 << (v.n & 7)
	}
	v.n++
}

func (v *validity) missing() {
	if v.bits == nil {
		v.bits = make([]byte, v.n>>3+1, v.n>>3+16)
		for i := range v.n >> 3 {
			v.bits[i] = 0xff
		}
		v.bits[v.n>>3] = 1<<(v.n&7) - 1
	} else if v.n>>3 == len(v.bits) {
		v.bits = append(v.bits, 0)
	}
	v.n++
	v.nulls++
}

// buffer hands the bitmap over, nil standing for no nulls.
func (v *validity) buffer() *memory.Buffer {
	if v.bits == nil {
		return nil
	}
	return memory.NewBufferBytes(v.bits)
}

func (v *validity) clear() { *v = validity{} }

// number is the types of fixed width.
type number interface {
	int32 | int64 | float64 | decimal128.Num | decimal256.Num
}

// fixed is a vector of numbers.
type fixed[T number] struct {
	validity
	values []T
	bytes  func([]T) []byte // the values' memory
}

func (v *fixed[T]) append(value T) {
	v.values = append(v.values, value)
	v.valid()
}

func (v *fixed[T]) null() {
	var zero T
	v.values = append(v.values, zero)
	v.missing()
}

func (v *fixed[T]) take(t arrow.DataType) arrow.ArrayData {
	values := memory.NewBufferBytes(v.bytes(v.values))
	d := array.NewData(t, v.n, []*memory.Buffer{v.buffer(), values}, nil, v.nulls, 0)
	v.values = make([]T, 0, len(v.values)) // the next batch is likely of the same size
	v.clear()
	return d
}

func (v *fixed[T]) reset() {
	v.values = v.values[:0]
	v.clear()
}

func newInt32() *fixed[int32]     { return &fixed[int32]{bytes: arrow.Int32Traits.CastToBytes} }
func newInt64() *fixed[int64]     { return &fixed[int64]{bytes: arrow.Int64Traits.CastToBytes} }
func newFloat64() *fixed[float64] { return &fixed[float64]{bytes: arrow.Float64Traits.CastToBytes} }
func newDecimal128() *fixed[decimal128.Num] {
	return &fixed[decimal128.Num]{bytes: arrow.Decimal128Traits.CastToBytes}
}
func newDecimal256() *fixed[decimal256.Num] {
	return &fixed[decimal256.Num]{bytes: arrow.Decimal256Traits.CastToBytes}
}

// bools is a vector of bits.
type bools struct {
	validity
	values []byte
}

func (v *bools) append(value bool) {
	v.grow()
	if value {
		v.values[v.n>>3] |= 1 << (v.n & 7)
	}
	v.valid()
}

func (v *bools) grow() {
	if v.n>>3 == len(v.values) {
		v.values = append(v.values, 0)
	}
}

func (v *bools) null() {
	v.grow()
	v.missing()
}

func (v *bools) take(t arrow.DataType) arrow.ArrayData {
	d := array.NewData(t, v.n, []*memory.Buffer{v.buffer(), memory.NewBufferBytes(v.values)}, nil, v.nulls, 0)
	v.values = make([]byte, 0, len(v.values))
	v.clear()
	return d
}

func (v *bools) reset() {
	v.values = v.values[:0]
	v.clear()
}

// text is a vector of strings or bytes.
type text struct {
	validity
	ends []int32 // where each value ends in data
	data []byte
}

func (v *text) append(value []byte) {
	v.data = append(v.data, value...)
	v.end()
}

// end closes a value whose bytes have been appended to data.
func (v *text) end() {
	v.ends = append(v.ends, int32(len(v.data)))
	v.valid()
}

func (v *text) null() {
	v.ends = append(v.ends, int32(len(v.data)))
	v.missing()
}

func (v *text) take(t arrow.DataType) arrow.ArrayData {
	buffers := []*memory.Buffer{v.buffer(), offsets(v.ends), memory.NewBufferBytes(v.data)}
	d := array.NewData(t, v.n, buffers, nil, v.nulls, 0)
	v.ends, v.data = make([]int32, 0, len(v.ends)), make([]byte, 0, len(v.data))
	v.clear()
	return d
}

// offsets is Arrow's form of ends, with the zero in front.
func offsets(ends []int32) *memory.Buffer {
	all := make([]int32, 1, len(ends)+1)
	return memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(append(all, ends...)))
}

func (v *text) reset() {
	v.ends, v.data = v.ends[:0], v.data[:0]
	v.clear()
}

// group is a vector of structs, the structs of RANGE and INTERVAL included.
type group struct {
	validity
	members []vector
}

func (v *group) null() {
	for _, m := range v.members {
		m.null()
	}
	v.missing()
}

func (v *group) take(t arrow.DataType) arrow.ArrayData {
	fields := t.(*arrow.StructType).Fields()
	children := make([]arrow.ArrayData, len(v.members))
	for i, m := range v.members {
		children[i] = m.take(fields[i].Type)
	}
	d := array.NewData(t, v.n, []*memory.Buffer{v.buffer()}, children, v.nulls, 0)
	v.clear()
	return d
}

func (v *group) reset() {
	for _, m := range v.members {
		m.reset()
	}
	v.clear()
}

// list is a vector of lists. Its elements are appended to the element vector as they come; end closes a list.
type list struct {
	ends    []int32
	element vector
	open    int32 // elements appended so far
}

func (v *list) end() { v.ends = append(v.ends, v.open) }

// null is the empty list: a REPEATED column has no NULL.
func (v *list) null() { v.end() }

func (v *list) take(t arrow.DataType) arrow.ArrayData {
	child := v.element.take(t.(*arrow.ListType).Elem())
	d := array.NewData(t, len(v.ends), []*memory.Buffer{nil, offsets(v.ends)}, []arrow.ArrayData{child}, 0, 0)
	v.ends, v.open = make([]int32, 0, len(v.ends)), 0
	return d
}

func (v *list) reset() {
	v.element.reset()
	v.ends, v.open = v.ends[:0], 0
}
