package avrorow

import (
	"math/big"
	"reflect"
	"time"

	"cloud.google.com/go/civil"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/internal/gotime"
)

// This file takes the Go values that Avro libraries convert logical types to.

var (
	errNoTime  = badType("expected a number, or a time of the column's sort")
	errFine    = &row.ValueError{Kind: row.KindScale, Msg: "expected no digits below the microsecond"}
	errNoClock = badType("expected a number, a civil.Time, or a time.Duration since midnight")
)

// isTime says whether values of a type are times though they are integers.
func isTime(t reflect.Type) bool { return t == reflect.TypeFor[time.Duration]() }

func appendTime(buf []byte, v any, o op) ([]byte, error) {
	var n int64
	var err error
	switch o {
	case opDate:
		n, err = dateOf(v)
	case opTimeMillis, opTimeMicros:
		if n, err = clockOf(v); err == nil {
			n = row.PackTime(n)
		}
	case opTimestampMillis, opTimestampMicros:
		n, err = instantOf(v)
	case opDateTimeMillis, opDateTimeMicros:
		if n, err = dateTimeOf(v); err == nil {
			n = row.PackDateTime(n)
		}
	default:
		err = errNoInteger
	}
	if err != nil {
		return buf, err
	}
	return row.AppendInt(buf, n), nil
}

// dateOf is a civil date, or the date that a time.Time shows in its own zone.
func dateOf(v any) (int64, error) {
	switch v := pointed(v).(type) {
	case civil.Date:
		return gotime.Days(v)
	case time.Time:
		return gotime.Days(civil.DateOf(v))
	}
	return 0, errNoTime
}

// pointed follows a pointer.
func pointed(v any) any {
	switch v := v.(type) {
	case *time.Time:
		return *v
	case *civil.Date:
		return *v
	case *civil.Time:
		return *v
	case *civil.DateTime:
		return *v
	}
	return v
}

// clockOf is a time of day in microseconds since midnight.
func clockOf(v any) (int64, error) {
	switch v := pointed(v).(type) {
	case civil.Time:
		return gotime.Clock(v)
	case time.Duration:
		if v%time.Microsecond != 0 {
			return 0, errFine
		}
		return v.Microseconds(), row.CheckTime(v.Microseconds())
	case time.Time:
		return gotime.Clock(civil.TimeOf(v))
	}
	return 0, errNoClock
}

// instantOf is t in microseconds; finer digits are cut off towards the past.
func instantOf(v any) (int64, error) {
	t, ok := pointed(v).(time.Time)
	if !ok {
		return 0, errNoTime
	}
	return gotime.Instant(t)
}

// dateTimeOf is a civil date and time, or what a time.Time shows in its own zone.
func dateTimeOf(v any) (int64, error) {
	switch v := pointed(v).(type) {
	case civil.DateTime:
		return gotime.DateTime(v)
	case time.Time:
		return gotime.DateTime(civil.DateTimeOf(v))
	}
	return 0, errNoTime
}

// coefficient is what decimal types of other packages are: a whole number times a power of ten.
type coefficient interface {
	Coefficient() *big.Int
	Exponent() int32
}

func appendDecimal(buf []byte, v any, s *step) ([]byte, error) {
	var n row.Scaled
	var err error
	switch v := v.(type) {
	case *big.Rat:
		n, err = s.decimal.FromRat(v)
	case big.Rat:
		n, err = s.decimal.FromRat(&v)
	case coefficient:
		n, err = s.decimal.FromBig(v.Coefficient(), -int(v.Exponent()))
	default:
		b, ok := bytesOf(v)
		if !ok {
			return buf, errNoDecimal
		}
		if s.op == opFixedDecimal && len(b) != s.size {
			return buf, errSize
		}
		n, err = s.unscaled(b)
	}
	if err != nil {
		return buf, err
	}
	return row.AppendScaled(buf, n), nil
}
