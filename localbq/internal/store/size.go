package store

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// valueBytes is BigQuery's size of one value of a type of fixed size; variable ones add their length to it
// (BigQuery documentation, "Data type sizes"). GEOGRAPHY is estimated by the length of its text.
var valueBytes = map[schema.Type]int64{
	schema.Bool: 1, schema.Int64: 8, schema.Float64: 8, schema.Numeric: 16, schema.BigNumeric: 32, schema.String: 2,
	schema.Bytes: 2, schema.Date: 8, schema.Time: 8, schema.DateTime: 8, schema.Timestamp: 8, schema.Interval: 16,
	schema.Geography: 16, schema.JSON: 2, schema.Range: 16,
}

func logicalBytes(s *schema.Schema, b arrow.RecordBatch) int64 {
	if s == nil {
		return 0
	}
	total := int64(0)
	for i, f := range s.Fields {
		total += LogicalBytes(f, b.Column(i))
	}
	return total
}

// LogicalBytes is what BigQuery counts for the values of a column, NULL being nothing. The array is as the store holds it.
func LogicalBytes(f *schema.Field, a arrow.Array) int64 {
	if list, ok := a.(*array.List); ok {
		if list.Len() == 0 {
			return 0
		}
		from, _ := list.ValueOffsets(0)
		_, to := list.ValueOffsets(list.Len() - 1)
		return elementBytes(f, array.NewSlice(list.ListValues(), from, to))
	}
	return elementBytes(f, a)
}

func elementBytes(f *schema.Field, a arrow.Array) int64 {
	if s, ok := a.(*array.Struct); ok && f.Type == schema.Struct {
		return structBytes(f, s)
	}
	total := valueBytes[f.Type] * int64(a.Len()-a.NullN())
	switch v := a.(type) {
	case *array.String:
		total += int64(len(v.ValueBytes()))
	case *array.Binary:
		total += int64(len(v.ValueBytes()))
	}
	return total
}

// structBytes is the size of the members. Those behind a NULL hold something, and count nothing.
func structBytes(f *schema.Field, s *array.Struct) int64 {
	total := int64(0)
	for from := 0; from < s.Len(); {
		to := from
		for to < s.Len() && s.IsValid(to) {
			to++
		}
		for i, member := range f.Fields {
			if to > from {
				values := array.NewSlice(s.Field(i), int64(from), int64(to))
				total += LogicalBytes(member, values)
				values.Release()
			}
		}
		from = to + 1
	}
	return total
}

// BatchBytes is what BigQuery counts for the rows of batches of one schema.
func BatchBytes(s *schema.Schema, batches []arrow.RecordBatch) int64 {
	total := int64(0)
	for _, b := range batches {
		total += logicalBytes(s, b)
	}
	return total
}
