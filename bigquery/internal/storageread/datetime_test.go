package storageread

import (
	"testing"
	"time"
)

func TestParseDateTime(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int64{
		"1970-01-01T00:00:00":           0,
		"2026-07-26T01:02:03.456789":    1785027723456789,
		"2026-07-26 01:02:03.456789":    1785027723456789,
		"2026-07-26T01:02:03.4":         1785027723400000,
		"2026-07-26T01:02:03.456789999": 1785027723456789, // SER-158: beyond microseconds
		"1969-12-31T23:59:59.5":         -500000,
		"0001-01-01T00:00:00":           -62135596800000000,
		"9999-12-31T23:59:59.999999":    253402300799999999,
	} {
		if got, ok := parseDateTime([]byte(s)); !ok || got != want {
			t.Errorf("%s: got %d, %v, want %d", s, got, ok, want)
		}
	}
	for _, s := range []string{"", "2026-07-26", "2026-07-26T01:02", "2026-07-26T01:02:03.", "2026-07-26T01:02:03.1234567890",
		"2026-07-26T01:02:03.12x", "2026-02-30T00:00:00", "2026-13-01T00:00:00", "2026-00-01T00:00:00", "0000-01-01T00:00:00",
		"2026-07-26T24:00:00", "2026-07-26T01:60:00", "2026-07-26T01:00:60", "2026-07-26x01:02:03", "-026-07-26T01:02:03",
		"2026-07-26T01:02:03Z", "2026-07-26T-1:02:03"} {
		if got, ok := parseDateTime([]byte(s)); ok {
			t.Errorf("%q is read as %d", s, got)
		}
	}
}

// Every day of the years 1 to 9999, against package time.
func TestDaysAgainstTheStandardLibrary(t *testing.T) {
	t.Parallel()
	day := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	for want := day.Unix() / 86400; day.Year() < 10000; want++ {
		y, m, d := day.Date()
		if got := daysSinceEpoch(y, int(m), d); got != want {
			t.Fatalf("%s: got %d, want %d", day.Format(time.DateOnly), got, want)
		}
		day = day.AddDate(0, 0, 1)
		if next := day.Day(); (next == 1) != (d == daysIn(y, int(m))) {
			t.Fatalf("%04d-%02d has %d days", y, m, daysIn(y, int(m)))
		}
	}
}
