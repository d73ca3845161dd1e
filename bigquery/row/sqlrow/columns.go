package sqlrow

import (
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/internal/mark"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Options say how declared columns become columns of a table.
type Options struct {
	// DeriveRequired makes REQUIRED columns of those that are NOT NULL. By default they are NULLABLE: a REQUIRED column cannot
	// be added to a table that exists.
	DeriveRequired bool
	// JSONPaths and GeographyPaths are dotted paths of text that becomes a JSON or GEOGRAPHY column. A ROW may become JSON too.
	JSONPaths, GeographyPaths []string
	// PrimaryKey names the columns that rows of Delete have; they need not have any other.
	PrimaryKey []string
}

// Schema derives a table's schema from declared columns. The error holds every fault as *row.Error of the C kinds, with the
// path of the column.
func Schema(columns []Column, o Options) (*table.Schema, error) {
	d := deriver{required: o.DeriveRequired, marks: mark.NewPaths(o.JSONPaths, o.GeographyPaths)}
	if len(columns) == 0 {
		return nil, fault(row.KindEmpty, "", "a table needs at least one column")
	}
	s := &table.Schema{Fields: d.fields(columns, "", 0)}
	if len(d.faults) == 0 {
		d.faults = append(d.marks.Unmatched(), row.CheckSchema(s))
	}
	if err := errors.Join(d.faults...); err != nil {
		return nil, err
	}
	return s, nil
}

func fault(kind row.Kind, path, msg string) *row.Error {
	return &row.Error{Kind: kind, Path: path, Offset: -1, Msg: msg}
}

// deriver makes columns of declared ones.
type deriver struct {
	required bool
	marks    *mark.Paths
	faults   []error
}

func (d *deriver) fault(kind row.Kind, path, format string, args ...any) {
	d.faults = append(d.faults, fault(kind, path, fmt.Sprintf(format, args...)))
}

func (d *deriver) fields(columns []Column, path string, depth int) []table.Field {
	fields := make([]table.Field, len(columns))
	for i := range columns {
		fields[i] = d.field(columns[i].Name, &columns[i].Type, table.Join(path, columns[i].Name), depth)
	}
	return fields
}

// field is the column of a declared one that lies below depth STRUCTs, or the key or value of a map.
func (d *deriver) field(name string, t *Type, path string, depth int) table.Field {
	f := table.Field{Name: name, Type: table.String}
	m, err := d.marks.Of(path, mark.None)
	if err != nil {
		d.faults = append(d.faults, err)
		return f
	}
	switch t.Kind {
	case Array:
		f.Mode = table.Repeated
		d.element(&f, t.Elem, m, path, depth)
		return f
	case Map, Multiset:
		d.entries(&f, t, m, path, depth)
		return f
	}
	d.value(&f, t, m, path, depth)
	if d.required && t.NotNull && m == mark.None {
		f.Mode = table.Required
	}
	return f
}

func (d *deriver) element(f *table.Field, elem *Type, m mark.Mark, path string, depth int) {
	switch {
	case elem.Kind == Array || elem.Kind == Map || elem.Kind == Multiset:
		d.fault(row.KindArray, path, "an ARRAY of %v: expected elements of one value each, such as a ROW", elem)
	case !elem.NotNull:
		d.fault(row.KindArray, path, "an ARRAY whose elements may be NULL, which a column cannot hold: expected ARRAY<%v NOT NULL>", elem)
	default:
		d.value(f, elem, m, path, depth)
	}
}

// entries are the rows of key and value that maps and multisets become.
func (d *deriver) entries(f *table.Field, t *Type, m mark.Mark, path string, depth int) {
	if m != mark.None {
		d.faults = append(d.faults, m.Refuse(path, "a "+t.Kind.String(), "text, a ROW, or the value of a MAP as "+path+".value"))
		return
	}
	f.Type, f.Mode = table.Struct, table.Repeated
	if depth >= table.MaxDepth {
		d.deep(path)
		return
	}
	key, value := t.Elem, &count
	if t.Kind == Map {
		key, value = t.Key, t.Elem
	}
	f.Fields = []table.Field{d.key(key, table.Join(path, "key"), depth+1), d.field("value", value, table.Join(path, "value"), depth+1)}
}

// count is how often an element is in a multiset.
var count = Type{Kind: BigInt, NotNull: true}

func (d *deriver) key(t *Type, path string, depth int) table.Field {
	if m, _ := d.marks.Of(path, mark.None); m != mark.None {
		d.faults = append(d.faults, m.Refuse(path, "the key of a MAP", "text, a ROW, or the value of a MAP"))
	}
	f := table.Field{Name: "key", Type: table.String}
	if t.Kind == Array || t.Kind == Map || t.Kind == Multiset {
		d.fault(row.KindColType, path, "%v as a key: expected one value", t)
		return f
	}
	d.value(&f, t, mark.None, path, depth)
	if d.required {
		f.Mode = table.Required
	}
	return f
}

func (d *deriver) deep(path string) {
	d.fault(row.KindDepth, path, "lies below %d STRUCTs: expected at most %d levels", table.MaxDepth, table.MaxDepth)
}

// value gives f the type of one value.
func (d *deriver) value(f *table.Field, t *Type, m mark.Mark, path string, depth int) {
	if m != mark.None {
		d.marked(f, t, m, path)
		return
	}
	switch t.Kind {
	case Row:
		d.structure(f, t, path, depth)
	case Decimal:
		d.decimal(f, t, path)
	case Time, Timestamp, TimestampLTZ:
		if t.Precision < 0 || t.Precision > 6 {
			d.fault(row.KindColType, path, "%v: expected a precision of at most 6, for columns keep microseconds", t)
		}
		f.Type = scalars[t.Kind]
	default:
		if f.Type = scalars[t.Kind]; f.Type == 0 {
			f.Type = table.String
			d.fault(row.KindColType, path, "%v has no column: expected another type, or a cast to STRING", t)
		}
	}
}

// scalars are the columns of types that need no second look.
var scalars = map[Kind]table.Type{Boolean: table.Bool, TinyInt: table.Int64, SmallInt: table.Int64, Int: table.Int64, BigInt: table.Int64,
	Float: table.Float64, Double: table.Float64, Char: table.String, Varchar: table.String, Binary: table.Bytes, Varbinary: table.Bytes,
	Date: table.Date, Time: table.Time, Timestamp: table.DateTime, TimestampLTZ: table.Timestamp}

func (d *deriver) marked(f *table.Field, t *Type, m mark.Mark, path string) {
	f.Type = m.Type()
	switch {
	case t.Kind.text():
	case t.Kind != Row || m != mark.JSON:
		d.faults = append(d.faults, m.Refuse(path, "a "+t.String(), map[mark.Mark]string{mark.JSON: "text or a ROW", mark.Geography: "text"}[m]))
	default:
		if _, err := printer(t, path); err != nil {
			d.faults = append(d.faults, err)
		}
	}
}

func (d *deriver) structure(f *table.Field, t *Type, path string, depth int) {
	f.Type = table.Struct
	switch {
	case len(t.Fields) == 0:
		d.fault(row.KindEmpty, path, "a ROW without members")
	case depth >= table.MaxDepth:
		d.deep(path)
	default:
		f.Fields = d.fields(t.Fields, path, depth+1)
	}
}

func (d *deriver) decimal(f *table.Field, t *Type, path string) {
	if t.Precision < 1 || t.Precision > 38 || t.Scale < 0 || t.Scale > t.Precision {
		d.fault(row.KindColType, path, "%v: expected a precision of 1 to 38, and a scale of at most that", t)
		return
	}
	f.Type, f.Precision, f.Scale = table.BigNumeric, int64(t.Precision), int64(t.Scale)
	if t.Scale <= 9 && t.Precision-t.Scale <= 29 {
		f.Type = table.Numeric
	}
}
