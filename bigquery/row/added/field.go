package added

import (
	"fmt"
	"math/big"
	"time"
	"unicode/utf8"

	"cloud.google.com/go/civil"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/internal/gotime"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Policy says what becomes of a record for which there is no value.
type Policy uint8

const (
	Nullable Policy = iota // the column is NULLABLE, and NULL
	Required               // the column is REQUIRED: an error of the record
)

// Field is a column that is computed from records of type T. The functions below make them. The functions that they are
// made of are called from many goroutines, and must not keep a record nor change it.
type Field[T any] struct {
	name   string
	policy Policy
	typ    table.Type
	form   form[T]
}

// form appends the value of a record behind tag. present is false when there is none and nothing was appended.
type form[T any] func(buf, tag []byte, rec T) (out []byte, present bool, err error)

// provided marks an error that is not of a value but of the function that was to compute it.
type provided struct{ cause error }

func (p *provided) Error() string { return "its function failed: " + p.cause.Error() }

// typed makes the Field of a type from the function that computes it and the one that appends it.
func typed[T, V any](name string, p Policy, t table.Type, f func(T) (V, bool, error), appendTo func([]byte, V) ([]byte, error)) Field[T] {
	if f == nil {
		return Field[T]{name: name, policy: p, typ: t}
	}
	return Field[T]{name, p, t, func(buf, tag []byte, rec T) ([]byte, bool, error) {
		v, ok, err := f(rec)
		if err != nil {
			return buf, false, &provided{err}
		}
		if !ok {
			return buf, false, nil
		}
		out, err := appendTo(append(buf, tag...), v)
		if err != nil {
			return buf, false, err
		}
		return out, true, nil
	}}
}

// Bool is a BOOL column.
func Bool[T any](name string, p Policy, f func(T) (bool, bool, error)) Field[T] {
	return typed(name, p, table.Bool, f, appendBool)
}

// Int64 is an INT64 column.
func Int64[T any](name string, p Policy, f func(T) (int64, bool, error)) Field[T] {
	return typed(name, p, table.Int64, f, appendInt)
}

// Float64 is a FLOAT64 column.
func Float64[T any](name string, p Policy, f func(T) (float64, bool, error)) Field[T] {
	return typed(name, p, table.Float64, f, appendFloat)
}

// Numeric is a NUMERIC column. Digits it does not keep are an error. nil is no value.
func Numeric[T any](name string, p Policy, f func(T) (*big.Rat, bool, error)) Field[T] {
	return typed(name, p, table.Numeric, orNil(f), appendRat(table.Numeric))
}

// BigNumeric is a BIGNUMERIC column.
func BigNumeric[T any](name string, p Policy, f func(T) (*big.Rat, bool, error)) Field[T] {
	return typed(name, p, table.BigNumeric, orNil(f), appendRat(table.BigNumeric))
}

func orNil[T any](f func(T) (*big.Rat, bool, error)) func(T) (*big.Rat, bool, error) {
	if f == nil {
		return nil
	}
	return func(rec T) (*big.Rat, bool, error) {
		r, ok, err := f(rec)
		return r, ok && r != nil, err
	}
}

// String is a STRING column. The text must be UTF-8.
func String[T any](name string, p Policy, f func(T) (string, bool, error)) Field[T] {
	return typed(name, p, table.String, f, appendText[string])
}

// Bytes is a BYTES column. The bytes are copied.
func Bytes[T any](name string, p Policy, f func(T) ([]byte, bool, error)) Field[T] {
	return typed(name, p, table.Bytes, f, appendBytes)
}

// Date is a DATE column.
func Date[T any](name string, p Policy, f func(T) (civil.Date, bool, error)) Field[T] {
	return typed(name, p, table.Date, f, appendDate)
}

// Time is a TIME column. Digits below the microsecond must be zero.
func Time[T any](name string, p Policy, f func(T) (civil.Time, bool, error)) Field[T] {
	return typed(name, p, table.Time, f, appendTime)
}

// DateTime is a DATETIME column. Digits below the microsecond must be zero.
func DateTime[T any](name string, p Policy, f func(T) (civil.DateTime, bool, error)) Field[T] {
	return typed(name, p, table.DateTime, f, appendDateTime)
}

// Timestamp is a TIMESTAMP column. Digits below the microsecond are cut off, towards the past.
func Timestamp[T any](name string, p Policy, f func(T) (time.Time, bool, error)) Field[T] {
	return typed(name, p, table.Timestamp, f, appendInstant)
}

// JSON is a JSON column of JSON text, which is not checked but for being UTF-8.
func JSON[T any](name string, p Policy, f func(T) ([]byte, bool, error)) Field[T] {
	return typed(name, p, table.JSON, f, appendText[[]byte])
}

// Geography is a GEOGRAPHY column of WKT or GeoJSON, which is not checked but for being UTF-8.
func Geography[T any](name string, p Policy, f func(T) (string, bool, error)) Field[T] {
	return typed(name, p, table.Geography, f, appendText[string])
}

// Dynamic is a column whose function answers a value of the Go type that the column's own function above takes: an int64
// for INT64, a civil.Date for DATE, and for JSON a string or a []byte. nil is no value; any other Go type is an error of
// the record.
func Dynamic[T any](name string, p Policy, t table.Type, f func(T) (any, error)) Field[T] {
	field := Field[T]{name: name, policy: p, typ: t}
	if f == nil {
		return field
	}
	field.form = func(buf, tag []byte, rec T) ([]byte, bool, error) {
		v, err := f(rec)
		if err != nil {
			return buf, false, &provided{err}
		}
		if r, ok := v.(*big.Rat); v == nil || ok && r == nil {
			return buf, false, nil
		}
		out, err := appendAny(append(buf, tag...), t, v)
		if err != nil {
			return buf, false, err
		}
		return out, true, nil
	}
	return field
}

// goTypes are the Go types of the columns that can be added, as errors name them.
var goTypes = map[table.Type]string{
	table.Bool: "bool", table.Int64: "int64", table.Float64: "float64", table.Numeric: "*big.Rat", table.BigNumeric: "*big.Rat",
	table.String: "string", table.Bytes: "[]byte", table.Date: "civil.Date", table.Time: "civil.Time",
	table.DateTime: "civil.DateTime", table.Timestamp: "time.Time", table.JSON: "string or []byte", table.Geography: "string",
}

// appendAny appends a value whose Go type says what it is, which must be the column's.
func appendAny(buf []byte, t table.Type, v any) ([]byte, error) {
	switch v := v.(type) {
	case bool:
		if t == table.Bool {
			return appendBool(buf, v)
		}
	case int64:
		if t == table.Int64 {
			return appendInt(buf, v)
		}
	case float64:
		if t == table.Float64 {
			return appendFloat(buf, v)
		}
	case *big.Rat:
		if t == table.Numeric || t == table.BigNumeric {
			return appendRat(t)(buf, v)
		}
	case string:
		if t == table.String || t == table.JSON || t == table.Geography {
			return appendText(buf, v)
		}
	case []byte:
		if t == table.Bytes {
			return appendBytes(buf, v)
		}
		if t == table.JSON {
			return appendText(buf, v)
		}
	}
	return appendAnyTime(buf, t, v)
}

func appendAnyTime(buf []byte, t table.Type, v any) ([]byte, error) {
	switch v := v.(type) {
	case time.Time:
		if t == table.Timestamp {
			return appendInstant(buf, v)
		}
	case civil.Date:
		if t == table.Date {
			return appendDate(buf, v)
		}
	case civil.Time:
		if t == table.Time {
			return appendTime(buf, v)
		}
	case civil.DateTime:
		if t == table.DateTime {
			return appendDateTime(buf, v)
		}
	}
	return buf, &row.ValueError{Kind: row.KindType, Msg: fmt.Sprintf("requires %s but received %T", goTypes[t], v)}
}

var errUTF8 = &row.ValueError{Kind: row.KindText, Msg: "the text is not valid UTF-8"}

func appendBool(buf []byte, v bool) ([]byte, error)     { return row.AppendBool(buf, v), nil }
func appendInt(buf []byte, v int64) ([]byte, error)     { return row.AppendInt(buf, v), nil }
func appendFloat(buf []byte, v float64) ([]byte, error) { return row.AppendFloat(buf, v), nil }
func appendBytes(buf []byte, v []byte) ([]byte, error)  { return row.AppendText(buf, v), nil }

func appendText[S string | []byte](buf []byte, v S) ([]byte, error) {
	out := row.AppendText(buf, v)
	if !utf8.Valid(out[len(out)-len(v):]) {
		return buf, errUTF8
	}
	return out, nil
}

func appendRat(t table.Type) func([]byte, *big.Rat) ([]byte, error) {
	d := row.DecimalOf(&table.Field{Type: t})
	return func(buf []byte, v *big.Rat) ([]byte, error) {
		s, err := d.FromRat(v)
		return row.AppendScaled(buf, s), err
	}
}

func appendDate(buf []byte, v civil.Date) ([]byte, error) {
	n, err := gotime.Days(v)
	return row.AppendInt(buf, n), err
}

func appendTime(buf []byte, v civil.Time) ([]byte, error) {
	micros, err := gotime.Clock(v)
	return row.AppendInt(buf, row.PackTime(micros)), err
}

func appendDateTime(buf []byte, v civil.DateTime) ([]byte, error) {
	micros, err := gotime.DateTime(v)
	if err != nil {
		return buf, err
	}
	return row.AppendInt(buf, row.PackDateTime(micros)), nil
}

func appendInstant(buf []byte, v time.Time) ([]byte, error) {
	micros, err := gotime.Instant(v)
	return row.AppendInt(buf, micros), err
}

// column is the column of a table's schema.
func (f *Field[T]) column() table.Field {
	c := table.Field{Name: f.name, Type: f.typ}
	if f.policy == Required {
		c.Mode = table.Required
	}
	return c
}

// check reports what is wrong with the declaration.
func (f *Field[T]) check() error {
	fault := func(format string, args ...any) error {
		return &row.Error{Kind: row.KindField, Path: f.name, Offset: -1, Msg: fmt.Sprintf(format, args...)}
	}
	switch {
	case !table.Identifier(f.name):
		return fault("the name of an added column is letters, digits and _, and begins with no digit: found %q", f.name)
	case table.ReservedPrefix(f.name) != "":
		return fault("the name begins with %s, which BigQuery keeps for itself", table.ReservedPrefix(f.name))
	case goTypes[f.typ] == "":
		return fault("an added column is a scalar, found %v", f.typ)
	case f.policy > Required:
		return fault("the policy is %d, expected Nullable or Required", f.policy)
	case f.form == nil:
		return fault("it has no function to compute it")
	}
	return nil
}
