//go:build cgo

package native

import (
	"fmt"

	"github.com/duckdb/duckdb-go/v2/mapping"
)

// Type is a type of DuckDB's, as far as this engine uses them.
type Type struct {
	ID     mapping.Type
	Elem   *Type  // of a list
	Fields []Type // of a struct; its members are named _0, _1, …
	Width  uint8  // of a decimal
	Scale  uint8
	empty  bool // a struct without members, which DuckDB has not
}

// The scalar types.
var (
	Any       = Type{ID: mapping.TypeAny}
	Bool      = Type{ID: mapping.TypeBoolean}
	Int64     = Type{ID: mapping.TypeBigInt}
	HugeInt   = Type{ID: mapping.TypeHugeInt}
	Float64   = Type{ID: mapping.TypeDouble}
	Decimal   = Type{ID: mapping.TypeDecimal, Width: 38, Scale: 9}
	Varchar   = Type{ID: mapping.TypeVarchar}
	Blob      = Type{ID: mapping.TypeBlob}
	Date      = Type{ID: mapping.TypeDate}
	Time      = Type{ID: mapping.TypeTime}
	Timestamp = Type{ID: mapping.TypeTimestamp}
	Interval  = Type{ID: mapping.TypeInterval}
)

// ListOf is a list of t.
func ListOf(t Type) Type { return Type{ID: mapping.TypeList, Elem: &t} }

// StructOf is a struct of members _0, _1, …; without any it has one, named _.
func StructOf(fields ...Type) Type {
	if len(fields) == 0 {
		return Type{ID: mapping.TypeStruct, Fields: []Type{Bool}, empty: true}
	}
	return Type{ID: mapping.TypeStruct, Fields: fields}
}

// logical is the type as DuckDB holds it; the caller destroys it.
func (t Type) logical() mapping.LogicalType {
	switch t.ID {
	case mapping.TypeList:
		elem := t.Elem.logical()
		defer mapping.DestroyLogicalType(&elem)
		return mapping.CreateListType(elem)
	case mapping.TypeStruct:
		types := make([]mapping.LogicalType, len(t.Fields))
		names := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			types[i], names[i] = f.logical(), fmt.Sprintf("_%d", i)
			defer mapping.DestroyLogicalType(&types[i])
		}
		if t.empty {
			names[0] = "_"
		}
		return mapping.CreateStructType(types, names)
	case mapping.TypeDecimal:
		return mapping.CreateDecimalType(t.Width, t.Scale)
	}
	return mapping.CreateLogicalType(t.ID)
}

// typeOf reads a type of DuckDB's and destroys it.
func typeOf(l mapping.LogicalType) Type {
	defer mapping.DestroyLogicalType(&l)
	t := Type{ID: mapping.GetTypeId(l)}
	switch t.ID {
	case mapping.TypeList:
		elem := typeOf(mapping.ListTypeChildType(l))
		t.Elem = &elem
	case mapping.TypeStruct:
		for i := range mapping.StructTypeChildCount(l) {
			t.Fields = append(t.Fields, typeOf(mapping.StructTypeChildType(l, i)))
		}
	case mapping.TypeDecimal:
		t.Width, t.Scale = mapping.DecimalWidth(l), mapping.DecimalScale(l)
	}
	return t
}
