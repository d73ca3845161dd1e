//go:build cgo

package native

import (
	"unsafe"

	"github.com/duckdb/duckdb-go/v2/mapping"
)

// Vector is a column of values in DuckDB's memory. It is valid during the call that got it.
type Vector struct {
	Type     Type
	raw      mapping.Vector
	data     unsafe.Pointer
	validity unsafe.Pointer // nil where every value is there
}

func newVector(raw mapping.Vector, t Type) Vector {
	return Vector{Type: t, raw: raw, data: mapping.VectorGetData(raw), validity: mapping.VectorGetValidity(raw)}
}

// Null reports whether value i is NULL.
func (v *Vector) Null(i int) bool {
	if v.validity == nil {
		return false
	}
	return *(*uint64)(unsafe.Add(v.validity, i/64*8))&(1<<(i%64)) == 0
}

// HasNulls reports whether any value may be NULL.
func (v *Vector) HasNulls() bool { return v.validity != nil }

// SetNull makes value i NULL.
func (v *Vector) SetNull(i int) {
	if v.validity == nil {
		mapping.VectorEnsureValidityWritable(v.raw)
		v.validity = mapping.VectorGetValidity(v.raw)
	}
	*(*uint64)(unsafe.Add(v.validity, i/64*8)) &^= 1 << (i % 64)
	for k := range v.Type.Fields {
		member := v.Member(k)
		member.SetNull(i)
	}
}

// Values are the first n values of a type of fixed size. T has the layout of DuckDB's type.
func Values[T any](v *Vector, n int) []T { return unsafe.Slice((*T)(v.data), n) }

// text is DuckDB's string: up to 12 bytes lie in place, longer ones elsewhere.
type text struct {
	length uint32
	inline [4]byte
	rest   unsafe.Pointer
}

const maxInline = 12

// Bytes is the text or blob i. It belongs to DuckDB.
func (v *Vector) Bytes(i int) []byte {
	t := (*text)(unsafe.Add(v.data, i*int(unsafe.Sizeof(text{}))))
	if t.length <= maxInline {
		return unsafe.Slice(&t.inline[0], t.length)
	}
	return unsafe.Slice((*byte)(t.rest), t.length)
}

// SetBytes copies a text or blob to place i.
func (v *Vector) SetBytes(i int, b []byte) { assignString(v.raw, i, b) }

// Span is a list: its elements lie from Offset in the vector of elements.
type Span struct{ Offset, Length uint64 }

// Elements are the elements of all lists of the vector, and how many they are.
func (v *Vector) Elements() (Vector, int) {
	return newVector(mapping.ListVectorGetChild(v.raw), *v.Type.Elem), int(mapping.ListVectorGetSize(v.raw))
}

// MakeElements makes room for n elements and answers their vector.
func (v *Vector) MakeElements(n int) Vector {
	mapping.ListVectorReserve(v.raw, mapping.IdxT(n))
	mapping.ListVectorSetSize(v.raw, mapping.IdxT(n))
	return newVector(mapping.ListVectorGetChild(v.raw), *v.Type.Elem)
}

// Member is the vector of a struct's member.
func (v *Vector) Member(i int) Vector {
	return newVector(mapping.StructVectorGetChild(v.raw, mapping.IdxT(i)), v.Type.Fields[i])
}

// Int128 is DuckDB's integer of 128 bits.
type Int128 struct {
	Low  uint64
	High int64
}

// Period is DuckDB's interval.
type Period struct {
	Months, Days int32
	Micros       int64
}
