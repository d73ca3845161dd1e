package arrowipc

import (
	"fmt"
	"unicode/utf8"
)

// Kind is the kinds of Arrow type that can feed a column; Other is all the rest.
type Kind uint8

const (
	Other Kind = iota
	Int
	Float
	Bool
	Utf8
	Binary
	Decimal
	Date // in days
	Time // of 64 bits, in microseconds
	Timestamp
	YearMonth
	DayTime
	MonthDayNano
	List
	Struct
)

// Field is one field of a writer's schema.
type Field struct {
	Name string
	Kind Kind
	// Type is the Arrow type as messages spell it.
	Type string
	// Bits is the width of an Int, Float or Decimal.
	Bits   int
	Signed bool   // of an Int
	Zone   string // of a Timestamp
	// Precision and Scale are a Decimal's.
	Precision, Scale int32
	// Fields are a List's element or a Struct's members.
	Fields []*Field
}

// Schema is a writer's schema.
type Schema struct{ Fields []*Field }

// maxDepth bounds the nesting of types: twice the columns' 15 levels of STRUCT, as each may be in a list, and the column.
const maxDepth = 31

// ParseSchema reads a schema message. It refuses dictionary encoding and big-endian data.
func ParseSchema(b []byte) (*Schema, error) {
	m, err := parse(b, headerSchema)
	if err != nil {
		return nil, err
	}
	if len(m.body) > 0 {
		return nil, fmt.Errorf("an IPC schema message has no body, and this one has %d bytes", len(m.body))
	}
	if m.header.int16(0, 0) != 0 {
		return nil, fmt.Errorf("the schema is of big-endian data, expected little-endian")
	}
	// A field takes four bytes at least where it is listed, so there can be no more of them; tables may be shared.
	p := schemaParser{budget: len(m.meta.data) / 4}
	fields, err := p.fields(m.header, 1, "", 0)
	if err == nil && m.meta.broken {
		err = fmt.Errorf("the schema's metadata is malformed")
	}
	if err != nil {
		return nil, err
	}
	return &Schema{Fields: fields}, nil
}

type schemaParser struct{ budget int }

// fields reads a vector of fields.
func (p *schemaParser) fields(t table, slot int, parent string, depth int) ([]*Field, error) {
	start, n := t.vector(slot, 4)
	if p.budget -= n; p.budget < 0 || t.in.broken {
		return nil, fmt.Errorf("the schema's metadata is malformed")
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("field %s is nested more than %d levels deep", parent, maxDepth)
	}
	fields := make([]*Field, n)
	for i := range fields {
		at := start + 4*i
		var err error
		if fields[i], err = p.field(t.in.table(at+int(t.in.uint32(at))), parent, depth); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

func (p *schemaParser) field(t table, parent string, depth int) (*Field, error) {
	f := &Field{Name: t.text(0)}
	path := f.Name
	if parent != "" {
		path = parent + "." + f.Name
	}
	if !utf8.ValidString(f.Name) {
		return nil, fmt.Errorf("the name of field %q is not valid UTF-8", path)
	}
	if _, encoded := t.sub(4); encoded {
		return nil, fmt.Errorf("field %s is dictionary-encoded, which is not supported", path)
	}
	kind := t.byte(2, 0)
	typ, _ := t.sub(3)
	f.describe(kind, typ)
	if f.Kind != List && f.Kind != Struct {
		return f, nil
	}
	var err error
	f.Fields, err = p.fields(t, 5, path, depth+1)
	if err == nil && f.Kind == List && len(f.Fields) != 1 {
		err = fmt.Errorf("list field %s has %d element types, expected 1", path, len(f.Fields))
	}
	return f, err
}

// typeNames are the members of the union Type that are described by their name alone (Schema.fbs).
var typeNames = [...]string{
	1: "null", 4: "binary", 5: "utf8", 6: "bool", 12: "list", 13: "struct", 14: "union", 15: "fixed_size_binary",
	16: "fixed_size_list", 17: "map", 18: "duration", 19: "large_binary", 20: "large_utf8", 21: "large_list",
	22: "run_end_encoded", 23: "binary_view", 24: "utf8_view", 25: "list_view", 26: "large_list_view",
}

var byName = map[uint8]Kind{4: Binary, 5: Utf8, 6: Bool, 12: List, 13: Struct}

var units = [...]string{"s", "ms", "us", "ns"}

func unitName(u int16) string {
	if u < 0 || int(u) >= len(units) {
		return fmt.Sprintf("unit %d", u)
	}
	return units[u]
}

const micros = 2 // of Schema.fbs, TimeUnit

// describe fills in the type: a member of the union Type and its table.
func (f *Field) describe(kind uint8, t table) {
	switch kind {
	case 2:
		f.describeInt(t)
	case 3:
		f.Bits = 16 << max(0, min(2, t.int16(0, 0)))
		f.Type = fmt.Sprintf("float%d", f.Bits)
		if f.Bits > 16 {
			f.Kind = Float
		}
	case 7:
		f.describeDecimal(t)
	case 8:
		f.Type = "date64"
		if t.int16(0, 1) == 0 {
			f.Kind, f.Type = Date, "date32"
		}
	case 9:
		unit, bits := t.int16(0, 1), t.int32(1, 32)
		f.Type = fmt.Sprintf("time%d[%s]", bits, unitName(unit))
		if unit == micros && bits == 64 {
			f.Kind = Time
		}
	case 10:
		unit := t.int16(0, 0)
		f.Zone = t.text(1)
		f.Type = fmt.Sprintf("timestamp[%s, tz=%q]", unitName(unit), f.Zone)
		if unit == micros {
			f.Kind = Timestamp
		}
	case 11:
		f.describeInterval(t)
	default:
		f.Kind, f.Type = byName[kind], fmt.Sprintf("type %d", kind)
		if int(kind) < len(typeNames) && typeNames[kind] != "" {
			f.Type = typeNames[kind]
		}
	}
}

func (f *Field) describeInt(t table) {
	f.Bits, f.Signed = int(t.int32(0, 0)), t.byte(1, 0) != 0
	f.Type = fmt.Sprintf("int%d", f.Bits)
	if !f.Signed {
		f.Type = "u" + f.Type
	}
	switch f.Bits {
	case 8, 16, 32, 64:
		f.Kind = Int
	}
}

func (f *Field) describeDecimal(t table) {
	f.Precision, f.Scale, f.Bits = t.int32(0, 0), t.int32(1, 0), int(t.int32(2, 128))
	f.Type = fmt.Sprintf("decimal%d(%d, %d)", f.Bits, f.Precision, f.Scale)
	if f.Bits == 128 || f.Bits == 256 {
		f.Kind = Decimal
	}
}

func (f *Field) describeInterval(t table) {
	switch unit := t.int16(0, 0); unit {
	case 0:
		f.Kind, f.Type = YearMonth, "interval[year_month]"
	case 1:
		f.Kind, f.Type = DayTime, "interval[day_time]"
	case 2:
		f.Kind, f.Type = MonthDayNano, "interval[month_day_nano]"
	default:
		f.Type = fmt.Sprintf("interval[unit %d]", unit)
	}
}
