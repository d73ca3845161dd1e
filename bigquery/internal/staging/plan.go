package staging

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Plan is how the rows of one table become files. It is immutable.
type Plan struct {
	Schema     *table.Schema
	Descriptor *descriptorpb.DescriptorProto
	Root       *Message
}

// Message is how the messages of the table, or of a STRUCT, are read.
type Message struct {
	Columns []Column // in the schema's order
	// byNumber has the index of a field's column plus one, by field number; far has those with large numbers.
	byNumber []uint16
	far      map[protowire.Number]uint16
}

// Kind is how the value of a column stands in a row.
type Kind uint8

const (
	Bool Kind = iota
	Int
	Float
	Date
	Time
	DateTime
	Timestamp
	Text
	Bytes
	Decimal      // little-endian, scaled
	DateTimeText // a literal
	DecimalText  // a literal
	Record
)

// Column is how one column is read.
type Column struct {
	Field   *table.Field
	Kind    Kind
	Message *Message    // for Record
	Decimal row.Decimal // for Decimal, DecimalText
	wire    protowire.Type

	tag uint64 // of a value, or of a whole packed list

	repeated, required bool

	// What plain goes by.
	form      form
	preface   uint8  // bytes before the value, or the first of a list: the branch of a union, or the length of the list
	unchecked uint64 // limit of a plainNumber
}

// Repeated and Required are the column's modes.
func (c *Column) Repeated() bool { return c.repeated }

func (c *Column) Required() bool { return c.required }

// smallNumber bounds the field numbers that are looked up in a list. Only a serializer's own descriptor has larger ones.
const smallNumber = 1 << 16

// Compile makes the Plan for rows of a message that go to a table. The error joins everything that is wrong, as *row.Error
// values: a type or a name that files cannot carry, and a descriptor that does not fit the schema.
func Compile(s *table.Schema, d *descriptorpb.DescriptorProto) (*Plan, error) {
	if err := row.CheckSchema(s); err != nil {
		return nil, err
	}
	c := compiler{scopes: []*descriptorpb.DescriptorProto{d}}
	p := &Plan{Schema: s, Descriptor: d, Root: c.message(s.Fields, d, "")}
	if len(c.faults) > 0 {
		return nil, errors.Join(c.faults...)
	}
	return p, nil
}

type compiler struct {
	faults []error
	scopes []*descriptorpb.DescriptorProto // messages around the one in hand, itself last
}

func (c *compiler) fault(kind row.Kind, path, format string, args ...any) {
	c.faults = append(c.faults, &row.Error{Kind: kind, Path: path, Offset: -1, Msg: fmt.Sprintf(format, args...)})
}

func (c *compiler) message(columns []table.Field, d *descriptorpb.DescriptorProto, parent string) *Message {
	m := &Message{Columns: make([]Column, len(columns)), far: map[protowire.Number]uint16{}}
	fields := make(map[string]*descriptorpb.FieldDescriptorProto, len(d.GetField()))
	for _, f := range d.GetField() {
		fields[table.FoldName(row.ColumnName(f))] = f
	}
	for i := range columns {
		path := table.Join(parent, columns[i].Name)
		key := table.FoldName(columns[i].Name)
		f := fields[key]
		delete(fields, key)
		c.column(&m.Columns[i], &columns[i], f, path)
		m.number(protowire.Number(f.GetNumber()), i)
	}
	for _, f := range d.GetField() {
		if _, left := fields[table.FoldName(row.ColumnName(f))]; left {
			c.fault(row.KindDesc, table.Join(parent, row.ColumnName(f)), "the descriptor has this field and the schema no such column: its values would be lost")
		}
	}
	return m
}

func (m *Message) number(n protowire.Number, column int) {
	if n >= smallNumber {
		m.far[n] = uint16(column + 1)
		return
	}
	for int(n) >= len(m.byNumber) {
		m.byNumber = append(m.byNumber, 0)
	}
	m.byNumber[n] = uint16(column + 1)
}

// column finds the column of a field number; -1 is none.
func (m *Message) column(n protowire.Number) int {
	if uint(n) < uint(len(m.byNumber)) {
		return int(m.byNumber[n]) - 1
	}
	return int(m.far[n]) - 1
}

func (c *compiler) column(out *Column, f *table.Field, d *descriptorpb.FieldDescriptorProto, path string) {
	out.Field, out.repeated, out.required = f, f.Mode == table.Repeated, f.Mode == table.Required
	if !table.Identifier(f.Name) {
		c.fault(row.KindName, path, "file loads take names of letters, digits and underscores that begin with no digit: use another write method, or rename it")
	}
	if f.Type == table.Interval || f.Type == table.Range {
		c.fault(row.KindColType, path, "file loads cannot carry %v: use another write method", f.Type)
		return
	}
	if d == nil {
		c.fault(row.KindDesc, path, "the descriptor has no field for this column")
		return
	}
	repeated := d.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REPEATED
	if repeated != out.Repeated() {
		c.fault(row.KindDesc, path, "the column is %v, the descriptor's field is %s", f.Mode, labelName(d.GetLabel()))
	}
	kind, ok := kindOf(f.Type, d.GetType())
	if !ok {
		c.fault(row.KindDesc, path, "the descriptor's field is %s: file loads take %s for %v", typeName(d.GetType()), accepted[f.Type], f.Type)
		return
	}
	out.Kind, out.wire = kind, wireOf(kind)
	out.tag = protowire.EncodeTag(protowire.Number(d.GetNumber()), out.wire)
	if repeated {
		out.tag = protowire.EncodeTag(protowire.Number(d.GetNumber()), protowire.BytesType)
	}
	if !out.required {
		out.preface = 1
	}
	out.form, out.unchecked = formOf(out)
	switch kind {
	case Decimal, DecimalText:
		out.Decimal = row.DecimalOf(f)
	case Record:
		out.Message = c.members(f, d, path)
	}
}

func labelName(l descriptorpb.FieldDescriptorProto_Label) string {
	return strings.ToLower(strings.TrimPrefix(l.String(), "LABEL_"))
}

func typeName(t descriptorpb.FieldDescriptorProto_Type) string {
	return strings.ToLower(strings.TrimPrefix(t.String(), "TYPE_"))
}

func (c *compiler) members(f *table.Field, d *descriptorpb.FieldDescriptorProto, path string) *Message {
	nested := c.find(d.GetTypeName())
	if nested == nil {
		c.fault(row.KindDesc, path, "the descriptor's field is of the message %q, which is not nested in it", d.GetTypeName())
		return nil
	}
	c.scopes = append(c.scopes, nested)
	m := c.message(f.Fields, nested, path)
	c.scopes = c.scopes[:len(c.scopes)-1]
	return m
}

// find looks for a message by a name that is relative, as ours are, or begins with a point. Names are looked for from the
// inside out, as protobuf does.
func (c *compiler) find(name string) *descriptorpb.DescriptorProto {
	parts := strings.Split(strings.TrimPrefix(name, "."), ".")
	for i := len(c.scopes) - 1; i >= 0; i-- {
		if d := within(c.scopes[i], parts); d != nil {
			return d
		}
	}
	// A full name begins with the package, if any, and the name of the whole message.
	for i, part := range parts {
		if part == c.scopes[0].GetName() {
			if d := within(c.scopes[0], parts[i+1:]); d != nil && i+1 < len(parts) {
				return d
			}
		}
	}
	return nil
}

func within(d *descriptorpb.DescriptorProto, parts []string) *descriptorpb.DescriptorProto {
next:
	for _, part := range parts {
		for _, n := range d.GetNestedType() {
			if n.GetName() == part {
				d = n
				continue next
			}
		}
		return nil
	}
	return d
}
