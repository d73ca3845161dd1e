package compile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// Type is a GoogleSQL type. The zero value is the type of an untyped NULL.
type Type struct {
	Kind schema.Type
	// Array makes it an array of the type that the other fields describe. Arrays of arrays do not exist.
	Array  bool
	Fields []Field     // of a Struct
	Range  schema.Type // element of a Range
	// Picos marks a TIMESTAMP of picoseconds, which can be named in a schema but not computed with.
	Picos bool
}

// Field is a member of a struct. Its name may be empty.
type Field struct {
	Name string
	Type Type
}

// Shorthands.
var (
	boolean    = Type{Kind: schema.Bool}
	int64Type  = Type{Kind: schema.Int64}
	float64T   = Type{Kind: schema.Float64}
	numeric    = Type{Kind: schema.Numeric}
	stringType = Type{Kind: schema.String}
	bytesType  = Type{Kind: schema.Bytes}
	timestamp  = Type{Kind: schema.Timestamp}
	interval   = Type{Kind: schema.Interval}
	jsonType   = Type{Kind: schema.JSON}
)

func arrayOf(t Type) Type {
	t.Array = true
	return t
}

// element is the type of an array's elements.
func (t Type) element() Type {
	t.Array = false
	return t
}

// is reports whether t is a scalar of that kind.
func (t Type) is(k schema.Type) bool { return t.Kind == k && !t.Array }

func (t Type) untyped() bool { return t.Kind == 0 }

// same reports whether two types are the same, names of members aside.
func (t Type) same(u Type) bool {
	return t.Kind == u.Kind && t.Array == u.Array && t.Range == u.Range &&
		slices.EqualFunc(t.Fields, u.Fields, func(a, b Field) bool { return a.Type.same(b.Type) })
}

// String is the type as messages name it.
func (t Type) String() string {
	switch {
	case t.Array:
		return "ARRAY<" + t.element().String() + ">"
	case t.untyped():
		return "INT64" // what a NULL becomes where nothing else says
	case t.Kind == schema.Range:
		return "RANGE<" + t.Range.String() + ">"
	case t.Kind != schema.Struct:
		return t.Kind.String()
	}
	members := make([]string, len(t.Fields))
	for i, f := range t.Fields {
		members[i] = strings.TrimSpace(f.Name + " " + f.Type.String())
	}
	return "STRUCT<" + strings.Join(members, ", ") + ">"
}

var duckNames = map[schema.Type]string{
	schema.Bool: "BOOLEAN", schema.Int64: "BIGINT", schema.Float64: "DOUBLE", schema.Numeric: "DECIMAL(38,9)",
	schema.BigNumeric: "BLOB", schema.String: "VARCHAR", schema.Bytes: "BLOB", schema.Date: "DATE", schema.Time: "TIME",
	schema.DateTime: "TIMESTAMP", schema.Timestamp: "TIMESTAMP", schema.Interval: "INTERVAL", schema.Geography: "VARCHAR",
	schema.JSON: "VARCHAR",
}

// Duck is the DuckDB type that holds t.
func (t Type) Duck() string {
	switch {
	case t.Array:
		return t.element().Duck() + "[]"
	case t.untyped():
		return "BIGINT"
	case t.Kind == schema.Range:
		end := duckNames[t.Range]
		return fmt.Sprintf("STRUCT(_0 %s, _1 %s)", end, end)
	case t.Kind != schema.Struct:
		return duckNames[t.Kind]
	case len(t.Fields) == 0:
		return "STRUCT(_ BOOLEAN)" // DuckDB has no struct without members
	}
	members := make([]string, len(t.Fields))
	for i, f := range t.Fields {
		members[i] = fmt.Sprintf("_%d %s", i, f.Type.Duck())
	}
	return "STRUCT(" + strings.Join(members, ", ") + ")"
}

// TypeOf is the type of a column.
func TypeOf(f *schema.Field) Type {
	t := Type{Kind: f.Type, Array: f.Mode == schema.Repeated, Range: f.RangeElement, Picos: f.Picos()}
	for _, m := range f.Fields {
		t.Fields = append(t.Fields, Field{m.Name, TypeOf(m)})
	}
	return t
}

// Column is a column of that type.
func (t Type) Column(name string) *schema.Field {
	f := &schema.Field{Name: name, Type: t.Kind, RangeElement: t.Range}
	if t.untyped() {
		f.Type = schema.Int64
	}
	if t.Array {
		f.Mode = schema.Repeated
	}
	for i, m := range t.Fields {
		if m.Name == "" {
			m.Name = fmt.Sprintf("_field_%d", i+1)
		}
		f.Fields = append(f.Fields, m.Type.Column(m.Name))
	}
	return f
}

// field finds a member by name; -1 where there is none.
func (t Type) field(name string) int {
	return slices.IndexFunc(t.Fields, func(f Field) bool { return strings.EqualFold(f.Name, name) })
}

// holds reports whether a value of the type has one of kind k in it.
func (t Type) holds(k schema.Type) bool {
	return t.Kind == k || slices.ContainsFunc(t.Fields, func(f Field) bool { return f.Type.holds(k) })
}

// numericOrder are the types that coerce to the ones behind them.
var numericOrder = []schema.Type{schema.Int64, schema.Numeric, schema.BigNumeric, schema.Float64}

// widens reports whether values of one scalar type become the other where they have to (GoogleSQL reference, "Conversion
// rules", coercion).
func widens(from, to schema.Type) bool {
	f, t := slices.Index(numericOrder, from), slices.Index(numericOrder, to)
	return f >= 0 && t > f || from == schema.Date && to == schema.DateTime
}

// supertype is the type that values of both become; false where there is none.
func supertype(a, b Type) (Type, bool) {
	switch {
	case a.untyped():
		return b, true
	case b.untyped() || a.same(b):
		return a, true
	case a.Array || b.Array:
		return Type{}, false
	case widens(a.Kind, b.Kind):
		return b, true
	case widens(b.Kind, a.Kind):
		return a, true
	case a.Kind == schema.Struct && b.Kind == schema.Struct && len(a.Fields) == len(b.Fields):
		return superStruct(a, b)
	}
	return Type{}, false
}

func superStruct(a, b Type) (Type, bool) {
	t := Type{Kind: schema.Struct}
	for i, f := range a.Fields {
		s, ok := supertype(f.Type, b.Fields[i].Type)
		if !ok {
			return Type{}, false
		}
		t.Fields = append(t.Fields, Field{f.Name, s})
	}
	return t, true
}

// Spell writes the type as functions of the engine read it, with the names of members.
func (t Type) Spell() string {
	text, err := json.Marshal(t.Column(""))
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return string(text)
}
