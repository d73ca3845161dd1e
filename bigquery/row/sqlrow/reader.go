package sqlrow

import (
	"errors"
	"fmt"
	"math"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Reader turns rows read from BigQuery into rows of declared columns. It may be used from many goroutines.
type Reader struct {
	columns []decoder
}

// NewReader makes the Reader of rows that have the columns of s, which are found by name, ignoring case. The error holds
// every declared column that none of s can become, as *row.Error: of kind D-SCHEMA, D-INTERVAL, C-TYPE or C-ARRAY.
func NewReader(columns []Column, s *table.Schema) (*Reader, error) {
	m := matcher{}
	r := &Reader{columns: m.columns(columns, s.Fields, "")}
	return r, errors.Join(m.faults...)
}

// Read returns the row, one value for each declared column and in their order. Texts and bytes in it are those of r. An error
// is a *row.Error of kind D-NULL or D-OVERFLOW.
func (r *Reader) Read(in *row.Row) ([]row.Value, error) {
	out, err := members(r.columns, in.Values)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// matcher finds a way from columns of a table to declared ones.
type matcher struct{ faults []error }

func (m *matcher) fault(kind row.Kind, path, format string, args ...any) {
	m.faults = append(m.faults, fault(kind, path, fmt.Sprintf(format, args...)))
}

func (m *matcher) columns(columns []Column, fields []table.Field, path string) []decoder {
	ds := make([]decoder, len(columns))
	for i := range columns {
		at := table.Join(path, columns[i].Name)
		f := find(fields, columns[i].Name)
		if f < 0 {
			m.fault(row.KindResolve, at, "is declared, and what is read has no such column")
			continue
		}
		ds[i] = m.column(&columns[i].Type, &fields[f], at)
		ds[i].name, ds[i].from = columns[i].Name, f
	}
	return ds
}

// find prefers the column whose name is the same to one that differs in case.
func find(fields []table.Field, name string) int {
	found := -1
	for i := range fields {
		if fields[i].Name == name {
			return i
		}
		if found < 0 && table.FoldName(fields[i].Name) == table.FoldName(name) {
			found = i
		}
	}
	return found
}

func (m *matcher) column(t *Type, f *table.Field, path string) decoder {
	d := decoder{kind: t.Kind, required: t.NotNull}
	if f.Mode != table.Repeated {
		m.value(&d, t, f, path)
		return d
	}
	switch t.Kind {
	case Array:
		m.elements(&d, t, f, path)
	case Map, Multiset:
		m.entries(&d, t, f, path)
	default:
		m.mismatch(t, "ARRAY of "+f.Type.String(), path)
	}
	return d
}

func (m *matcher) mismatch(t *Type, column, path string) {
	m.fault(row.KindResolve, path, "is declared as %v, which a column of %s does not become", t, column)
}

func (m *matcher) elements(d *decoder, t *Type, f *table.Field, path string) {
	if k := t.Elem.Kind; k == Array || k == Map || k == Multiset {
		m.fault(row.KindArray, path, "an ARRAY of %v: BigQuery has no lists of lists", t.Elem)
		return
	}
	one := decoder{kind: t.Elem.Kind}
	m.value(&one, t.Elem, f, path)
	d.repeated, d.members = true, []decoder{one}
}

// entries reads rows of key and value as a map.
func (m *matcher) entries(d *decoder, t *Type, f *table.Field, path string) {
	d.repeated = true
	if f.Type != table.Struct || len(f.Fields) != 2 || find(f.Fields, "key") < 0 || find(f.Fields, "value") < 0 {
		m.fault(row.KindResolve, path, "is declared as %v: expected a column ARRAY<STRUCT<key, value>>", t)
		return
	}
	key, value := t.Elem, &count
	if t.Kind == Map {
		key, value = t.Key, t.Elem
	}
	d.members = m.columns([]Column{{"key", *key}, {"value", *value}}, f.Fields, path)
	d.members[0].required = true
}

// readable are the columns that a type reads, and all there is to it but for what value adds.
var readable = map[Kind][]table.Type{
	Boolean: {table.Bool}, TinyInt: {table.Int64}, SmallInt: {table.Int64}, Int: {table.Int64}, BigInt: {table.Int64},
	Float: {table.Float64}, Double: {table.Float64}, Decimal: {table.Numeric, table.BigNumeric},
	Char: {table.String, table.JSON, table.Geography}, Varchar: {table.String, table.JSON, table.Geography},
	Binary: {table.Bytes}, Varbinary: {table.Bytes}, Date: {table.Date}, Time: {table.Time}, Timestamp: {table.DateTime},
	TimestampLTZ: {table.Timestamp}, Row: {table.Struct, table.Range}, Array: nil, Map: nil, Multiset: nil}

func (m *matcher) value(d *decoder, t *Type, f *table.Field, path string) {
	columns, known := readable[t.Kind]
	switch {
	case !known:
		m.fault(row.KindColType, path, "%v has no column: declare another type, and cast to STRING in a query", t)
		return
	case f.Type == table.Interval:
		m.fault(row.KindInterval, path, "is declared as %v: months, days and microseconds fit no type of SQL; read a query that casts the column to STRING", t)
		return
	}
	for _, c := range columns {
		if f.Type == c {
			m.parameters(d, t, f, path)
			return
		}
	}
	m.mismatch(t, f.Type.String(), path)
}

func (m *matcher) parameters(d *decoder, t *Type, f *table.Field, path string) {
	switch t.Kind {
	case TinyInt, SmallInt, Int:
		d.limit = 1 << (map[Kind]int{TinyInt: 7, SmallInt: 15, Int: 31}[t.Kind])
	case Decimal:
		d.precision, d.scale = t.Precision, t.Scale
		if t.Precision < 1 || t.Precision > 38 || t.Scale < 0 || t.Scale > t.Precision {
			m.fault(row.KindColType, path, "%v: expected a precision of 1 to 38, and a scale of at most that", t)
		}
	case Time, Timestamp, TimestampLTZ:
		if t.Precision < 0 || t.Precision > 9 {
			m.fault(row.KindColType, path, "%v: expected a precision of 0 to 9", t)
		}
		d.step = 1
		for range 6 - t.Precision {
			d.step *= 10
		}
	case Row:
		m.structure(d, t, f, path)
	}
	d.typ = t
}

func (m *matcher) structure(d *decoder, t *Type, f *table.Field, path string) {
	fields := f.Fields
	if f.Type == table.Range {
		fields = []table.Field{{Name: "start", Type: f.Range}, {Name: "end", Type: f.Range}}
		if len(t.Fields) != 2 || find(fields[:1], t.Fields[0].Name) < 0 || find(fields[1:], t.Fields[1].Name) < 0 {
			m.fault(row.KindResolve, path, "is declared as %v: a RANGE becomes a ROW of start and end, in this order", t)
			return
		}
	}
	d.members = m.columns(t.Fields, fields, path)
}

// decoder reads one declared column. It is made once and never changes.
type decoder struct {
	name     string
	kind     Kind
	typ      *Type
	from     int // which of the columns that are read
	required bool
	repeated bool

	limit            int64 // of small integers: the first that does not fit
	precision, scale int   // of Decimal
	step             int64 // of times: microseconds that are kept
	members          []decoder
}

func members(ds []decoder, in []row.Value) ([]row.Value, *row.Error) {
	out := make([]row.Value, len(ds))
	for i := range ds {
		d := &ds[i]
		var err *row.Error
		if out[i], err = d.column(&in[d.from]); err != nil {
			return nil, err.Within(d.name)
		}
	}
	return out, nil
}

func (d *decoder) column(v *row.Value) (row.Value, *row.Error) {
	switch {
	case d.repeated && d.kind == Array:
		return d.list(v.List)
	case d.repeated:
		return d.entries(v.List)
	case v.Null && d.required:
		return row.Value{}, fault(row.KindNull, "", "NULL in a column that is declared NOT NULL")
	case v.Null:
		return row.Value{Null: true}, nil
	}
	return d.value(v)
}

func (d *decoder) list(in []row.Value) (row.Value, *row.Error) {
	out := row.Value{List: make([]row.Value, len(in))}
	for i := range in {
		var err *row.Error
		if out.List[i], err = d.members[0].value(&in[i]); err != nil {
			return out, err.Element(i)
		}
	}
	return out, nil
}

// entries reads a map. Of entries with one key the last one counts, in the place of the first.
func (d *decoder) entries(in []row.Value) (row.Value, *row.Error) {
	out := row.Value{List: make([]row.Value, 0, len(in))}
	place := make(map[string]int, len(in))
	for i := range in {
		pair, err := members(d.members, in[i].List)
		if err != nil {
			return out, err.Element(i)
		}
		key := identity(&pair[0])
		if at, twice := place[key]; twice {
			out.List[at] = row.Value{List: pair}
			continue
		}
		place[key] = len(out.List)
		out.List = append(out.List, row.Value{List: pair})
	}
	return out, nil
}

// identity is a text that equal values have, and no others.
func identity(v *row.Value) string {
	return fmt.Sprintf("%v %d %q %s", v.Null, v.Int, v.Bytes, identities(v.List))
}

func identities(vs []row.Value) (s string) {
	for i := range vs {
		s += fmt.Sprintf("%q,", identity(&vs[i]))
	}
	return s
}

func (d *decoder) value(v *row.Value) (row.Value, *row.Error) {
	switch d.kind {
	case TinyInt, SmallInt, Int:
		if v.Int >= d.limit || v.Int < -d.limit {
			return row.Value{}, d.overflow()
		}
	case Float:
		narrow := float64(float32(math.Float64frombits(uint64(v.Int))))
		return row.Value{Int: int64(math.Float64bits(narrow))}, nil
	case Decimal:
		return d.number(v)
	case Time, Timestamp, TimestampLTZ:
		over := v.Int % d.step
		if over < 0 {
			over += d.step
		}
		return row.Value{Int: v.Int - over}, nil
	case Row:
		list, err := members(d.members, v.List)
		return row.Value{List: list}, err
	}
	return *v, nil
}

func (d *decoder) overflow() *row.Error {
	return fault(row.KindOverflow, "", fmt.Sprintf("the value does not fit %v: declare a wider type", d.typ))
}

// number rounds to the declared scale first, halves away from zero, and looks at the precision then.
func (d *decoder) number(v *row.Value) (row.Value, *row.Error) {
	n, err := row.ScaledFromBigEndian(v.Bytes)
	if err != nil {
		return row.Value{}, row.At(err, "", -1)
	}
	n, ok := n.Rounded(int(v.Int), d.scale, d.precision)
	if !ok {
		return row.Value{}, d.overflow()
	}
	return row.Value{Bytes: n.AppendBigEndian(nil), Int: int64(d.scale)}, nil
}
