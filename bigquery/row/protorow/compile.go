package protorow

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/internal/mark"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// compile makes the plan and the schema of a message type. The error holds every fault as *row.Error of the C kinds.
func compile(t protoreflect.MessageType, o *Options) (*message, *table.Schema, error) {
	options, err := o.fieldOptions()
	if err != nil {
		return nil, nil, err
	}
	c := &compiler{required: o.DeriveRequired, options: options, resolver: o.AnyResolver,
		paths: mark.NewPaths(o.JSONPaths, o.GeographyPaths)}
	m, fields := c.message(t.New(), "")
	if !c.tooLarge {
		c.faults = append(c.faults, c.paths.Unmatched()...)
	}
	if err := errors.Join(c.faults...); err != nil {
		return nil, nil, err
	}
	return m, &table.Schema{Fields: fields}, nil
}

type compiler struct {
	required bool
	options  []fieldOption
	paths    *mark.Paths
	resolver AnyResolver

	outer    []protoreflect.FullName // the messages around the one at hand
	columns  int
	tooLarge bool
	faults   []error
}

func (c *compiler) fault(kind row.Kind, path, format string, args ...any) {
	c.faults = append(c.faults, &row.Error{Kind: kind, Path: path, Offset: -1, Msg: fmt.Sprintf(format, args...)})
}

// message plans the fields of a message, of which sample is one.
func (c *compiler) message(sample protoreflect.Message, path string) (*message, []table.Field) {
	md := sample.Descriptor()
	fds := md.Fields()
	if fds.Len() == 0 {
		c.fault(row.KindEmpty, path, "the message %s has no fields: expected some, or a marker as JSON", md.FullName())
		return nil, nil
	}
	if c.columns += fds.Len(); c.columns > table.MaxColumns {
		if !c.tooLarge {
			c.fault(row.KindSchema, path, "the message has more than %d columns, members of STRUCTs included", table.MaxColumns)
		}
		c.tooLarge = true
		return nil, nil
	}
	c.outer = append(c.outer, md.FullName())
	defer func() { c.outer = c.outer[:len(c.outer)-1] }()

	m := &message{columns: make([]column, fds.Len())}
	fields := make([]table.Field, fds.Len())
	names := map[string]protoreflect.Name{}
	for i := range fds.Len() {
		fd := fds.Get(i)
		at := table.Join(path, string(fd.Name()))
		key := table.FoldName(string(fd.Name()))
		if first, twice := names[key]; twice {
			c.fault(row.KindCase, at, "the message %s has %s and %s (at %s): BigQuery takes names without regard to case",
				md.FullName(), first, fd.Name(), location(path))
		}
		names[key] = fd.Name()
		fields[i] = c.column(&m.columns[i], sample, fd, at)
	}
	for i := range m.columns {
		c.finish(&m.columns[i], fds.Get(i), i, &fields[i])
	}
	m.index()
	return m, fields
}

func location(path string) string {
	if path == "" {
		return "<root>"
	}
	return path
}

// column plans a field of the message that sample is.
func (c *compiler) column(col *column, sample protoreflect.Message, fd protoreflect.FieldDescriptor, path string) table.Field {
	f := table.Field{Name: string(fd.Name())}
	*col = column{name: f.Name, number: fd.Number(), list: fd.IsList() || fd.IsMap()}
	marked := c.marked(fd, path)
	switch {
	case fd.IsMap():
		c.mapColumn(col, &f, sample, fd, marked, path)
	case fd.Message() != nil:
		col.wire = protowire.BytesType
		if fd.Kind() == protoreflect.GroupKind {
			col.wire = protowire.StartGroupType
		}
		c.messageColumn(col, &f, element(sample, fd), marked, path)
	default:
		col.op, col.wire, f.Type = scalar(fd.Kind())
		c.scalarColumn(col, &f, fd, marked, path)
	}
	switch {
	case col.list:
		f.Mode = table.Repeated
	case c.required && f.Type != table.JSON && f.Type != table.Geography &&
		(fd.Cardinality() == protoreflect.Required || !fd.HasPresence()):
		f.Mode = table.Required
	}
	return f
}

// marked is how paths and options mark a field; a fault of either counts as none.
func (c *compiler) marked(fd protoreflect.FieldDescriptor, path string) mark.Mark {
	by, e := marksOf(fd, c.options)
	if e != nil {
		e.Path = path
		c.faults = append(c.faults, e)
	}
	m, err := c.paths.Of(path, by)
	if err != nil {
		c.faults = append(c.faults, err)
	}
	if m != mark.None && inEntry(fd) && fd.Number() == 1 {
		c.faults = append(c.faults, m.Refuse(path, "the key of a map", "the map's value, or another field"))
		return mark.None
	}
	return m
}

// inEntry says whether a field is the key or the value of a map.
func inEntry(fd protoreflect.FieldDescriptor) bool {
	md, ok := fd.Parent().(protoreflect.MessageDescriptor)
	return ok && md.IsMapEntry()
}

// element is an empty message of the kind that a field holds.
func element(sample protoreflect.Message, fd protoreflect.FieldDescriptor) protoreflect.Message {
	v := sample.NewField(fd)
	if fd.IsList() {
		return v.List().NewElement().Message()
	}
	return v.Message()
}

func (c *compiler) scalarColumn(col *column, f *table.Field, fd protoreflect.FieldDescriptor, m mark.Mark, path string) {
	if fd.Kind() == protoreflect.EnumKind {
		col.enum = enumOf(fd.Enum())
	}
	switch {
	case m == mark.None:
	case fd.Kind() == protoreflect.StringKind:
		f.Type = m.Type()
		col.dropText = !col.list && !fd.HasPresence()
	default:
		c.faults = append(c.faults, m.Refuse(path, "a field of type "+fd.Kind().String(), carriers(m)))
	}
	col.inPacked = col.list && col.wire != protowire.BytesType
}

func carriers(m mark.Mark) string {
	if m == mark.Geography {
		return "a string"
	}
	return "a string or a message"
}

func (c *compiler) messageColumn(col *column, f *table.Field, sample protoreflect.Message, m mark.Mark, path string) {
	md := sample.Descriptor()
	if m == mark.Geography {
		c.faults = append(c.faults, m.Refuse(path, "a "+string(md.FullName()), carriers(m)))
		m = mark.None
	}
	if m == mark.JSON || alwaysJSON(md) {
		f.Type = table.JSON
		col.op = opJSON
		if bad := misshapen(md); bad != nil {
			c.faults = append(c.faults, mark.JSON.Refuse(path, fmt.Sprintf("a %s, in which %s has not the fields of protobuf's own",
				md.FullName(), bad.FullName()), "messages that have a JSON form"))
			return
		}
		if col.op, col.members = structOp(md); col.op != opJSON {
			return
		}
		col.print = &printer{kind: printable(sample.Type()), resolver: c.resolver}
		return
	}
	if op := wellKnownOp(md); op != 0 {
		c.wellKnownColumn(col, f, op, md)
		return
	}
	c.structColumn(col, f, sample, path)
}

func (c *compiler) structColumn(col *column, f *table.Field, sample protoreflect.Message, path string) {
	md := sample.Descriptor()
	f.Type, col.op = table.Struct, opStruct
	if slices.Contains(c.outer, md.FullName()) {
		c.fault(row.KindRecursive, path, "the message %s contains itself: expected one that does not, or a marker as JSON", md.FullName())
		return
	}
	if len(c.outer) > table.MaxDepth {
		c.fault(row.KindDepth, path, "lies below %d STRUCTs: expected at most %d levels, or a marker as JSON", len(c.outer)-1, table.MaxDepth)
		return
	}
	col.members, f.Fields = c.message(sample, path)
}

func (c *compiler) mapColumn(col *column, f *table.Field, sample protoreflect.Message, fd protoreflect.FieldDescriptor, m mark.Mark, path string) {
	col.op, col.wire, f.Type = opMap, protowire.BytesType, table.Struct
	if m != mark.None {
		c.faults = append(c.faults, m.Refuse(path, "a map", carriers(m)+", such as the map's value"))
	}
	if len(c.outer) > table.MaxDepth {
		c.fault(row.KindDepth, path, "lies below %d STRUCTs: expected at most %d levels", len(c.outer)-1, table.MaxDepth)
		return
	}
	col.compare = keyOrder(fd.MapKey().Kind())
	col.members, f.Fields = c.entry(sample.NewField(fd).Map(), fd, path)
}

// entry plans the entries of a map as message does messages. Both fields of an entry are always there.
func (c *compiler) entry(sample protoreflect.Map, fd protoreflect.FieldDescriptor, path string) (*message, []table.Field) {
	c.outer = append(c.outer, fd.Message().FullName())
	defer func() { c.outer = c.outer[:len(c.outer)-1] }()
	c.columns += 2
	m := &message{columns: make([]column, 2)}
	fields := make([]table.Field, 2)
	for i, member := range []protoreflect.FieldDescriptor{fd.MapKey(), fd.MapValue()} {
		col, at := &m.columns[i], table.Join(path, string(member.Name()))
		if member.Message() == nil {
			fields[i] = c.column(col, nil, member, at)
		} else {
			fields[i] = c.entryMessage(col, sample.NewValue().Message(), member, at)
		}
		c.finish(col, member, i, &fields[i])
	}
	m.index()
	return m, fields
}

func (c *compiler) entryMessage(col *column, sample protoreflect.Message, fd protoreflect.FieldDescriptor, path string) table.Field {
	f := table.Field{Name: string(fd.Name())}
	*col = column{name: f.Name, number: fd.Number(), wire: protowire.BytesType, asEmpty: true}
	c.messageColumn(col, &f, sample, c.marked(fd, path), path)
	return f
}

// finish fills in what follows from a column's field in the schema, which is column i of its siblings.
func (c *compiler) finish(col *column, fd protoreflect.FieldDescriptor, i int, f *table.Field) {
	if len(c.faults) > 0 {
		return
	}
	col.tag = string(row.Tag(i, f))
	col.packed = f.Mode == table.Repeated && row.Packed(f)
	col.required = f.Mode == table.Required && fd.HasPresence()
	if !col.list && fd.Message() == nil && !col.dropText && (!fd.HasPresence() || inEntry(fd)) {
		zero, _ := new(scratch).value([]byte(col.tag), col, 0, nil)
		col.absent = string(zero)
	}
	if o := fd.ContainingOneof(); o != nil && !o.IsSynthetic() {
		for j := range o.Fields().Len() {
			if rival := o.Fields().Get(j); rival != fd {
				col.rivals = append(col.rivals, int32(rival.Index()))
			}
		}
	}
}

// scalar is how a field that is no message is read, its wire type, and its column's type.
func scalar(k protoreflect.Kind) (op, protowire.Type, table.Type) {
	switch k {
	case protoreflect.BoolKind:
		return opBool, protowire.VarintType, table.Bool
	case protoreflect.EnumKind:
		return opEnum, protowire.VarintType, table.String
	case protoreflect.Int32Kind:
		return opInt32, protowire.VarintType, table.Int64
	case protoreflect.Sint32Kind:
		return opSint32, protowire.VarintType, table.Int64
	case protoreflect.Uint32Kind:
		return opUint32, protowire.VarintType, table.Int64
	case protoreflect.Int64Kind:
		return opInt64, protowire.VarintType, table.Int64
	case protoreflect.Sint64Kind:
		return opSint64, protowire.VarintType, table.Int64
	case protoreflect.Uint64Kind:
		return opUint64, protowire.VarintType, table.Int64
	case protoreflect.Sfixed32Kind:
		return opInt32, protowire.Fixed32Type, table.Int64
	case protoreflect.Fixed32Kind:
		return opUint32, protowire.Fixed32Type, table.Int64
	case protoreflect.FloatKind:
		return opFloat, protowire.Fixed32Type, table.Float64
	case protoreflect.Sfixed64Kind:
		return opInt64, protowire.Fixed64Type, table.Int64
	case protoreflect.Fixed64Kind:
		return opUint64, protowire.Fixed64Type, table.Int64
	case protoreflect.DoubleKind:
		return opDouble, protowire.Fixed64Type, table.Float64
	case protoreflect.BytesKind:
		return opBytes, protowire.BytesType, table.Bytes
	}
	return opString, protowire.BytesType, table.String
}

// enumOf is the names of an enum's values, of several with one number the first.
func enumOf(d protoreflect.EnumDescriptor) *enum {
	e := &enum{short: string(d.Name()), names: map[int32]string{}}
	for i := range d.Values().Len() {
		v := d.Values().Get(i)
		if _, alias := e.names[int32(v.Number())]; !alias {
			e.names[int32(v.Number())] = string(v.Name())
		}
	}
	for n := int32(0); e.names[n] != ""; n++ {
		e.dense = append(e.dense, e.names[n])
	}
	return e
}
