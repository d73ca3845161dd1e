package structrow

import (
	"reflect"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// structField is a field that becomes a column.
type structField struct {
	name     string
	nullable bool // tagged so
	typ      reflect.Type
	hops     []hop // embedded structs on the way to it, the outermost first
	offset   uintptr
	tagged   bool
	depth    int // embedded structs on the way
}

// hop is an embedded pointer to a struct that has to be followed.
type hop struct {
	offset uintptr
	typ    reflect.Type // of the struct
}

// columnsOf lists the fields of a struct that become columns, in the order of the source. Fields of embedded structs are
// the struct's own; of several with one name the least deeply embedded wins, then a tagged one, as in encoding/json and the
// official client. Where no one wins the fault is told, instead of leaving the field out.
func columnsOf(t reflect.Type, path string) ([]structField, error) {
	var c collector
	c.collect(t, path, nil, 0, 0, []reflect.Type{t})
	if c.err != nil {
		return nil, c.err
	}
	winners := map[string]int{}
	for i, f := range c.fields {
		key := table.FoldName(f.name)
		best, ok := winners[key]
		if !ok || f.depth < c.fields[best].depth || f.depth == c.fields[best].depth && f.tagged && !c.fields[best].tagged {
			winners[key] = i
		}
	}
	var out []structField
	for i, f := range c.fields {
		best := winners[table.FoldName(f.name)]
		if b := c.fields[best]; best != i && f.depth == b.depth && f.tagged == b.tagged {
			return nil, &row.Error{Kind: row.KindCase, Path: table.Join(path, f.name), Offset: -1,
				Msg: "two fields have this name, which BigQuery takes without regard to case: tag one of them"}
		}
		if best == i {
			out = append(out, f)
		}
	}
	return out, nil
}

type collector struct {
	fields []structField
	err    error
}

func (c *collector) collect(t reflect.Type, path string, hops []hop, offset uintptr, depth int, outer []reflect.Type) {
	for i := range t.NumField() {
		sf := t.Field(i)
		name, nullable, skip, err := parseTag(sf, path)
		if err != nil && c.err == nil {
			c.err = err
		}
		if skip || err != nil {
			continue
		}
		if embedded, pointer := embeddedStruct(sf); embedded != nil && name == "" {
			if slices.Contains(outer, embedded) {
				c.err = typeError(row.KindRecursive, table.Join(path, sf.Name), "the type embeds itself")
				return
			}
			inner, at := hops, offset+sf.Offset
			if pointer {
				inner, at = append(slices.Clone(hops), hop{at, embedded}), 0
			}
			c.collect(embedded, path, inner, at, depth+1, append(slices.Clone(outer), embedded))
			continue
		}
		if !sf.IsExported() {
			continue
		}
		f := structField{name: name, nullable: nullable, typ: sf.Type, hops: hops, offset: offset + sf.Offset, tagged: name != "", depth: depth}
		if f.name == "" {
			f.name = sf.Name
		}
		c.fields = append(c.fields, f)
	}
}

// embeddedStruct is the struct that a field lends its fields from, nil when it is a field like any other. Pointers to
// structs of unexported types cannot be set, so they count for nothing.
func embeddedStruct(sf reflect.StructField) (t reflect.Type, pointer bool) {
	if !sf.Anonymous {
		return nil, false
	}
	t = sf.Type
	if t.Kind() == reflect.Pointer {
		t, pointer = t.Elem(), true
	}
	if t.Kind() != reflect.Struct || scalarOf(t) != 0 || pointer && !sf.IsExported() {
		return nil, false
	}
	if _, null := nullType(t); null {
		return nil, false
	}
	return t, pointer
}

func parseTag(sf reflect.StructField, path string) (name string, nullable, skip bool, err error) {
	tag, ok := sf.Tag.Lookup("bigquery")
	if !ok {
		return "", false, false, nil
	}
	if tag == "-" {
		return "", false, true, nil
	}
	name, rest, more := strings.Cut(tag, ",")
	if !more {
		return name, false, false, nil
	}
	for option := range strings.SplitSeq(rest, ",") {
		switch option {
		case "nullable":
			nullable = true
		case "json":
			err = typeError(row.KindColType, table.Join(path, sf.Name), `the tag option "json" is not supported: `+
				"make the field a json.RawMessage, which is a JSON column")
		default:
			err = typeError(row.KindColType, table.Join(path, sf.Name), "unknown tag option "+option+`: expected "nullable"`)
		}
	}
	return name, nullable, false, err
}

func typeError(kind row.Kind, path, msg string) error {
	return &row.Error{Kind: kind, Path: path, Offset: -1, Msg: msg}
}
