package structrow

import (
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"strings"
	"time"

	"cloud.google.com/go/civil"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// op is how a Go value lies in memory and what column it is.
type op uint8

const (
	opBool op = iota + 1
	opInt8
	opInt16
	opInt32
	opInt64
	opUint8
	opUint16
	opUint32
	opUint64
	opFloat32
	opFloat64
	opString
	opBytes
	opRawJSON
	opTime
	opCivilDate
	opCivilTime
	opCivilDateTime
	opRat // *big.Rat
	opStruct
	opPointer
	opNull  // a Null type: a value and a bool
	opSlice // of values
	opArray
)

// value is the plan of one Go value.
type value struct {
	op      op
	typ     reflect.Type
	column  table.Type
	elem    *value  // opPointer, opNull, opSlice, opArray
	size    uintptr // of an element, opSlice and opArray
	length  int     // opArray
	valid   uintptr // offset of the bool, opNull
	members *structPlan
}

// column is the plan of one column of a struct.
type column struct {
	value
	field    table.Field
	hops     []hop
	offset   uintptr
	tag      string
	packed   bool
	required bool
}

type structPlan struct {
	columns []column
}

func (p *structPlan) fields() []table.Field {
	fields := make([]table.Field, len(p.columns))
	for i := range p.columns {
		fields[i] = p.columns[i].field
	}
	return fields
}

type compiler struct {
	options Options
	outer   []reflect.Type // structs being compiled
	faults  []error
}

// compile makes the plan of a struct type, and reports every fault of it.
func compile(t reflect.Type, o Options) (*structPlan, *table.Schema, error) {
	c := compiler{options: o}
	p := c.structure(t, "")
	if err := errors.Join(c.faults...); err != nil {
		return nil, nil, err
	}
	s := &table.Schema{Fields: p.fields()}
	return p, s, row.CheckSchema(s)
}

func (c *compiler) fault(kind row.Kind, path, msg string) {
	c.faults = append(c.faults, typeError(kind, path, msg))
}

func (c *compiler) structure(t reflect.Type, path string) *structPlan {
	for _, o := range c.outer {
		if o == t {
			c.fault(row.KindRecursive, path, "the type "+t.String()+" contains itself")
			return &structPlan{}
		}
	}
	c.outer = append(c.outer, t)
	defer func() { c.outer = c.outer[:len(c.outer)-1] }()
	fields, err := columnsOf(t, path)
	if err != nil {
		c.faults = append(c.faults, err)
		return &structPlan{}
	}
	p := &structPlan{columns: make([]column, len(fields))}
	for i, f := range fields {
		p.columns[i] = c.column(f, i, table.Join(path, f.name))
	}
	return p
}

func (c *compiler) column(f structField, i int, path string) column {
	col := column{value: c.value(f.typ, path), hops: f.hops, offset: f.offset}
	col.field = table.Field{Name: f.name, Type: col.value.column}
	inner := &col.value
	canBeNull := false
	switch col.op {
	case opSlice, opArray:
		inner = col.elem
		col.field.Mode = table.Repeated
		canBeNull = true
	case opPointer, opNull:
		inner = col.elem
		canBeNull = true
	case opRat, opBytes, opRawJSON:
		canBeNull = col.op != opBytes || f.nullable
	}
	if f.nullable && !canBeNull {
		c.fault(row.KindColType, path, "tagged nullable, but a "+f.typ.String()+" cannot be NULL: make it a pointer")
	}
	if c.options.DeriveRequired && !canBeNull && len(f.hops) == 0 {
		col.field.Mode = table.Required
	}
	if inner.members != nil {
		col.field.Fields = inner.members.fields()
	}
	col.required = col.field.Mode == table.Required
	col.packed = col.field.Mode == table.Repeated && row.Packed(&col.field)
	col.tag = string(row.Tag(i, &col.field))
	return col
}

func (c *compiler) value(t reflect.Type, path string) value {
	if o := scalarOf(t); o != 0 {
		return value{op: o, typ: t, column: columnTypes[o]}
	}
	if v, ok := nullType(t); ok {
		return v
	}
	switch t.Kind() {
	case reflect.Struct:
		return value{op: opStruct, typ: t, column: table.Struct, members: c.structure(t, path)}
	case reflect.Pointer:
		return c.wrapped(opPointer, t, path)
	case reflect.Slice:
		v := c.wrapped(opSlice, t, path)
		v.size = t.Elem().Size()
		return v
	case reflect.Array:
		v := c.wrapped(opArray, t, path)
		v.size, v.length = t.Elem().Size(), t.Len()
		return v
	case reflect.Map:
		c.fault(row.KindColType, path, "a map has no column: make it a slice of structs, or a json.RawMessage")
	default:
		c.fault(row.KindColType, path, "a "+t.String()+" has no column")
	}
	return value{op: opBool, typ: t, column: table.Bool}
}

// wrapped plans a pointer, slice or array with its element, none of which may lie in another.
func (c *compiler) wrapped(o op, t reflect.Type, path string) value {
	elem := c.value(t.Elem(), path)
	switch {
	case o == opPointer && (elem.op == opPointer || elem.op == opSlice || elem.op == opArray || elem.op == opNull || elem.op == opRat):
		c.fault(row.KindColType, path, "a "+t.String()+" has no column: a pointer to what can be empty itself")
	case o != opPointer && (elem.op == opSlice || elem.op == opArray):
		c.fault(row.KindArray, path, "a "+t.String()+" has no column: BigQuery has no arrays of arrays")
	case o != opPointer && elem.op == opNull:
		c.fault(row.KindArray, path, "a "+t.String()+" has no column: elements of an array cannot be NULL")
	}
	return value{op: o, typ: t, column: elem.column, elem: &elem, members: elem.members}
}

var columnTypes = [...]table.Type{
	opBool: table.Bool, opInt8: table.Int64, opInt16: table.Int64, opInt32: table.Int64, opInt64: table.Int64,
	opUint8: table.Int64, opUint16: table.Int64, opUint32: table.Int64, opUint64: table.Int64,
	opFloat32: table.Float64, opFloat64: table.Float64, opString: table.String, opBytes: table.Bytes, opRawJSON: table.JSON,
	opTime: table.Timestamp, opCivilDate: table.Date, opCivilTime: table.Time, opCivilDateTime: table.DateTime, opRat: table.Numeric,
}

var knownTypes = map[reflect.Type]op{
	reflect.TypeFor[time.Time]():       opTime,
	reflect.TypeFor[civil.Date]():      opCivilDate,
	reflect.TypeFor[civil.Time]():      opCivilTime,
	reflect.TypeFor[civil.DateTime]():  opCivilDateTime,
	reflect.TypeFor[*big.Rat]():        opRat,
	reflect.TypeFor[json.RawMessage](): opRawJSON,
}

// scalarOf is the op of a type that is no struct, pointer, slice or array of ours, 0 for those.
func scalarOf(t reflect.Type) op {
	if o := knownTypes[t]; o != 0 {
		return o
	}
	switch t.Kind() {
	case reflect.Bool:
		return opBool
	case reflect.Int8:
		return opInt8
	case reflect.Int16:
		return opInt16
	case reflect.Int32:
		return opInt32
	case reflect.Int64:
		return opInt64
	case reflect.Int:
		return map[uintptr]op{4: opInt32, 8: opInt64}[t.Size()]
	case reflect.Uint8:
		return opUint8
	case reflect.Uint16:
		return opUint16
	case reflect.Uint32:
		return opUint32
	case reflect.Uint64:
		return opUint64
	case reflect.Uint:
		return map[uintptr]op{4: opUint32, 8: opUint64}[t.Size()]
	case reflect.Float32:
		return opFloat32
	case reflect.Float64:
		return opFloat64
	case reflect.String:
		return opString
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return opBytes
		}
	}
	return 0
}

// nullType plans a Null type: a struct of that name with a value and whether it is valid, as the official client and
// database/sql have them. They are known by their shape, so that this package need not import the client and all it brings.
func nullType(t reflect.Type) (value, bool) {
	if t.Kind() != reflect.Struct || !strings.HasPrefix(t.Name(), "Null") || t.NumField() != 2 {
		return value{}, false
	}
	v, valid := t.Field(0), t.Field(1)
	o := scalarOf(v.Type)
	if o == 0 || v.Offset != 0 || valid.Name != "Valid" || valid.Type.Kind() != reflect.Bool {
		return value{}, false
	}
	elem := value{op: o, typ: v.Type, column: columnTypes[o]}
	switch {
	case o == opString && t.Name() == "NullJSON":
		elem.column = table.JSON
	case o == opString && t.Name() == "NullGeography":
		elem.column = table.Geography
	}
	return value{op: opNull, typ: t, column: elem.column, elem: &elem, valid: valid.Offset}, true
}
