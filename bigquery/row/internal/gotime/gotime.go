// Package gotime turns Go's values of dates and times into what columns hold. It serves every format whose records have
// such values.
package gotime

import (
	"time"

	"cloud.google.com/go/civil"

	"github.com/millrace-dev/millrace/bigquery/row"
)

var (
	errDate    = &row.ValueError{Kind: row.KindRange, Msg: "expected a date that is in the calendar, in the years 1 to 9999"}
	errClock   = &row.ValueError{Kind: row.KindRange, Msg: "expected a time of day"}
	errTooFine = &row.ValueError{Kind: row.KindScale, Msg: "expected no digits below the microsecond"}
)

// Instant is t in microseconds since 1970; finer digits are cut off towards the past.
func Instant(t time.Time) (micros int64, err error) {
	if s := t.Unix(); s < row.MinMicros/1_000_000 || s > row.MaxMicros/1_000_000 {
		return 0, row.CheckMicros(row.MaxMicros + 1) // UnixMicro would overflow
	}
	return t.UnixMicro(), nil
}

// Days is d in days since 1970-01-01.
func Days(d civil.Date) (int64, error) {
	n, ok := row.Days(d.Year, int(d.Month), d.Day)
	if !ok {
		return 0, errDate
	}
	return n, nil
}

// Clock is t in microseconds since midnight. Finer digits are refused.
func Clock(t civil.Time) (micros int64, err error) {
	if !t.IsValid() {
		return 0, errClock
	}
	if t.Nanosecond%1000 != 0 {
		return 0, errTooFine
	}
	return int64((t.Hour*60+t.Minute)*60+t.Second)*1_000_000 + int64(t.Nanosecond/1000), nil
}

// DateTime is d in microseconds since 1970-01-01T00:00:00. Finer digits are refused.
func DateTime(d civil.DateTime) (micros int64, err error) {
	n, err := Days(d.Date)
	if err != nil {
		return 0, err
	}
	micros, err = Clock(d.Time)
	return n*86_400_000_000 + micros, err
}
