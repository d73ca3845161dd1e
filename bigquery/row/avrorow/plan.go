package avrorow

import (
	"slices"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/avro"
)

// op is how a value is read and written.
type op uint8

const (
	opNull op = iota + 1
	opRefused
	opBool
	opInt
	opDate
	opTimeMillis
	opTimeMicros
	opTimestampMillis
	opTimestampMicros
	opDateTimeMillis
	opDateTimeMicros
	opIntAsFloat  // an int or long where a float is asked for
	opIntAsDouble // an int or long where a double is asked for
	opFloat
	opDouble
	opText  // also bytes where a string is asked for
	opUUID  // text
	opBytes // also a string where bytes are asked for
	opFixed
	opEnum
	opDecimal
	opFixedDecimal
	opDateTimeText
	opStruct
	opArray
	opMap
)

// plan says how a record's bytes become the columns of a row: one step for each of the writer's fields, in their order.
type plan struct {
	steps    []step
	constant string // columns that the writer's schema lacks, as their defaults
}

// step reads one value.
type step struct {
	op       op
	name     string // of the column
	field    string // the writer's; "" for what is no field
	tag      string // goes before each value; empty within a packed list
	required bool
	narrow   bool // an int: 32 bits
	packed   bool

	skip     *avro.Schema // a field that the reader's schema lacks
	branches []step       // of the writer's union; nil where it has none
	some     *step        // the step of a value: this one, or the only branch beside null
	why      string       // opRefused

	size    int      // opFixed, opFixedDecimal
	symbols []string // opEnum: by the writer's number, with their length before them; "" is one that the reader does not know
	decimal row.Decimal
	scale   int   // of a decimal
	plan    *plan // opStruct, and what an entry of a map is
	elem    *step // opArray; of opMap the value
	key     string
}

// compile makes the plan by which a record that was written with w becomes a row of fields, which were derived from r. An error
// is a *row.Error of kind D-SCHEMA.
func compile(w, r *avro.Schema, fields []table.Field) (*plan, error) {
	if w.Kind != avro.Record {
		return nil, unresolved("", "the writer's schema is of a "+w.Kind.String()+": expected a record")
	}
	p, e := record(w, r, fields)
	if e != nil {
		return nil, e
	}
	return p, nil
}

func unresolved(path, msg string) *row.Error { return fault(row.KindResolve, path, msg) }

func record(w, r *avro.Schema, fields []table.Field) (*plan, *row.Error) {
	p := &plan{steps: make([]step, len(w.Fields))}
	from := match(w, r)
	for i := range r.Fields {
		rf := &r.Fields[i]
		if k := from[i]; k >= 0 {
			s, e := field(w.Fields[k].Type, rf.Type, &fields[i], i)
			if e != nil {
				return nil, e.Within(rf.Name)
			}
			s.field = w.Fields[k].Name
			p.steps[k] = s
			continue
		}
		constant, e := missing(rf, &fields[i], i)
		if e != nil {
			return nil, e.Within(rf.Name)
		}
		p.constant += constant
	}
	for k := range p.steps {
		if p.steps[k].op == 0 {
			p.steps[k] = step{name: w.Fields[k].Name, skip: w.Fields[k].Type}
		}
	}
	return p, nil
}

// match finds the writer's field of each of the reader's, by name and then by the reader's aliases; -1 where there is none.
func match(w, r *avro.Schema) []int {
	byName := make(map[string]int, len(w.Fields))
	for k := range w.Fields {
		byName[w.Fields[k].Name] = k
	}
	from := make([]int, len(r.Fields))
	for i := range r.Fields {
		from[i] = -1
		if k, ok := byName[r.Fields[i].Name]; ok {
			from[i] = k
			delete(byName, r.Fields[i].Name)
		}
	}
	for i := range r.Fields {
		for _, alias := range r.Fields[i].Aliases {
			if k, ok := byName[alias]; ok && from[i] < 0 {
				from[i] = k
				delete(byName, alias)
			}
		}
	}
	return from
}

// missing is what a column is that the writer's schema lacks, as bytes of the row.
func missing(rf *avro.Field, f *table.Field, i int) (string, *row.Error) {
	if rf.Default == nil {
		return "", unresolved("", "the writer's schema lacks this field, and it has no default")
	}
	b, err := avro.AppendDefault(nil, rf.Type, rf.Default)
	if err != nil {
		return "", unresolved("", err.Error())
	}
	s, e := field(rf.Type, rf.Type, f, i)
	if e != nil {
		return "", e
	}
	var d decoding
	out, next := d.field(nil, b, 0, &s)
	if next < 0 {
		return "", unresolved("", "the default is no value of the column: "+d.err.Msg)
	}
	return string(out), nil
}

// field plans column i.
func field(w, r *avro.Schema, f *table.Field, i int) (step, *row.Error) {
	inner, _, _ := single(r)
	return union(w, inner, f, string(row.Tag(i, f)))
}

// union plans a value that may be a union in the bytes. Which branches fit shows value by value.
func union(w, r *avro.Schema, f *table.Field, tag string) (step, *row.Error) {
	if w.Kind == avro.Null {
		return step{op: opNull, name: f.Name, required: f.Mode == table.Required}, nil
	}
	if w.Kind != avro.Union {
		return value(w, r, f, tag)
	}
	s := step{name: f.Name, required: f.Mode == table.Required, branches: make([]step, len(w.Branches))}
	var refused *row.Error
	for k, b := range w.Branches {
		branch, e := union(b, r, f, tag)
		if e != nil {
			branch, refused = step{op: opRefused, why: e.Msg}, e
		}
		s.branches[k] = branch
	}
	for k := range s.branches {
		if o := s.branches[k].op; o != opRefused && o != opNull {
			s.op, s.some = o, &s.branches[k]
		}
	}
	if s.some == nil && refused != nil {
		return s, refused
	}
	if s.some == nil {
		s.op = opNull
	}
	return s, nil
}

// value plans a value that is no union.
func value(w, r *avro.Schema, f *table.Field, tag string) (step, *row.Error) {
	s := step{name: f.Name, tag: tag, required: f.Mode == table.Required}
	var e *row.Error
	switch r.Kind {
	case avro.Array:
		e = s.array(w, r, f)
	case avro.Map:
		e = s.mapping(w, r, f)
	default:
		e = s.scalar(w, r, f)
	}
	return s, e
}

func differ(w, r *avro.Schema) *row.Error {
	return unresolved("", "the writer's type is "+w.Kind.String()+", which does not become "+r.Kind.String())
}

func (s *step) array(w, r *avro.Schema, f *table.Field) *row.Error {
	if w.Kind != avro.Array {
		return differ(w, r)
	}
	if w.Items.Empty() {
		return unresolved("", "an array of elements that take no bytes")
	}
	s.op, s.packed = opArray, row.Packed(f)
	element := *f
	element.Mode = table.Nullable
	tag := s.tag
	if s.packed {
		tag = ""
	}
	inner, _, _ := single(r.Items)
	elem, e := union(w.Items, inner, &element, tag)
	s.elem = &elem
	return e
}

func (s *step) mapping(w, r *avro.Schema, f *table.Field) *row.Error {
	if w.Kind != avro.Map {
		return differ(w, r)
	}
	s.op, s.key = opMap, string(row.Tag(0, &f.Fields[0]))
	elem, e := field(w.Values, r.Values, &f.Fields[1], 1)
	if e != nil {
		return e.Within("value")
	}
	s.elem = &elem
	return nil
}

func (s *step) scalar(w, r *avro.Schema, f *table.Field) *row.Error {
	switch r.Kind {
	case avro.Record:
		if w.Kind != avro.Record {
			return differ(w, r)
		}
		var e *row.Error
		s.op = opStruct
		s.plan, e = record(w, r, f.Fields)
		return e
	case avro.Enum:
		return s.enum(w, r)
	case avro.Fixed:
		if w.Kind != avro.Fixed || w.Size != r.Size || !sameName(w, r) {
			return unresolved("", "the writer's type is "+named(w)+": expected the fixed type "+r.Name+" of "+strconv.Itoa(r.Size)+" bytes")
		}
	default:
		if !promotes(w.Kind, r.Kind) {
			return differ(w, r)
		}
	}
	if f.Type == table.Numeric || f.Type == table.BigNumeric {
		return s.decimals(w, r, f)
	}
	s.narrow, s.size = w.Kind == avro.Int, w.Size
	o, ok := s.operation(w, r, f.Type)
	if !ok {
		return unresolved("", "the writer's type has the logical type "+strconv.Quote(w.Logical)+", the reader's "+strconv.Quote(r.Logical))
	}
	s.op = o
	return nil
}

func named(s *avro.Schema) string {
	if s.Name == "" {
		return s.Kind.String()
	}
	return s.Name
}

// sameName compares names of enums and fixed types without their namespaces, as the specification has it, and the reader's
// aliases.
func sameName(w, r *avro.Schema) bool {
	last := func(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }
	return last(w.Name) == last(r.Name) || slices.Contains(r.Aliases, w.Name)
}

// promotes says whether the values of a primitive can be read as another (Avro specification, "Schema Resolution").
func promotes(w, r avro.Kind) bool {
	switch r {
	case w:
		return true
	case avro.Long:
		return w == avro.Int
	case avro.Float:
		return w == avro.Int || w == avro.Long
	case avro.Double:
		return w == avro.Int || w == avro.Long || w == avro.Float
	case avro.String:
		return w == avro.Bytes
	case avro.Bytes:
		return w == avro.String
	}
	return false
}

func (s *step) enum(w, r *avro.Schema) *row.Error {
	if w.Kind != avro.Enum || !sameName(w, r) {
		return unresolved("", "the writer's type is "+named(w)+": expected the enum "+r.Name)
	}
	s.op = opEnum
	for _, symbol := range w.Symbols {
		if !slices.Contains(r.Symbols, symbol) {
			symbol = r.Default
		}
		text := ""
		if symbol != "" {
			text = string(row.AppendText(nil, symbol))
		}
		s.symbols = append(s.symbols, text)
	}
	return nil
}

func (s *step) decimals(w, r *avro.Schema, f *table.Field) *row.Error {
	wp, ws := w.Digits()
	rp, rs := r.Digits()
	if w.Annotation() != avro.Decimal || wp != rp || ws != rs {
		return unresolved("", "the writer's type is no decimal of the same precision and scale")
	}
	s.decimal, s.size, s.op, s.scale = row.DecimalOf(f), w.Size, opDecimal, int(ws)
	if w.Kind == avro.Fixed {
		s.op = opFixedDecimal
	}
	return nil
}

// operation finds the op of a value by the column's type. Times are read by the writer's unit where it says one of the same
// sort, else by the reader's: a number must never become a thousand times itself.
func (s *step) operation(w, r *avro.Schema, t table.Type) (op, bool) {
	switch t {
	case table.Bool:
		return opBool, true
	case table.Int64:
		return opInt, true
	case table.Float64:
		return floatOps[w.Kind][r.Kind], true
	case table.String, table.JSON, table.Geography:
		if r.Annotation() == avro.UUID {
			return opUUID, true
		}
		return opText, true
	case table.Bytes:
		if w.Kind == avro.Fixed {
			return opFixed, true
		}
		return opBytes, true
	case table.DateTime:
		if r.Kind == avro.String {
			return opDateTimeText, true
		}
	}
	unit := r.Annotation()
	if wa := w.Annotation(); wa != avro.None {
		if timeOps[wa].column != timeOps[unit].column {
			return 0, false
		}
		unit = wa
	}
	return timeOps[unit].op, true
}

var floatOps = map[avro.Kind]map[avro.Kind]op{
	avro.Int:    {avro.Float: opIntAsFloat, avro.Double: opIntAsDouble},
	avro.Long:   {avro.Float: opIntAsFloat, avro.Double: opIntAsDouble},
	avro.Float:  {avro.Float: opFloat, avro.Double: opFloat},
	avro.Double: {avro.Double: opDouble},
}

var timeOps = map[avro.Annotation]struct {
	op     op
	column table.Type
}{
	avro.Date:                 {opDate, table.Date},
	avro.TimeMillis:           {opTimeMillis, table.Time},
	avro.TimeMicros:           {opTimeMicros, table.Time},
	avro.TimestampMillis:      {opTimestampMillis, table.Timestamp},
	avro.TimestampMicros:      {opTimestampMicros, table.Timestamp},
	avro.LocalTimestampMillis: {opDateTimeMillis, table.DateTime},
	avro.LocalTimestampMicros: {opDateTimeMicros, table.DateTime},
}
