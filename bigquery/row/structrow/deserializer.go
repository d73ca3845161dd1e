package structrow

import (
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Deserializer makes structs of rows. It implements row.Deserializer.
//
// Columns fill the fields of the same name, ignoring case. Columns without a field, and fields without a column, are left
// alone. NULL becomes nil, or a Null type that is not valid, or no bytes; for any other field it is an error (D-NULL), because
// 0 and "" would be values that nobody wrote. Numbers that a small field does not hold are errors (D-OVERFLOW).
type Deserializer[T any] struct {
	plan    *structPlan
	typ     reflect.Type // the struct
	pointer bool
	reader  atomic.Pointer[rowReader] // for the schema seen last
}

var _ row.Deserializer[struct{}] = (*Deserializer[struct{}])(nil)

// NewDeserializer makes the Deserializer of T, a struct or a pointer to one. The error is that of New.
func NewDeserializer[T any]() (*Deserializer[T], error) {
	t, pointer, err := structType[T]()
	if err != nil {
		return nil, err
	}
	p, _, err := compile(t, Options{})
	if err != nil {
		return nil, err
	}
	return &Deserializer[T]{plan: p, typ: t, pointer: pointer}, nil
}

// Deserialize emits one record, which refers to none of the row's memory. A column that does not fit its field is a *row.Error of
// kind D-TYPE.
func (d *Deserializer[T]) Deserialize(r *row.Row, emit func(T) error) error {
	reader := d.reader.Load()
	if reader == nil || reader.schema != r.Schema {
		members, e := readMembers(d.plan, r.Schema.Fields)
		if e != nil {
			return e
		}
		reader = &rowReader{r.Schema, members}
		d.reader.Store(reader)
	}
	var rec T
	base := unsafe.Pointer(&rec)
	if d.pointer {
		at := reflect.New(d.typ).UnsafePointer()
		*(*unsafe.Pointer)(base) = at
		base = at
	}
	if e := setMembers(reader.members, base, r.Values); e != nil {
		return e
	}
	return emit(rec)
}

type rowReader struct {
	schema  *table.Schema
	members []member
}

// member pairs a column that was read with a field.
type member struct {
	index   int // of the column
	column  *column
	members []member // of a STRUCT or a RANGE
}

// readMembers pairs the columns of a schema with the fields of a struct.
func readMembers(p *structPlan, fields []table.Field) ([]member, *row.Error) {
	byName := make(map[string]*column, len(p.columns))
	for i := range p.columns {
		byName[table.FoldName(p.columns[i].field.Name)] = &p.columns[i]
	}
	var out []member
	for i := range fields {
		f := &fields[i]
		c := byName[table.FoldName(f.Name)]
		if c == nil {
			continue
		}
		m := member{index: i, column: c}
		if list := c.op == opSlice || c.op == opArray; list != (f.Mode == table.Repeated) || !takes(c.scalar(), f) {
			return nil, &row.Error{Kind: row.KindDecode, Path: f.Name, Offset: -1,
				Msg: "a column of " + f.Type.String() + " " + f.Mode.String() + " does not fit a field of type " + c.typ.String()}
		}
		if inner := c.scalar().members; inner != nil {
			var e *row.Error
			if m.members, e = readMembers(inner, row.Members(f)); e != nil {
				return nil, e.Within(f.Name)
			}
		}
		out = append(out, m)
	}
	return out, nil
}

// scalar is the plan of the value itself, without slices, pointers and Null types around it.
func (c *column) scalar() *value {
	v := &c.value
	for v.elem != nil {
		v = v.elem
	}
	return v
}

// takes says whether a field can hold the values of a column.
func takes(v *value, f *table.Field) bool {
	switch v.op {
	case opStruct:
		return row.Members(f) != nil
	case opString:
		return f.Type == v.column || f.Type == table.String || f.Type == table.JSON || f.Type == table.Geography
	case opRat:
		return f.Type == table.Numeric || f.Type == table.BigNumeric
	}
	return f.Type == v.column
}

func setMembers(members []member, base unsafe.Pointer, values []row.Value) *row.Error {
	for i := range members {
		m := &members[i]
		if m.index >= len(values) {
			return &row.Error{Kind: row.KindDecode, Offset: -1, Msg: "the row has fewer values than columns"}
		}
		in := &values[m.index]
		at := open(base, m.column.hops, !in.Null)
		if at == nil {
			continue
		}
		if e := m.set(&m.column.value, unsafe.Add(at, m.column.offset), in); e != nil {
			return e.Within(m.column.field.Name)
		}
	}
	return nil
}

// open follows embedded pointers, and makes the structs they lack when create says so. It answers nil where one is missing:
// a struct that would hold nothing but NULL is not made.
func open(at unsafe.Pointer, hops []hop, create bool) unsafe.Pointer {
	for _, h := range hops {
		p := (*unsafe.Pointer)(unsafe.Add(at, h.offset))
		if *p == nil {
			if !create {
				return nil
			}
			*p = reflect.New(h.typ).UnsafePointer()
		}
		at = *p
	}
	return at
}
