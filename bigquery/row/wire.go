package row

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// WireType is the protobuf wire type of one value of a column.
func WireType(f *table.Field) protowire.Type {
	switch f.Type {
	case table.Bool, table.Int64, table.Date, table.Time, table.DateTime, table.Timestamp:
		return protowire.VarintType
	case table.Float64:
		return protowire.Fixed64Type
	}
	return protowire.BytesType
}

// Packed says whether the values of a repeated column are written in packed form: numbers and booleans are.
func Packed(f *table.Field) bool { return WireType(f) != protowire.BytesType }

// Tag is what goes before a value of column i: before each value, or before the whole packed list of a repeated column
// of numbers.
func Tag(i int, f *table.Field) []byte {
	t := WireType(f)
	if f.Mode == table.Repeated && Packed(f) {
		t = protowire.BytesType
	}
	return protowire.AppendTag(nil, FieldNumber(i), t)
}

// AppendInt appends the value of an INT64, DATE, TIME, DATETIME or TIMESTAMP column: the number, days, packed fields, packed
// fields, and microseconds.
func AppendInt(buf []byte, v int64) []byte {
	if uint64(v) < 0x80 {
		return append(buf, byte(v))
	}
	return binary.AppendUvarint(buf, uint64(v))
}

// AppendBool appends the value of a BOOL column.
func AppendBool(buf []byte, v bool) []byte {
	if v {
		return append(buf, 1)
	}
	return append(buf, 0)
}

// AppendFloat appends the value of a FLOAT64 column.
func AppendFloat(buf []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(buf, math.Float64bits(v))
}

// AppendText appends the value of a column of text or bytes, with its length. It does not check that text is UTF-8.
func AppendText[S ~string | ~[]byte](buf []byte, s S) []byte {
	return append(AppendInt(buf, int64(len(s))), s...)
}

// BeginLength makes room for the length of what is appended next and returns where that begins, for EndLength. It serves
// STRUCTs, packed lists, and text whose length is not known in advance.
func BeginLength(buf []byte) (longer []byte, start int) {
	return append(buf, 0), len(buf) + 1
}

// EndLength writes the length of what was appended since BeginLength returned start. Lengths of 128 bytes and more need
// more room than was made, so what was appended moves.
func EndLength(buf []byte, start int) []byte {
	n := len(buf) - start
	if n < 0x80 {
		buf[start-1] = byte(n)
		return buf
	}
	var length [binary.MaxVarintLen64]byte
	more := binary.PutUvarint(length[:], uint64(n)) - 1
	buf = append(buf, length[:more]...)
	copy(buf[start+more:], buf[start:start+n])
	copy(buf[start-1:], length[:more+1])
	return buf
}
