//go:build cgo

package native

import (
	"fmt"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/duckdb/duckdb-go/v2/mapping"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/bignumeric"
)

// fill copies values from..to of an array to the start of a vector.
func fill(v *Vector, a arrow.Array, from, to int) error {
	n := to - from
	if a.NullN() > 0 {
		for i := range n {
			if a.IsNull(from + i) {
				v.SetNull(i)
			}
		}
	}
	switch a := a.(type) {
	case *array.Boolean:
		out := Values[bool](v, n)
		for i := range out {
			out[i] = a.Value(from + i)
		}
	case *array.Int64:
		copy(Values[int64](v, n), a.Int64Values()[from:to])
	case *array.Int32:
		copy(Values[int32](v, n), a.Int32Values()[from:to])
	case *array.Float64:
		copy(Values[float64](v, n), a.Float64Values()[from:to])
	case *array.Date32:
		copy(Values[arrow.Date32](v, n), a.Date32Values()[from:to])
	case *array.Time64:
		copy(Values[arrow.Time64](v, n), a.Time64Values()[from:to])
	case *array.Timestamp:
		copy(Values[arrow.Timestamp](v, n), a.TimestampValues()[from:to])
	case *array.Decimal128:
		fillDecimal(v, a, from, n)
	case *array.Decimal256:
		return fillBigNumeric(v, a, from, n)
	case *array.String:
		fillTexts(v, a, a.ValueOffsets, from, to)
	case *array.Binary:
		fillTexts(v, a, a.ValueOffsets, from, to)
	case *array.Struct:
		return fillStruct(v, a, from, to)
	case *array.List:
		return fillList(v, a, from, to)
	default:
		return fmt.Errorf("no way to scan %s", a.DataType())
	}
	return nil
}

func fillDecimal(v *Vector, a *array.Decimal128, from, n int) {
	out := Values[Int128](v, n)
	steps := int32(9) - a.DataType().(*arrow.Decimal128Type).Scale
	for i := range out {
		d := a.Value(from + i)
		if steps > 0 {
			d = d.IncreaseScaleBy(steps)
		}
		out[i] = Int128{d.LowBits(), d.HighBits()}
	}
}

// fillBigNumeric writes the form that compares as the numbers do.
func fillBigNumeric(v *Vector, a *array.Decimal256, from, n int) error {
	steps := bignumeric.Scale - int64(a.DataType().(*arrow.Decimal256Type).Scale)
	factor := new(big.Int).Exp(big.NewInt(10), big.NewInt(steps), nil)
	for i := range n {
		if !a.IsNull(from + i) {
			v.SetBytes(i, bignumeric.Encode(new(big.Int).Mul(a.Value(from+i).BigInt(), factor)))
		}
	}
	return nil
}

func fillTexts(v *Vector, a arrow.Array, offsets func() []int32, from, to int) {
	if a.Len() == 0 {
		return
	}
	var data []byte
	if b := a.Data().Buffers()[2]; b != nil {
		data = b.Bytes()
	}
	assignStrings(v.raw, offsets()[from:to+1], data)
}

func fillStruct(v *Vector, a *array.Struct, from, to int) error {
	if v.Type.ID == mapping.TypeInterval {
		months, days, micros := a.Field(0).(*array.Int32), a.Field(1).(*array.Int32), a.Field(2).(*array.Int64)
		for i := range Values[Period](v, to-from) {
			Values[Period](v, to-from)[i] = Period{months.Value(from + i), days.Value(from + i), micros.Value(from + i)}
		}
		return nil
	}
	for k := range a.NumField() {
		member := v.Member(k)
		if err := fill(&member, a.Field(k), from, to); err != nil {
			return err
		}
	}
	return nil
}

func fillList(v *Vector, a *array.List, from, to int) error {
	spans := Values[Span](v, to-from)
	if len(spans) == 0 {
		return nil
	}
	first, _ := a.ValueOffsets(from)
	_, last := a.ValueOffsets(to - 1)
	for i := range spans {
		start, end := a.ValueOffsets(from + i)
		spans[i] = Span{uint64(start - first), uint64(end - start)}
	}
	elements := v.MakeElements(int(last - first))
	return fill(&elements, a.ListValues(), int(first), int(last))
}
