//go:build cgo

package duckdb

import (
	"fmt"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/duckdb/duckdb-go/v2/mapping"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/native"
	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// rows collects a result as batches in the layout of the store.
type rows struct {
	schema *schema.Schema
	arrow  *arrow.Schema
	made   []arrow.RecordBatch
	build  *array.RecordBuilder
	held   int64 // rows in build
	total  int64
}

// maxBatchRows is the size of the store's own batches.
const maxBatchRows = 65_536

func newRows(s *schema.Schema) *rows {
	a := s.Arrow()
	return &rows{schema: s, arrow: a, build: array.NewRecordBuilder(memory.DefaultAllocator, a)}
}

// append adds a chunk of n rows.
func (r *rows) append(columns []native.Vector, n int) error {
	for k, f := range r.schema.Fields {
		if err := appendColumn(r.build.Field(k), f, &columns[k], 0, n); err != nil {
			return err
		}
	}
	r.held += int64(n)
	r.total += int64(n)
	if r.held >= maxBatchRows {
		r.flush()
	}
	return nil
}

func (r *rows) flush() {
	r.made = append(r.made, r.build.NewRecordBatch())
	r.held = 0
}

func (r *rows) batches() []arrow.RecordBatch {
	if r.held > 0 {
		r.flush()
	}
	return r.made
}

// appendColumn adds values from..to of a vector to a builder.
func appendColumn(b array.Builder, f *schema.Field, v *native.Vector, from, to int) error {
	if f.Mode == schema.Repeated {
		return appendLists(b.(*array.ListBuilder), f, v, from, to)
	}
	if s, ok := b.(*array.StructBuilder); ok {
		return appendStructs(s, f, v, from, to)
	}
	if appendRun(b, v, from, to) {
		return nil
	}
	b.Reserve(to - from)
	for i := from; i < to; i++ {
		if v.Null(i) {
			b.AppendNull()
			continue
		}
		if err := appendValue(b, f, v, i); err != nil {
			return err
		}
	}
	return nil
}

// appendRun adds values that both sides hold alike, all at once; false where that cannot be.
func appendRun(b array.Builder, v *native.Vector, from, to int) bool {
	if v.HasNulls() || from == to {
		return false
	}
	switch b := b.(type) {
	case *array.Int64Builder:
		if v.Type.ID != mapping.TypeBigInt {
			return false
		}
		b.AppendValues(native.Values[int64](v, to)[from:], nil)
	case *array.Float64Builder:
		b.AppendValues(native.Values[float64](v, to)[from:], nil)
	case *array.Date32Builder:
		b.AppendValues(native.Values[arrow.Date32](v, to)[from:], nil)
	case *array.TimestampBuilder:
		b.AppendValues(native.Values[arrow.Timestamp](v, to)[from:], nil)
	default:
		return false
	}
	return true
}

// appendLists adds arrays; a NULL array is an empty one in a result, and a NULL element is none.
func appendLists(b *array.ListBuilder, f *schema.Field, v *native.Vector, from, to int) error {
	element := *f
	element.Mode = schema.Nullable
	elements, _ := v.Elements()
	spans := native.Values[native.Span](v, to)
	for i := from; i < to; i++ {
		b.Append(true)
		if v.Null(i) {
			continue
		}
		start, end := int(spans[i].Offset), int(spans[i].Offset+spans[i].Length)
		for k := start; k < end; k++ {
			if elements.Null(k) {
				return &query.Error{Message: "Array cannot have a null element; error in writing field " + f.Name}
			}
		}
		if err := appendColumn(b.ValueBuilder(), &element, &elements, start, end); err != nil {
			return err
		}
	}
	return nil
}

func appendStructs(b *array.StructBuilder, f *schema.Field, v *native.Vector, from, to int) error {
	there := make([]bool, to-from)
	for i := range there {
		there[i] = !v.Null(from + i)
	}
	b.AppendValues(there) // Append would make members of a NULL, which come below for all rows
	if f.Type == schema.Interval {
		appendIntervals(b, v, from, to)
		return nil
	}
	for k := range b.NumField() {
		member := v.Member(k)
		column := &schema.Field{Name: f.Name, Type: f.RangeElement}
		if f.Type == schema.Struct {
			column = f.Fields[k]
		}
		if err := appendColumn(b.FieldBuilder(k), column, &member, from, to); err != nil {
			return err
		}
	}
	return nil
}

func appendIntervals(b *array.StructBuilder, v *native.Vector, from, to int) {
	months, days, micros := b.FieldBuilder(0).(*array.Int32Builder), b.FieldBuilder(1).(*array.Int32Builder), b.FieldBuilder(2).(*array.Int64Builder)
	for _, p := range native.Values[native.Period](v, to)[from:] {
		months.Append(p.Months)
		days.Append(p.Days)
		micros.Append(p.Micros)
	}
}

func appendValue(b array.Builder, f *schema.Field, v *native.Vector, i int) error {
	switch b := b.(type) {
	case *array.Int64Builder:
		n, err := integer(v, i)
		b.Append(n)
		return err
	case *array.Float64Builder:
		b.Append(kFloat.get(v, i))
	case *array.BooleanBuilder:
		b.Append(kBool.get(v, i))
	case *array.StringBuilder:
		b.BinaryBuilder.Append(v.Bytes(i))
	case *array.BinaryBuilder:
		b.Append(v.Bytes(i))
	case *array.Date32Builder:
		b.Append(arrow.Date32(kDate.get(v, i)))
	case *array.Time64Builder:
		b.Append(arrow.Time64(kTime.get(v, i)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(kTimestamp.get(v, i)))
	case *array.Decimal128Builder:
		n := native.Values[native.Int128](v, i+1)[i]
		b.Append(decimal128.New(n.High, n.Low))
	case *array.Decimal256Builder:
		b.Append(decimal256.FromBigInt(kBigNumeric.get(v, i)))
	default:
		return fmt.Errorf("duckdb: column %s of type %s has no builder", f.Name, f.Type)
	}
	return nil
}

// integer reads an integer of any width: DuckDB's own functions have their ways.
func integer(v *native.Vector, i int) (int64, error) {
	switch v.Type.ID {
	case mapping.TypeBigInt:
		return kInt.get(v, i), nil
	case mapping.TypeInteger:
		return int64(native.Values[int32](v, i+1)[i]), nil
	case mapping.TypeHugeInt:
		var n *big.Int = kHuge.get(v, i)
		if !n.IsInt64() {
			return 0, &query.Error{Message: "int64 overflow: " + n.String()}
		}
		return n.Int64(), nil
	}
	return 0, fmt.Errorf("duckdb: an INT64 is held as type %d", v.Type.ID)
}
