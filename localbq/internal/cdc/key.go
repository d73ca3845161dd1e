package cdc

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// AppendKey appends the key that the columns of a batch make of one row. Two keys are equal exactly when all values are; NULL
// equals NULL only. The form does not depend on the precision and scale that a decimal column happens to have.
func AppendKey(buf []byte, columns []arrow.Array, row int) []byte {
	for _, a := range columns {
		if a.IsNull(row) {
			buf = append(buf, 0)
			continue
		}
		buf = appendValue(append(buf, 1), a, row)
	}
	return buf
}

func appendValue(buf []byte, a arrow.Array, row int) []byte {
	switch a := a.(type) {
	case *array.Boolean:
		if a.Value(row) {
			return append(buf, 1)
		}
		return append(buf, 0)
	case *array.Int64:
		return appendInt(buf, a.Value(row))
	case *array.Date32:
		return appendInt(buf, int64(a.Value(row)))
	case *array.Time64:
		return appendInt(buf, int64(a.Value(row)))
	case *array.Timestamp:
		return appendInt(buf, int64(a.Value(row)))
	case *array.Float64:
		return appendFloat(buf, a.Value(row))
	case *array.String:
		return appendText(buf, a.Value(row))
	case *array.Binary:
		return appendText(buf, a.ValueString(row))
	case *array.Decimal128:
		return appendDecimal(buf, a.Value(row).BigInt(), a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Decimal256:
		return appendDecimal(buf, a.Value(row).BigInt(), a.DataType().(*arrow.Decimal256Type).Scale)
	}
	panic(fmt.Sprintf("cdc: a key of type %s", a.DataType())) // schema.Definition.Check lets none through
}

func appendInt(buf []byte, v int64) []byte { return binary.BigEndian.AppendUint64(buf, uint64(v)) }

// appendFloat makes zeros equal, and NaNs.
func appendFloat(buf []byte, v float64) []byte {
	switch {
	case v == 0:
		v = 0
	case math.IsNaN(v):
		v = math.NaN()
	}
	return binary.BigEndian.AppendUint64(buf, math.Float64bits(v))
}

func appendText(buf []byte, v string) []byte {
	return append(binary.AppendUvarint(buf, uint64(len(v))), v...)
}

// appendDecimal writes the number without zeros behind the point: sign, scale and magnitude.
func appendDecimal(buf []byte, unscaled *big.Int, scale int32) []byte {
	v, ten, rest := new(big.Int).Abs(unscaled), big.NewInt(10), new(big.Int)
	for scale > 0 {
		quotient := new(big.Int)
		if quotient.QuoRem(v, ten, rest); rest.Sign() != 0 {
			break
		}
		v, scale = quotient, scale-1
	}
	buf = append(buf, byte(unscaled.Sign()+1), byte(scale))
	return appendText(buf, string(v.Bytes()))
}
