package structrow

import (
	"encoding/json"
	"errors"
	"math/big"
	"sync"
	"time"
	"unicode/utf8"

	"cloud.google.com/go/civil"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/internal/gotime"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Columns are the columns of records of type T, each with the function that reads it. They serve records whose fields are
// not the columns, of any type at all.
//
//	structrow.Columns[Order]{
//		{Name: "id", Mode: table.Required, Value: structrow.Int64(func(o *Order) (int64, bool) { return o.id, true })},
//		{Name: "lines", Mode: table.Repeated, Value: structrow.List(
//			func(o *Order) []Line { return o.lines }, structrow.Struct(lineColumns, func(l *Line) *Line { return l }))},
//	}
type Columns[T any] []Column[T]

// Column is one column.
type Column[T any] struct {
	Name  string
	Mode  table.Mode // Repeated for a List, and for nothing else
	Value Value[T]
}

// Value is a column's type and how it is read from a record. The functions below make them. The function it is made of
// answers false for NULL. It must not keep the record nor change it, and may be called from many goroutines.
type Value[T any] struct {
	field  table.Field // without name and mode, for List that of an element
	list   bool
	faults []error // of the columns within, with paths relative to this one
	// append appends the value behind tag. present is false for NULL, when nothing was appended.
	append func(buf []byte, rec *T, tag string) (out []byte, present bool, e *row.Error)
}

// scalar makes the Value of a type from the function that reads it and the one that appends it.
func scalar[T, V any](typ table.Type, read func(*T) (V, bool), appendTo func([]byte, V) ([]byte, error)) Value[T] {
	return Value[T]{field: table.Field{Type: typ}, append: func(buf []byte, rec *T, tag string) ([]byte, bool, *row.Error) {
		v, ok := read(rec)
		if !ok {
			return buf, false, nil
		}
		out, err := appendTo(append(buf, tag...), v)
		if err != nil {
			return buf, false, row.At(err, "", -1)
		}
		return out, true, nil
	}}
}

// Bool is a BOOL column.
func Bool[T any](read func(*T) (bool, bool)) Value[T] {
	return scalar(table.Bool, read, func(b []byte, v bool) ([]byte, error) { return row.AppendBool(b, v), nil })
}

// Int64 is an INT64 column.
func Int64[T any](read func(*T) (int64, bool)) Value[T] {
	return scalar(table.Int64, read, func(b []byte, v int64) ([]byte, error) { return row.AppendInt(b, v), nil })
}

// Float64 is a FLOAT64 column.
func Float64[T any](read func(*T) (float64, bool)) Value[T] {
	return scalar(table.Float64, read, func(b []byte, v float64) ([]byte, error) { return row.AppendFloat(b, v), nil })
}

// String is a STRING column. The text must be UTF-8.
func String[T any](read func(*T) (string, bool)) Value[T] {
	return scalar(table.String, read, appendText)
}

// Geography is a GEOGRAPHY column of WKT or GeoJSON, which is not checked.
func Geography[T any](read func(*T) (string, bool)) Value[T] {
	return scalar(table.Geography, read, appendText)
}

func appendText(b []byte, v string) ([]byte, error) {
	if !utf8.ValidString(v) {
		return b, errUTF8
	}
	return row.AppendText(b, v), nil
}

// JSON is a JSON column of JSON text, which is checked.
func JSON[T any](read func(*T) ([]byte, bool)) Value[T] {
	return scalar(table.JSON, read, func(b []byte, v []byte) ([]byte, error) {
		if !json.Valid(v) || !utf8.Valid(v) {
			return b, errJSON
		}
		return row.AppendText(b, v), nil
	})
}

// Bytes is a BYTES column. The bytes are copied.
func Bytes[T any](read func(*T) ([]byte, bool)) Value[T] {
	return scalar(table.Bytes, read, func(b []byte, v []byte) ([]byte, error) { return row.AppendText(b, v), nil })
}

// Timestamp is a TIMESTAMP column. Digits below the microsecond are cut off.
func Timestamp[T any](read func(*T) (time.Time, bool)) Value[T] {
	return scalar(table.Timestamp, read, appendingInt(gotime.Instant))
}

// Date is a DATE column.
func Date[T any](read func(*T) (civil.Date, bool)) Value[T] {
	return scalar(table.Date, read, appendingInt(gotime.Days))
}

// Time is a TIME column. Digits below the microsecond must be zero.
func Time[T any](read func(*T) (civil.Time, bool)) Value[T] {
	return scalar(table.Time, read, appendingInt(func(t civil.Time) (int64, error) {
		micros, err := gotime.Clock(t)
		return row.PackTime(micros), err
	}))
}

// DateTime is a DATETIME column. Digits below the microsecond must be zero.
func DateTime[T any](read func(*T) (civil.DateTime, bool)) Value[T] {
	return scalar(table.DateTime, read, appendingInt(func(d civil.DateTime) (int64, error) {
		micros, err := gotime.DateTime(d)
		if err != nil {
			return 0, err
		}
		return row.PackDateTime(micros), nil
	}))
}

func appendingInt[V any](convert func(V) (int64, error)) func([]byte, V) ([]byte, error) {
	return func(b []byte, v V) ([]byte, error) {
		n, err := convert(v)
		return row.AppendInt(b, n), err
	}
}

// Numeric is a NUMERIC column. Digits it does not keep are an error. nil is NULL.
func Numeric[T any](read func(*T) *big.Rat) Value[T] { return decimal(table.Numeric, read) }

// BigNumeric is a BIGNUMERIC column.
func BigNumeric[T any](read func(*T) *big.Rat) Value[T] { return decimal(table.BigNumeric, read) }

func decimal[T any](typ table.Type, read func(*T) *big.Rat) Value[T] {
	d := row.DecimalOf(&table.Field{Type: typ})
	present := func(rec *T) (*big.Rat, bool) {
		r := read(rec)
		return r, r != nil
	}
	return scalar(typ, present, func(b []byte, v *big.Rat) ([]byte, error) {
		s, err := d.FromRat(v)
		return row.AppendScaled(b, s), err
	})
}

// Struct is a STRUCT column, NULL where read answers nil.
func Struct[T, U any](columns Columns[U], read func(*T) *U) Value[T] {
	members := columns.plan()
	field := table.Field{Type: table.Struct, Fields: columns.fields()}
	return Value[T]{field: field, faults: columns.faults(), append: func(buf []byte, rec *T, tag string) ([]byte, bool, *row.Error) {
		inner := read(rec)
		if inner == nil {
			return buf, false, nil
		}
		out, start := row.BeginLength(append(buf, tag...))
		out, e := appendColumns(members, out, inner)
		if e != nil {
			return buf, false, e
		}
		return row.EndLength(out, start), true, nil
	}}
}

// List is a REPEATED column of the elements that read answers. An element that is NULL is an error.
func List[T, E any](read func(*T) []E, of Value[E]) Value[T] {
	packed := row.Packed(&of.field)
	faults := of.faults
	if of.list {
		faults = append(faults, typeError(row.KindArray, "", "a List of Lists: BigQuery has no arrays of arrays"))
	}
	return Value[T]{field: of.field, list: true, faults: faults, append: func(buf []byte, rec *T, tag string) ([]byte, bool, *row.Error) {
		elements := read(rec)
		if len(elements) == 0 {
			return buf, true, nil
		}
		start := 0
		if packed {
			buf, start = row.BeginLength(append(buf, tag...))
			tag = ""
		}
		for i := range elements {
			out, present, e := of.append(buf, &elements[i], tag)
			if e == nil && !present {
				e = row.At(errNilElem, "", -1)
			}
			if e != nil {
				return buf, false, e.Element(i)
			}
			buf = out
		}
		if packed {
			buf = row.EndLength(buf, start)
		}
		return buf, true, nil
	}}
}

type columnPlan[T any] struct {
	name     string
	tag      string
	required bool
	append   func(buf []byte, rec *T, tag string) ([]byte, bool, *row.Error)
}

func (c Columns[T]) fields() []table.Field {
	fields := make([]table.Field, len(c))
	for i := range c {
		fields[i] = c[i].Value.field
		fields[i].Name, fields[i].Mode = c[i].Name, c[i].Mode
	}
	return fields
}

// faults are what is wrong with the columns and their schema does not show.
func (c Columns[T]) faults() (faults []error) {
	for i := range c {
		v := &c[i].Value
		switch {
		case v.append == nil:
			faults = append(faults, typeError(row.KindColType, c[i].Name, "the column has no Value"))
		case v.list != (c[i].Mode == table.Repeated):
			faults = append(faults, typeError(row.KindSchema, c[i].Name, "the mode is "+c[i].Mode.String()+": expected REPEATED for a List, and for nothing else"))
		}
		for _, err := range v.faults {
			var e *row.Error
			if errors.As(err, &e) {
				inner := *e
				faults = append(faults, inner.Within(c[i].Name))
			}
		}
	}
	return faults
}

func (c Columns[T]) plan() []columnPlan[T] {
	fields := c.fields()
	plans := make([]columnPlan[T], len(c))
	for i := range c {
		plans[i] = columnPlan[T]{c[i].Name, string(row.Tag(i, &fields[i])), c[i].Mode == table.Required, c[i].Value.append}
	}
	return plans
}

func appendColumns[T any](columns []columnPlan[T], buf []byte, rec *T) ([]byte, *row.Error) {
	for i := range columns {
		c := &columns[i]
		out, present, e := c.append(buf, rec, c.tag)
		if e == nil && !present && c.required {
			e = &row.Error{Kind: row.KindRequired, Offset: -1, Msg: "no value, expected one: the column is REQUIRED"}
		}
		if e != nil {
			return buf, e.Within(c.name)
		}
		buf = out
	}
	return buf, nil
}

// ColumnSerializer makes rows of records by Columns. It implements row.Serializer and has one schema for all destinations.
type ColumnSerializer[T any] struct {
	schema     *table.Schema
	descriptor *descriptorpb.DescriptorProto
	columns    []columnPlan[T]
	records    sync.Pool // of *T: functions take the record by its address
}

var _ row.Serializer[struct{}] = (*ColumnSerializer[struct{}])(nil)

// Serializer makes a ColumnSerializer. The error holds every fault of the columns as *row.Error of the C kinds.
func (c Columns[T]) Serializer() (*ColumnSerializer[T], error) {
	schema := &table.Schema{Fields: c.fields()}
	if err := errors.Join(c.faults()...); err != nil {
		return nil, err
	}
	d, err := row.Descriptor(schema)
	if err != nil {
		return nil, err
	}
	s := &ColumnSerializer[T]{schema: schema, descriptor: d, columns: c.plan()}
	s.records.New = func() any { return new(T) }
	return s, nil
}

// Schema is the columns.
func (s *ColumnSerializer[T]) Schema(table.Destination) (*table.Schema, error) { return s.schema, nil }

// Descriptor is row.Descriptor of the schema.
func (s *ColumnSerializer[T]) Descriptor(table.Destination) (*descriptorpb.DescriptorProto, error) {
	return s.descriptor, nil
}

// Fingerprint is 0: the schema never changes.
func (s *ColumnSerializer[T]) Fingerprint(table.Destination) uint64 { return 0 }

// AppendRow appends the row of rec. Errors are *row.Error values with the path of the column.
func (s *ColumnSerializer[T]) AppendRow(buf []byte, _ table.Destination, rec T) ([]byte, error) {
	p := s.records.Get().(*T)
	*p = rec
	out, e := appendColumns(s.columns, buf, p)
	var zero T
	*p = zero
	s.records.Put(p)
	if e != nil {
		return out, e
	}
	return out, nil
}
