package store

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// conform brings a batch shaped by one schema of a table into the shape of another: columns that are new are NULL or
// empty, columns that are gone are left out, and what both have shares its memory unless its type is another one. Schemas of one
// table differ only in what schema.Widen and schema.Alter allow, and in columns of another type that fault rules make.
func conform(b arrow.RecordBatch, from, to *schema.Schema) arrow.RecordBatch {
	if from == to {
		return b
	}
	target := to.Arrow()
	columns := make([]arrow.Array, target.NumFields())
	rows := int(b.NumRows())
	for i := range columns {
		at := -1
		if from != nil {
			at = match(from, to.Fields[i])
		}
		if at < 0 {
			columns[i] = absent(target.Field(i).Type, to.Fields[i], rows)
			continue
		}
		columns[i] = array.MakeFromData(conformData(b.Column(at).Data(), from.Fields[at], to.Fields[i], target.Field(i).Type))
	}
	return array.NewRecordBatch(target, columns, b.NumRows())
}

// match is where a schema has the column; -1 for a new one, if one of its name was there.
func match(from *schema.Schema, to *schema.Field) int {
	at := slices.IndexFunc(from.Fields, to.Same)
	if at < 0 {
		return -1
	}
	f := from.Fields[at]
	if f.Type != to.Type && !schema.Converts(f.Type, to.Type) || f.RangeElement != to.RangeElement || f.Picos() != to.Picos() ||
		(f.Mode == schema.Repeated) != (to.Mode == schema.Repeated) {
		return -1
	}
	return at
}

// retype gives a batch whose columns are laid out as a schema says the types of that schema.
func retype(b arrow.RecordBatch, s *schema.Schema) (arrow.RecordBatch, error) {
	target := s.Arrow()
	if int(b.NumCols()) != target.NumFields() {
		return nil, fmt.Errorf("a batch has %d columns, the definition %d", b.NumCols(), target.NumFields())
	}
	columns := make([]arrow.Array, target.NumFields())
	for i, f := range target.Fields() {
		if !sameLayout(b.Column(i).DataType(), f.Type) {
			return nil, fmt.Errorf("column %s is laid out as %s, expected %s", f.Name, b.Column(i).DataType(), f.Type)
		}
		columns[i] = array.MakeFromData(conformData(b.Column(i).Data(), s.Fields[i], s.Fields[i], f.Type))
	}
	return array.NewRecordBatch(target, columns, b.NumRows()), nil
}

// sameLayout compares types by what their bytes mean: names and nullability aside.
func sameLayout(a, b arrow.DataType) bool {
	if a.ID() != b.ID() {
		return false
	}
	nested, ok := a.(arrow.NestedType)
	if !ok {
		return arrow.TypeEqual(a, b)
	}
	left, right := nested.Fields(), b.(arrow.NestedType).Fields()
	if len(left) != len(right) {
		return false
	}
	for i := range left {
		if !sameLayout(left[i].Type, right[i].Type) {
			return false
		}
	}
	return true
}

// conformData is conform for one column. It works on the raw data, so that a slice stays a slice.
func conformData(d arrow.ArrayData, from, to *schema.Field, target arrow.DataType) arrow.ArrayData {
	if to.Mode == schema.Repeated {
		element := target.(*arrow.ListType).Elem()
		child := conformElement(d.Children()[0], from, to, element)
		return array.NewData(target, d.Len(), d.Buffers(), []arrow.ArrayData{child}, d.NullN(), d.Offset())
	}
	return conformElement(d, from, to, target)
}

func conformElement(d arrow.ArrayData, from, to *schema.Field, target arrow.DataType) arrow.ArrayData {
	switch {
	case from.Type != to.Type:
		return convert(d, target)
	case to.Type == schema.Struct:
		return conformStruct(d, from, to, target.(*arrow.StructType))
	case to.Type == schema.Numeric || to.Type == schema.BigNumeric:
		return rescale(d, target)
	default:
		return array.NewData(target, d.Len(), d.Buffers(), d.Children(), d.NullN(), d.Offset())
	}
}

func conformStruct(d arrow.ArrayData, from, to *schema.Field, target *arrow.StructType) arrow.ArrayData {
	old := &schema.Schema{Fields: from.Fields}
	children := make([]arrow.ArrayData, len(to.Fields))
	for i, f := range to.Fields {
		if at := match(old, f); at >= 0 {
			children[i] = conformData(d.Children()[at], from.Fields[at], f, target.Field(i).Type)
		} else {
			children[i] = absent(target.Field(i).Type, f, d.Offset()+d.Len()).Data()
		}
	}
	return array.NewData(target, d.Len(), d.Buffers(), children, d.NullN(), d.Offset())
}

// absent is what a column holds for rows written before it existed: NULL, or an empty list.
func absent(t arrow.DataType, f *schema.Field, rows int) arrow.Array {
	if f.Mode != schema.Repeated {
		return array.MakeArrayOfNull(memory.DefaultAllocator, t, rows)
	}
	b := array.NewBuilder(memory.DefaultAllocator, t)
	b.AppendEmptyValues(rows)
	return b.NewArray()
}
