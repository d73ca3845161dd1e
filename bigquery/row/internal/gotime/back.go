package gotime

import (
	"time"

	"cloud.google.com/go/civil"

	"github.com/millrace-dev/millrace/bigquery/row"
)

// The functions below go the other way, from the values of columns, which they check.

// DateOf is the date that many days after 1970-01-01.
func DateOf(days int64) (civil.Date, error) {
	if err := row.CheckDays(days); err != nil {
		return civil.Date{}, err
	}
	year, month, day := row.Date(days)
	return civil.Date{Year: year, Month: time.Month(month), Day: day}, nil
}

// ClockOf is the time of day that many microseconds after midnight.
func ClockOf(micros int64) (civil.Time, error) {
	if err := row.CheckTime(micros); err != nil {
		return civil.Time{}, err
	}
	seconds := int(micros / 1_000_000)
	return civil.Time{Hour: seconds / 3600, Minute: seconds / 60 % 60, Second: seconds % 60, Nanosecond: int(micros%1_000_000) * 1000}, nil
}

// DateTimeOf is the date and time that many microseconds after 1970-01-01T00:00:00.
func DateTimeOf(micros int64) (civil.DateTime, error) {
	if err := row.CheckDateTime(micros); err != nil {
		return civil.DateTime{}, err
	}
	return civil.DateTimeOf(time.UnixMicro(micros).UTC()), nil
}

// InstantOf is the instant that many microseconds after 1970, in UTC.
func InstantOf(micros int64) (time.Time, error) {
	if err := row.CheckMicros(micros); err != nil {
		return time.Time{}, err
	}
	return time.UnixMicro(micros).UTC(), nil
}
