package export

import (
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// bitsOf is how much rows from..to of a batch take in Arrow's layout. It is the sum of what each of the rows takes, so that it tells
// the same however the rows were cut into batches.
func bitsOf(batch arrow.RecordBatch, from, to int64) (bits int64) {
	for _, c := range batch.Columns() {
		bits += arrayBits(c, from, to)
	}
	return bits
}

func arrayBits(a arrow.Array, from, to int64) int64 {
	rows := to - from
	if rows == 0 {
		return 0
	}
	switch a := a.(type) {
	case array.BinaryLike:
		last := int(to - 1)
		return rows*32 + 8*(a.ValueOffset64(last)+int64(a.ValueLen(last))-a.ValueOffset64(int(from)))
	case array.ListLike:
		first, _ := a.ValueOffsets(int(from))
		_, last := a.ValueOffsets(int(to - 1))
		return rows*32 + arrayBits(a.ListValues(), first, last)
	case *array.Struct:
		bits := rows
		for i := range a.NumField() {
			bits += arrayBits(a.Field(i), from, to)
		}
		return bits
	case array.ExtensionArray:
		return arrayBits(a.Storage(), from, to)
	}
	if w, ok := a.DataType().(arrow.FixedWidthDataType); ok {
		return rows * int64(w.BitWidth())
	}
	return rows * 64
}

// rowsWithin is how many rows from..to of a batch it takes to have that many bits, at least one, or all of them.
func rowsWithin(batch arrow.RecordBatch, from, to, bits int64) (rows int64, full bool) {
	if bitsOf(batch, from, to) < bits {
		return to - from, false
	}
	n := sort.Search(int(to-from), func(n int) bool { return bitsOf(batch, from, from+int64(n)+1) >= bits })
	return int64(n) + 1, true
}
