package avrorow

import (
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/internal/mark"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/avro"
)

// Schema derives a table's schema from the Avro schema of its records. The error holds every fault as *row.Error of the C kinds,
// with the path of the field.
func Schema(text string, o Options) (*table.Schema, error) {
	_, s, err := derive(text, o)
	return s, err
}

func derive(text string, o Options) (*avro.Schema, *table.Schema, error) {
	root, err := avro.Parse(text)
	if err != nil {
		return nil, nil, rootError(err)
	}
	root.Prepare()
	if root.Kind != avro.Record {
		return nil, nil, fault(row.KindRoot, "", "the schema is of a "+root.Kind.String()+": expected a record, whose fields are the columns")
	}
	d := deriver{options: o, marks: mark.NewPaths(o.JSONPaths, o.GeographyPaths)}
	s := &table.Schema{Fields: d.record(root, "")}
	if len(d.faults) == 0 {
		d.faults = append(d.marks.Unmatched(), row.CheckSchema(s))
	}
	if err := errors.Join(d.faults...); err != nil {
		return nil, nil, err
	}
	return root, s, nil
}

func rootError(err error) error {
	e := &row.Error{Kind: row.KindRoot, Offset: -1, Msg: err.Error()}
	if s, ok := errors.AsType[*avro.SchemaError](err); ok {
		e.Path, e.Msg = s.Path, "the Avro schema cannot be read: "+s.Msg
	}
	return e
}

func fault(kind row.Kind, path, msg string) *row.Error {
	return &row.Error{Kind: kind, Path: path, Offset: -1, Msg: msg}
}

// deriver makes columns of the fields of records.
type deriver struct {
	options Options
	marks   *mark.Paths
	outer   []*avro.Schema // records being derived
	columns int
	faults  []error
}

func (d *deriver) fault(kind row.Kind, path, format string, args ...any) {
	d.faults = append(d.faults, fault(kind, path, fmt.Sprintf(format, args...)))
}

func (d *deriver) record(s *avro.Schema, path string) []table.Field {
	if slices.Contains(d.outer, s) {
		d.fault(row.KindRecursive, path, "the record %s contains itself", s.Name)
		return nil
	}
	d.outer = append(d.outer, s)
	defer func() { d.outer = d.outer[:len(d.outer)-1] }()
	fields := make([]table.Field, 0, len(s.Fields))
	for i := range s.Fields {
		// Records that name each other twice at every level would unfold without end.
		if d.columns++; d.columns > table.MaxColumns {
			if d.columns == table.MaxColumns+1 {
				d.fault(row.KindSchema, path, "more than %d columns, members of STRUCTs included: BigQuery's limit", table.MaxColumns)
			}
			break
		}
		f := &s.Fields[i]
		name := f.Name
		if d.options.RecognizeSQLTypes && f.DisplayName != "" {
			name = f.DisplayName
		}
		fields = append(fields, d.field(name, f.Type, table.Join(path, name)))
	}
	return fields
}

// field is the column of a field, or the value of a map.
func (d *deriver) field(name string, t *avro.Schema, path string) table.Field {
	f := table.Field{Name: name, Type: table.String}
	inner, nullable, ok := single(t)
	if !ok {
		d.fault(row.KindUnion, path, "a union of %s: expected one type, alone or with null", branchNames(t))
		return f
	}
	switch inner.Kind {
	case avro.Array:
		d.array(&f, inner, path)
		return f
	case avro.Map:
		d.mapping(&f, inner, path)
		return f
	}
	marked := d.column(&f, inner, path)
	if d.options.DeriveRequired && !nullable && !marked {
		f.Mode = table.Required
	}
	return f
}

// single takes the union off a type that has only one beside null.
func single(t *avro.Schema) (inner *avro.Schema, nullable, ok bool) {
	if t.Kind != avro.Union {
		return t, false, true
	}
	if other := t.Nullable(); other != nil {
		return other, true, other.Kind != avro.Null
	}
	return t.Branches[0], false, len(t.Branches) == 1 && t.Branches[0].Kind != avro.Null
}

func branchNames(t *avro.Schema) (names string) {
	for i, b := range t.Branches {
		if i > 0 {
			names += ", "
		}
		names += b.Kind.String()
	}
	return names
}

func (d *deriver) array(f *table.Field, t *avro.Schema, path string) {
	f.Mode = table.Repeated
	items, nullable, ok := single(t.Items)
	switch {
	case !ok:
		d.fault(row.KindUnion, path, "an array of a union of %s: expected one type", branchNames(t.Items))
	case nullable || items.Kind == avro.Array || items.Kind == avro.Map:
		what := "values that may be null"
		if !nullable {
			what = items.Kind.String() + "s"
		}
		d.fault(row.KindArray, path, "an array of %s: BigQuery has no such arrays; put them into a record", what)
	default:
		d.column(f, items, path)
	}
}

// mapping makes a map what BigQuery can hold: a list of keys and values.
func (d *deriver) mapping(f *table.Field, t *avro.Schema, path string) {
	f.Mode, f.Type = table.Repeated, table.Struct
	keyPath := table.Join(path, "key")
	d.refuse(path, "a map", "a string, or the values of a map: "+table.Join(path, "value"))
	d.refuse(keyPath, "the key of a map", "a string that is no key")
	key := table.Field{Name: "key", Type: table.String}
	if d.options.DeriveRequired {
		key.Mode = table.Required
	}
	d.columns += 2
	f.Fields = []table.Field{key, d.field("value", t.Values, table.Join(path, "value"))}
}

// marked is how a field is marked.
func (d *deriver) marked(path string, other mark.Mark) mark.Mark {
	m, err := d.marks.Of(path, other)
	if err != nil {
		d.faults = append(d.faults, err)
	}
	return m
}

// refuse makes it a fault when the field is marked.
func (d *deriver) refuse(path, what, expected string) {
	if m := d.marked(path, mark.None); m != mark.None {
		d.faults = append(d.faults, m.Refuse(path, what, expected))
	}
}

// column is the type of a column whose values are t, which is no union, array or map. marked columns are never REQUIRED.
func (d *deriver) column(f *table.Field, t *avro.Schema, path string) (marked bool) {
	if t.Kind == avro.String {
		return d.text(f, t, path)
	}
	if m := d.marked(path, mark.None); m != mark.None {
		d.faults = append(d.faults, m.Refuse(path, "of the Avro type "+t.Kind.String(), "a string"))
		return true
	}
	switch t.Kind {
	case avro.Null:
		d.fault(row.KindColType, path, "of the Avro type null: expected a union of null and another type")
	case avro.Record:
		f.Type = table.Struct
		f.Fields = d.record(t, path)
	case avro.Bytes, avro.Fixed:
		d.bytes(f, t, path)
	case avro.Enum:
		f.Type = table.String
	case avro.Boolean:
		f.Type = table.Bool
	case avro.Float, avro.Double:
		f.Type = table.Float64
	default:
		d.number(f, t, path)
	}
	return false
}

func (d *deriver) text(f *table.Field, t *avro.Schema, path string) (marked bool) {
	other := mark.None
	if d.options.RecognizeSQLTypes {
		switch {
		case t.Logical == datetime:
			f.Type = table.DateTime
			d.refuse(path, "of the logical type datetime", "a plain string")
			return false
		case t.SQLType == "JSON":
			other = mark.JSON
		case t.SQLType == "GEOGRAPHY":
			other = mark.Geography
		}
	}
	f.Type = table.String
	m := d.marked(path, other)
	if m != mark.None {
		f.Type = m.Type()
	}
	// What the schema says itself may be REQUIRED; what somebody marked may be "", which is no JSON.
	return m != mark.None && other == mark.None
}

// datetime is the logical type of DATETIME columns in a read session.
const datetime = "datetime"

func (d *deriver) bytes(f *table.Field, t *avro.Schema, path string) {
	f.Type = table.Bytes
	switch t.Annotation() {
	case avro.Decimal:
		d.decimal(f, t, path)
	case avro.BigDecimal:
		d.fault(row.KindLogical, path, "a big-decimal carries its scale in every value: expected decimal")
	case avro.UUID:
		d.fault(row.KindLogical, path, "a uuid of 16 bytes: expected one that is a string")
	case avro.Duration:
		d.fault(row.KindLogical, path, "a duration has milliseconds and no sign, which INTERVAL is not: expected numbers")
	}
}

func (d *deriver) decimal(f *table.Field, t *avro.Schema, path string) {
	p, s := t.Digits()
	switch {
	case d.options.RecognizeSQLTypes && p == 38 && s == 9:
		f.Type = table.Numeric
		return
	case d.options.RecognizeSQLTypes && p == 77 && s == 38:
		f.Type = table.BigNumeric
		return
	case s <= 9 && p-s <= 29:
		f.Type = table.Numeric
	case s <= 38 && p-s <= 38:
		f.Type = table.BigNumeric
	default:
		d.fault(row.KindDecimal, path, "decimal(%d, %d) has %d digits before the point: BIGNUMERIC keeps 38, and 38 behind it", p, s, p-s)
	}
	f.Precision, f.Scale = p, s
}

func (d *deriver) number(f *table.Field, t *avro.Schema, path string) {
	switch t.Annotation() {
	case avro.Date:
		f.Type = table.Date
	case avro.TimeMillis, avro.TimeMicros:
		f.Type = table.Time
	case avro.TimestampMillis, avro.TimestampMicros:
		f.Type = table.Timestamp
	case avro.LocalTimestampMillis, avro.LocalTimestampMicros:
		f.Type = table.DateTime
	case avro.TimestampNanos, avro.LocalTimestampNanos:
		d.fault(row.KindLogical, path, "%s: columns keep microseconds", t.Logical)
	default:
		f.Type = table.Int64
	}
}
