package storageread

import (
	"errors"
	"slices"
	"strconv"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/avro"
)

// ReaderSchema is an Avro schema that rows are read with: columns by name or alias, in its own order, defaults for what the session
// lacks, wider types. Rows carry the columns that it makes.
type ReaderSchema struct {
	root *avro.Schema
	text string
}

// ParseReaderSchema reads the schema. An error is a *row.Error of kind C-ROOT.
func ParseReaderSchema(text string) (*ReaderSchema, error) {
	root, err := avro.Parse(text)
	if err != nil {
		e := &row.Error{Kind: row.KindRoot, Offset: -1, Msg: "the reader's schema cannot be read: " + err.Error()}
		if s, ok := errors.AsType[*avro.SchemaError](err); ok {
			e.Path, e.Msg = s.Path, "the reader's schema cannot be read: "+s.Msg
		}
		return nil, e
	}
	if root.Kind != avro.Record {
		return nil, &row.Error{Kind: row.KindRoot, Offset: -1, Msg: "the reader's schema is of a " + root.Kind.String() + ": expected a record"}
	}
	root.Prepare()
	return &ReaderSchema{root, text}, nil
}

// Decoder compiles the Avro schema of a session for what this read wants of it.
func (c *Config) Decoder(avroSchema string) (*Decoder, error) {
	if c.ReaderSchema == nil {
		return NewDecoder(avroSchema, c.Columns)
	}
	return newReaderDecoder(avroSchema, c.ReaderSchema)
}

// newReaderDecoder resolves a session's schema into a reader's. An error of kind D-SCHEMA says that no value could ever fit.
func newReaderDecoder(avroSchema string, reader *ReaderSchema) (*Decoder, error) {
	root, err := parseSchema(avroSchema)
	if err != nil {
		return nil, err
	}
	var v resolver
	p, fields, e := v.record(root, reader.root)
	if e != nil {
		return nil, e
	}
	d := &Decoder{plan: p}
	d.row.Schema = &table.Schema{Fields: fields}
	p.text(fields)
	d.row.Values = make([]row.Value, p.width)
	return d, nil
}

// resolver makes the plan by which a session's record is read as a reader's. Names of records are not compared: a session calls its
// own __root__ and __s_0.
type resolver struct{ all planner }

func (v *resolver) skipping(n *node, name string) step {
	if v.all.made == nil {
		v.all.made = map[*member]*plan{}
	}
	return v.all.step(n, name)
}

func mismatch(msg string) *row.Error {
	return &row.Error{Kind: row.KindResolve, Offset: -1, Msg: msg}
}

func (v *resolver) record(n *node, r *avro.Schema) (*plan, []table.Field, *row.Error) {
	p := &plan{width: len(r.Fields)}
	fields := make([]table.Field, len(r.Fields))
	met := make([]bool, len(r.Fields))
	for _, m := range n.fields {
		i := readerField(r, n, m.name)
		if i < 0 {
			p.steps = append(p.steps, v.skipping(m.node, m.name))
			continue
		}
		s, f, e := v.value(m.node, r.Fields[i].Type)
		if e != nil {
			return nil, nil, e.Within(r.Fields[i].Name)
		}
		s.name, s.slot, f.Name, met[i] = r.Fields[i].Name, i, r.Fields[i].Name, true
		p.steps, fields[i] = append(p.steps, s), f
	}
	for i := range r.Fields {
		if met[i] {
			continue
		}
		value, f, e := defaultOf(&r.Fields[i])
		if e != nil {
			return nil, nil, e.Within(r.Fields[i].Name)
		}
		f.Name = r.Fields[i].Name
		fields[i] = f
		p.constants = append(p.constants, constant{i, value})
	}
	return p, fields, nil
}

// readerField is the reader's field for one of the session's: that of its name, or one with it as an alias whose own name the session
// has not.
func readerField(r *avro.Schema, n *node, name string) int {
	for i := range r.Fields {
		if r.Fields[i].Name == name {
			return i
		}
	}
	for i := range r.Fields {
		own := func(m member) bool { return m.name == r.Fields[i].Name }
		if slices.Contains(r.Fields[i].Aliases, name) && !slices.ContainsFunc(n.fields, own) && firstAlias(&r.Fields[i], n) == name {
			return i
		}
	}
	return -1
}

// firstAlias is the alias by which a field is found: the first that the session has.
func firstAlias(f *avro.Field, n *node) string {
	for _, a := range f.Aliases {
		if slices.ContainsFunc(n.fields, func(m member) bool { return m.name == a }) {
			return a
		}
	}
	return ""
}

// value plans a value of the session as the reader's type. Whether a null fits shows value by value.
func (v *resolver) value(n *node, r *avro.Schema) (step, table.Field, *row.Error) {
	if r.Kind == avro.Union {
		return v.branch(n, r)
	}
	s := v.skipping(n, "")
	f := table.Field{Mode: table.Required}
	s.refuse = n.nullable
	switch r.Kind {
	case avro.Array:
		if n.op != opArray {
			return s, f, mismatch("the reader asks for an array, the session has " + n.typ.String())
		}
		elem, f, e := v.value(n.elem, r.Items)
		if e != nil {
			return s, f, e
		}
		s.elem, f.Mode = &elem, table.Repeated
		return s, f, nil
	case avro.Record:
		if n.op != opStruct || n.typ == table.Interval && r.SQLType != "INTERVAL" && r.SQLType != "" {
			return s, f, mismatch("the reader asks for a record, the session has " + n.typ.String())
		}
		sub, members, e := v.record(n, r)
		s.sub, f.Type, f.Fields = sub, table.Struct, members
		if n.typ != table.Struct && sub.identical(n) {
			f.Type, f.Range, f.Fields = n.typ, n.element, nil
		}
		return s, f, e
	}
	e := s.scalar(n, r, &f)
	return s, f, e
}

// identical says whether a plan reads a record as it is, so that a RANGE or an INTERVAL stays one.
func (p *plan) identical(n *node) bool {
	if len(p.steps) != len(n.fields) || len(p.constants) > 0 {
		return false
	}
	for i := range p.steps {
		if p.steps[i].slot != i || p.steps[i].op != n.fields[i].node.op {
			return false
		}
	}
	return true
}

// branch plans a value as the first of the reader's branches that takes it (Avro specification, "Schema Resolution").
func (v *resolver) branch(n *node, r *avro.Schema) (step, table.Field, *row.Error) {
	var first *row.Error
	nullable := slices.ContainsFunc(r.Branches, func(b *avro.Schema) bool { return b.Kind == avro.Null })
	for _, b := range r.Branches {
		if b.Kind == avro.Null {
			continue
		}
		s, f, e := v.value(n, b)
		if e == nil {
			s.refuse = n.nullable && !nullable
			if nullable && f.Mode == table.Required {
				f.Mode = table.Nullable
			}
			return s, f, nil
		}
		if first == nil {
			first = e
		}
	}
	if first == nil {
		first = mismatch("the reader asks for null alone")
	}
	return step{}, table.Field{}, first
}

// scalar plans a value that is neither list nor record.
func (s *step) scalar(n *node, r *avro.Schema, f *table.Field) *row.Error {
	other := mismatch("the reader asks for " + r.Kind.String() + ", the session has " + n.typ.String())
	switch r.Kind {
	case avro.Boolean:
		f.Type = table.Bool
		return unless(n.op == opBool, other)
	case avro.Int, avro.Long:
		f.Type = timeType(r)
		if n.op != opInt && (n.op != opLong || r.Kind == avro.Int) {
			return other
		}
		return unless(compatible(n.typ, f.Type), mismatch("the reader asks for "+f.Type.String()+", the session has "+n.typ.String()))
	case avro.Float, avro.Double:
		f.Type = table.Float64
		s.toDouble, s.toFloat = n.op == opInt || n.op == opLong, r.Kind == avro.Float
		return unless(s.toDouble || n.op == opDouble && r.Kind == avro.Double, other)
	case avro.String:
		return s.text(n, r, f)
	case avro.Bytes:
		return s.bytes(n, r, f)
	}
	return other // enums, fixed types and maps are in no session
}

func unless(ok bool, e *row.Error) *row.Error {
	if ok {
		return nil
	}
	return e
}

// timeType is the column of an int or a long, by its annotation.
func timeType(r *avro.Schema) table.Type {
	switch r.Annotation() {
	case avro.Date:
		return table.Date
	case avro.TimeMillis, avro.TimeMicros:
		return table.Time
	case avro.TimestampMillis, avro.TimestampMicros, avro.TimestampNanos:
		return table.Timestamp
	case avro.LocalTimestampMillis, avro.LocalTimestampMicros, avro.LocalTimestampNanos:
		return table.DateTime
	}
	return table.Int64
}

// compatible says whether a number of one type can be read as another: the same, or one of them plain.
func compatible(session, reader table.Type) bool {
	return session == reader || reader == table.Int64 || session == table.Int64
}

func (s *step) text(n *node, r *avro.Schema, f *table.Field) *row.Error {
	f.Type = table.String
	switch {
	case r.Logical == "datetime":
		f.Type = table.DateTime
		return unless(n.op == opDateTime, mismatch("the reader asks for DATETIME, the session has "+n.typ.String()))
	case r.SQLType == "JSON":
		f.Type = table.JSON
	case r.SQLType == "GEOGRAPHY":
		f.Type = table.Geography
	}
	s.op = opBytes
	return unless(n.op == opBytes || n.op == opDateTime, mismatch("the reader asks for string, the session has "+n.typ.String()))
}

func (s *step) bytes(n *node, r *avro.Schema, f *table.Field) *row.Error {
	if r.Annotation() != avro.Decimal {
		s.op, f.Type = opBytes, table.Bytes
		return unless(n.op == opBytes || n.op == opDateTime || n.op == opDecimal, mismatch("the reader asks for bytes, the session has "+n.typ.String()))
	}
	p, scale := r.Digits()
	f.Type, f.Precision, f.Scale = n.typ, p, scale
	if p == 38 && scale == 9 || p == 77 && scale == 38 {
		f.Precision, f.Scale = 0, 0
	}
	return unless(n.op == opDecimal && n.precision == p && n.scale == scale, mismatch("the reader asks for decimal("+strconv.FormatInt(p, 10)+", "+
		strconv.FormatInt(scale, 10)+"), the session has "+n.typ.String()+" of another precision and scale"))
}

// defaultOf is the value of a field that the session lacks.
func defaultOf(f *avro.Field) (row.Value, table.Field, *row.Error) {
	if f.Default == nil {
		return row.Value{}, table.Field{}, mismatch("the session has no such column, and it has no default")
	}
	datum, err := avro.AppendDefault(nil, f.Type, f.Default)
	if err != nil {
		return row.Value{}, table.Field{}, mismatch(err.Error())
	}
	n, err := (&nodes{left: maxColumns}).of(f.Type, 0)
	if err != nil {
		return row.Value{}, table.Field{}, mismatch("the default is of a type that columns do not have")
	}
	whole := &node{op: opStruct, typ: table.Struct, fields: []member{{f.Name, n}}}
	d := &Decoder{plan: identity(whole)}
	d.row.Values = make([]row.Value, 1)
	if _, err := d.Decode(datum); err != nil {
		return row.Value{}, table.Field{}, mismatch("the default is no value of its type")
	}
	return d.row.Values[0], n.column(f.Name), nil
}

// nodes makes nodes of a reader's types, as those of a session would be, for their defaults. Types that contain themselves, or unfold
// without end, are no columns.
type nodes struct{ left int }

func (m *nodes) of(r *avro.Schema, depth int) (*node, error) {
	m.left--
	if depth++; depth > maxDepth || m.left < 0 {
		return nil, errors.ErrUnsupported
	}
	switch r.Kind {
	case avro.Union:
		other := r.Nullable()
		if other == nil || other.Kind == avro.Null {
			return nil, errors.ErrUnsupported
		}
		n, err := m.of(other, depth)
		if err != nil {
			return nil, err
		}
		named := *n
		some := byte(0)
		if r.Branches[0].Kind == avro.Null {
			some = 1
		}
		named.nullable, named.some, named.null = true, some<<1, (1-some)<<1
		return &named, nil
	case avro.Array:
		elem, err := m.of(r.Items, depth)
		if err != nil || elem.nullable {
			return nil, errors.ErrUnsupported
		}
		return &node{op: opArray, typ: elem.typ, elem: elem, size: 1}, nil
	case avro.Record:
		n := &node{op: opStruct, typ: table.Struct, size: 1}
		for i := range r.Fields {
			f, err := m.of(r.Fields[i].Type, depth)
			if err != nil {
				return nil, err
			}
			n.fields = append(n.fields, member{r.Fields[i].Name, f})
		}
		if len(n.fields) == 0 {
			return nil, errors.ErrUnsupported
		}
		return n, nil
	case avro.Boolean:
		return &node{op: opBool, typ: table.Bool, size: 1}, nil
	case avro.Int:
		return &node{op: opInt, typ: timeType(r), size: 1}, nil
	case avro.Long:
		return &node{op: opLong, typ: timeType(r), size: 1}, nil
	case avro.Double:
		return &node{op: opDouble, typ: table.Float64, size: 1}, nil
	case avro.Float:
		return &node{op: opFloat, typ: table.Float64, size: 1}, nil
	case avro.String:
		return stringNode(&avroType{SQLType: r.SQLType, LogicalType: onlyDatetime(r.Logical)}, "")
	case avro.Bytes:
		if r.Annotation() == avro.Decimal {
			return bytesNode(&avroType{LogicalType: "decimal", Precision: r.Precision, Scale: zeroUnless(r.Scale)}, "")
		}
		return &node{op: opBytes, typ: table.Bytes, size: 1}, nil
	}
	return nil, errors.ErrUnsupported
}

func onlyDatetime(logical string) string {
	if logical == "datetime" {
		return logical
	}
	return ""
}

func zeroUnless(scale *int64) *int64 {
	if scale == nil {
		return new(int64)
	}
	return scale
}
