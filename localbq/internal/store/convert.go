package store

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// rescale rewrites decimals whose column has been given more digits behind the point.
func rescale(d arrow.ArrayData, target arrow.DataType) arrow.ArrayData {
	if scaleOf(target) == scaleOf(d.DataType()) {
		return array.NewData(target, d.Len(), d.Buffers(), nil, d.NullN(), d.Offset())
	}
	return convert(d, target)
}

func scaleOf(t arrow.DataType) int32 {
	switch t := t.(type) {
	case *arrow.Decimal128Type:
		return t.Scale
	case *arrow.Decimal256Type:
		return t.Scale
	}
	panic(fmt.Sprintf("store: %s is no decimal type", t))
}

// convert makes numbers those of another type, which has room for all of them: see schema.Converts.
func convert(d arrow.ArrayData, target arrow.DataType) arrow.ArrayData {
	b := array.NewBuilder(memory.DefaultAllocator, target)
	b.Reserve(d.Len())
	for i, a := 0, array.MakeFromData(d); i < a.Len(); i++ {
		if a.IsNull(i) {
			b.AppendNull()
			continue
		}
		switch b := b.(type) {
		case *array.Float64Builder:
			b.Append(float(a, i))
		case *array.Decimal128Builder:
			b.Append(narrow(a, i, scaleOf(target)))
		case *array.Decimal256Builder:
			b.Append(wide(a, i, scaleOf(target)))
		default:
			panic(fmt.Sprintf("store: %s does not become %s", a.DataType(), target)) // schema.Converts has been asked
		}
	}
	return b.NewArray().Data()
}

func float(a arrow.Array, i int) float64 {
	if a, ok := a.(*array.Int64); ok {
		return float64(a.Value(i))
	}
	return a.(*array.Decimal128).Value(i).ToFloat64(scaleOf(a.DataType()))
}

func narrow(a arrow.Array, i int, scale int32) decimal128.Num {
	if a, ok := a.(*array.Int64); ok {
		return decimal128.FromI64(a.Value(i)).IncreaseScaleBy(scale)
	}
	return a.(*array.Decimal128).Value(i).IncreaseScaleBy(scale - scaleOf(a.DataType()))
}

func wide(a arrow.Array, i int, scale int32) decimal256.Num {
	switch a := a.(type) {
	case *array.Int64:
		return decimal256.FromI64(a.Value(i)).IncreaseScaleBy(scale)
	case *array.Decimal128:
		return decimal256.FromDecimal128(a.Value(i)).IncreaseScaleBy(scale - scaleOf(a.DataType()))
	}
	return a.(*array.Decimal256).Value(i).IncreaseScaleBy(scale - scaleOf(a.DataType()))
}
