package column

import (
	"fmt"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/value"
)

// add appends a converted value. It cannot fail.
func add(b array.Builder, f *schema.Field, v any) {
	if f.Mode != schema.Repeated {
		addElement(b, f, v)
		return
	}
	list := b.(*array.ListBuilder)
	list.Append(true)
	elements, _ := v.([]any)
	for _, e := range elements {
		addElement(list.ValueBuilder(), f, e)
	}
}

func addElement(b array.Builder, f *schema.Field, v any) {
	if v == nil {
		addNull(b, f)
		return
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v.(bool))
	case *array.Int64Builder:
		b.Append(v.(int64))
	case *array.Float64Builder:
		b.Append(v.(float64))
	case *array.StringBuilder:
		b.Append(v.(string))
	case *array.BinaryBuilder:
		b.Append(v.([]byte))
	case *array.Decimal128Builder:
		b.Append(value.Num128(v.(*big.Int)))
	case *array.Decimal256Builder:
		b.Append(value.Num256(v.(*big.Int)))
	case *array.Date32Builder:
		b.Append(arrow.Date32(v.(int32)))
	case *array.Time64Builder:
		b.Append(arrow.Time64(v.(int64)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v.(int64)))
	case *array.StructBuilder:
		addStruct(b, f, v)
	default:
		panic(fmt.Sprintf("column: no builder for %s", b.Type()))
	}
}

func addStruct(b *array.StructBuilder, f *schema.Field, v any) {
	b.Append(true)
	switch v := v.(type) {
	case value.Span:
		b.FieldBuilder(0).(*array.Int32Builder).Append(v.Months)
		b.FieldBuilder(1).(*array.Int32Builder).Append(v.Days)
		b.FieldBuilder(2).(*array.Int64Builder).Append(v.Micros)
	case []any:
		if f.Type == schema.Range {
			element := &schema.Field{Type: f.RangeElement}
			addElement(b.FieldBuilder(0), element, v[0])
			addElement(b.FieldBuilder(1), element, v[1])
			return
		}
		for i, m := range f.Fields {
			add(b.FieldBuilder(i), m, v[i])
		}
	}
}

// addNull appends NULL. The members of a STRUCT that is NULL get values that their nullability allows.
func addNull(b array.Builder, f *schema.Field) {
	group, ok := b.(*array.StructBuilder)
	if !ok {
		b.AppendNull()
		return
	}
	group.AppendValues([]bool{false}) // Append would make members of the NULL as well, one too many
	for i := range group.NumField() {
		group.FieldBuilder(i).AppendEmptyValue()
	}
}
