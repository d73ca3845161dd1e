package row

import (
	"strconv"
	"strings"
)

// Bounds of INTERVAL, each of which holds with either sign (BigQuery documentation, "Interval type").
const (
	MaxIntervalMonths = 10_000 * 12
	MaxIntervalDays   = 3_660_000
	MaxIntervalMicros = 87_840_000 * 3600 * microsPerSecond
)

var (
	errInterval      = &ValueError{KindType, "expected an interval as Y-M D H:M:S"}
	errIntervalRange = &ValueError{KindRange, "expected an interval of at most 10000 years, 3660000 days and 87840000 hours, with either sign"}
)

// CheckInterval says whether the parts of an INTERVAL are within the type's range.
func CheckInterval(months, days, micros int64) error {
	if err := inRange(months, -MaxIntervalMonths, MaxIntervalMonths, errIntervalRange); err != nil {
		return err
	}
	if err := inRange(days, -MaxIntervalDays, MaxIntervalDays, errIntervalRange); err != nil {
		return err
	}
	return inRange(micros, -MaxIntervalMicros, MaxIntervalMicros, errIntervalRange)
}

// ParseInterval reads the canonical text of an INTERVAL, Y-M D H:M:S[.F], each part with its own sign. Shorter literals, which
// the service takes too, are refused.
func ParseInterval(s string) (months, days, micros int64, err error) {
	yearMonth, rest, ok := strings.Cut(s, " ")
	day, clock, ok2 := strings.Cut(rest, " ")
	if !ok || !ok2 {
		return 0, 0, 0, errInterval
	}
	months, ok = intervalMonths(yearMonth)
	days, err2 := strconv.ParseInt(strings.TrimPrefix(day, "+"), 10, 32)
	if !ok || err2 != nil {
		return 0, 0, 0, errInterval
	}
	micros, ok = intervalMicros(clock)
	if !ok {
		return 0, 0, 0, errInterval
	}
	return months, days, micros, CheckInterval(months, days, micros)
}

func intervalMonths(s string) (months int64, ok bool) {
	s, negative := cutSign(s)
	year, month, ok := strings.Cut(s, "-")
	y, errY := strconv.ParseUint(year, 10, 24)
	m, errM := strconv.ParseUint(month, 10, 8)
	if !ok || errY != nil || errM != nil || m > 11 {
		return 0, false
	}
	return signed(int64(y*12+m), negative), true
}

func intervalMicros(s string) (micros int64, ok bool) {
	s, negative := cutSign(s)
	parts := strings.Split(s, ":")
	if len(parts) != 3 {
		return 0, false
	}
	second, fraction, point := strings.Cut(parts[2], ".")
	h, errH := strconv.ParseUint(parts[0], 10, 28)
	m, errM := strconv.ParseUint(parts[1], 10, 8)
	sec, errS := strconv.ParseUint(second, 10, 8)
	if errH != nil || errM != nil || errS != nil || m > 59 || sec > 59 || point && (fraction == "" || len(fraction) > 6) {
		return 0, false
	}
	f, end := number(fraction, 0, len(fraction), 6)
	if end != len(fraction) {
		return 0, false
	}
	for range 6 - len(fraction) {
		f *= 10
	}
	return signed(int64((h*60+m)*60+sec)*microsPerSecond+int64(f), negative), true
}

func cutSign(s string) (rest string, negative bool) {
	if rest, ok := strings.CutPrefix(s, "-"); ok {
		return rest, true
	}
	return strings.TrimPrefix(s, "+"), false
}

func signed(v int64, negative bool) int64 {
	if negative {
		return -v
	}
	return v
}
