package value

import (
	"strings"
	"testing"
	"time"
)

// micros is an instant by the standard library.
func micros(t *testing.T, s string) int64 {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04:05.999999999Z07:00", s)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMicro()
}

func TestDate(t *testing.T) {
	for s, want := range map[string]int32{
		"1970-01-01": 0, "1970-10-28": 300, "0001-01-01": MinDate, "9999-12-31": MaxDate, "2024-2-29": 19782, " 2000-1-1 ": 10957,
	} {
		if got, err := Date(s); err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "2026-02-30", "2023-02-29", "0000-01-01", "10000-01-01", "2026-13-01", "2026-01-00", "2026-01-01x", "2026/01/01", "26", "2026-01-001"} {
		if got, err := Date(s); err == nil {
			t.Errorf("%q: %d, want an error", s, got)
		}
	}
}

func TestTimeTexts(t *testing.T) {
	for s, want := range map[string]int64{
		"00:00:00": 0, "1:2:3": 3_723_000_000, "01:02:03.000004": 3_723_000_004, "23:59:59.999999": MaxTime, "0:0:0.5": 500_000,
		"00:00:00.123456789": 123_456,
	} {
		if got, err := Time(s); err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "24:00:00", "00:60:00", "00:00:60", "1:2", "01:02:03.", "01:02:03.1234567890123", "-1:00:00"} {
		if got, err := Time(s); err == nil {
			t.Errorf("%q: %d, want an error", s, got)
		}
	}
}

func TestDateTime(t *testing.T) {
	for s, want := range map[string]string{
		"2020-10-01 12:00:00":        "2020-10-01T12:00:00Z",
		"2020-10-01T12:00:00.5":      "2020-10-01T12:00:00.5Z",
		"2020-1-2t3:4:5":             "2020-01-02T03:04:05Z",
		"2020-10-01":                 "2020-10-01T00:00:00Z",
		"0001-01-01 00:00:00":        "0001-01-01T00:00:00Z",
		"9999-12-31T23:59:59.999999": "9999-12-31T23:59:59.999999Z",
	} {
		if got, err := DateTime(s); err != nil || got != micros(t, want) {
			t.Errorf("%q: %d, %v, want %s", s, got, err, want)
		}
	}
	for _, s := range []string{"", "2026-02-30", "2026-02-30T00:00:00", "2020-10-01T", "2020-10-01 12:00", "2020-10-01T12:00:00Z", "2020-10-01  12:00:00"} {
		if got, err := DateTime(s); err == nil {
			t.Errorf("LBQ-85 %q: %d, want an error", s, got)
		}
	}
}

func TestTimestamp(t *testing.T) {
	for s, want := range map[string]string{
		"2022-02-02 01:02:03":                  "2022-02-02T01:02:03Z", // LBQ-84
		"2022-02-02T01:02:03.000004Z":          "2022-02-02T01:02:03.000004Z",
		"2022-02-02 01:02:03 UTC":              "2022-02-02T01:02:03Z",
		"2022-02-02 01:02:03+05:30":            "2022-02-02T01:02:03+05:30",
		"2022-02-02 01:02:03-8":                "2022-02-02T01:02:03-08:00",
		"2022-02-02":                           "2022-02-02T00:00:00Z",
		"2022-02-02 UTC":                       "2022-02-02T00:00:00Z",
		"2022-07-02 01:02:03 America/New_York": "2022-07-02T01:02:03-04:00",
		"2022-02-02 01:02:03.1234567":          "2022-02-02T01:02:03.123456Z",
	} {
		if got, err := Timestamp(s); err != nil || got != micros(t, want) {
			t.Errorf("%q: %d, %v, want %s", s, got, err, want)
		}
	}
	for _, s := range []string{"", "2022-02-30", "2022-02-02 01:02:03 Nowhere/City", "2022-02-02 01:02:03UTCx", "2022-02-02 01:02:03+15", "9999-12-31 23:59:59-01:00", "0001-01-01 00:00:00+01:00", "2022-02-02 01:02:03 Local"} {
		if got, err := Timestamp(s); err == nil {
			t.Errorf("%q: %d, want an error", s, got)
		}
	}
	if got, err := TimestampPicos("2022-02-02 01:02:03.123456789012+01"); err != nil || got != "2022-02-02T00:02:03.123456789012Z" {
		t.Errorf("picoseconds: %q, %v", got, err)
	}
}

// TestPacked holds the table of packed values that the wire format documents (LBQ-80, LBQ-81).
func TestPacked(t *testing.T) {
	for packed, want := range map[int64]string{
		0: "00:00:00", 4432787541: "01:02:03.456789", 53880818184: "12:34:56.789000", 102806536767: "23:59:59.999999",
		1<<32 | 2<<26 | 3<<20 | 4: "01:02:03.000004",
	} {
		text, err := Time(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := PackedTime(packed); err != nil || got != text {
			t.Errorf("time %#x: %d, %v, want %s", packed, got, err, want)
		}
	}
	for packed, want := range map[int64]string{
		74904229642240: "0001-01-01T00:00:00Z", 138630961515462656: "1970-01-01T00:00:00Z",
		142258614586538368: "2021-09-27T20:51:10.752Z", 142601439875102805: "2026-07-26T01:02:03.456789Z",
		703674213004689983: "9999-12-31T23:59:59.999999Z", 2020<<46 | 10<<42 | 1<<37 | 12<<32: "2020-10-01T12:00:00Z",
	} {
		if got, err := PackedDateTime(packed); err != nil || got != micros(t, want) {
			t.Errorf("datetime %#x: %d, %v, want %s", packed, got, err, want)
		}
	}
	for name, packed := range map[string]int64{
		"hour 24": 24 << 32, "minute 60": 60 << 26, "second 60": 60 << 20, "micros 1000000": 1_000_000, "a bit above": 1 << 37, "negative": -1,
	} {
		if got, err := PackedTime(packed); err == nil {
			t.Errorf("time of %s: %d, want an error", name, got)
		}
	}
	const day = 2026<<46 | 2<<42
	for name, packed := range map[string]int64{
		"February 30": day | 30<<37, "month 0": 2026<<46 | 1<<37, "month 13": 2026<<46 | 13<<42 | 1<<37, "day 0": day, "year 0": 1<<42 | 1<<37,
		"year 10000": 10000<<46 | 1<<42 | 1<<37, "hour 24": day | 1<<37 | 24<<32, "a bit above": 1<<60 | day | 1<<37, "negative": -1,
	} {
		if got, err := PackedDateTime(packed); err == nil {
			t.Errorf("datetime of %s: %d, want an error", name, got)
		}
	}
}

func TestInterval(t *testing.T) {
	for s, want := range map[string]Span{
		"1-2 3 4:5:6.789": {14, 3, 4*microsPerHour + 5*microsPerMinute + 6_789_000},
		"0-0 0 0:0:0":     {},
		"-1-2 -3 -4:5:6":  {-14, -3, -(4*microsPerHour + 5*microsPerMinute + 6*microsPerSecond)},
		"1-2":             {Months: 14},
		"3":               {Days: 3},
		"-4:30:0":         {Micros: -(4*microsPerHour + 30*microsPerMinute)},
		"1-2 4:0:0":       {Months: 14, Micros: 4 * microsPerHour},
		"10000-0":         {Months: 120_000},
		"-3660000":        {Days: -3_660_000},
		"87840000:0:0":    {Micros: 87_840_000 * microsPerHour},
	} {
		if got, err := Interval(s); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "x", "3 1-2", "1-2 1-2", "1 2", "10000-1", "3660001", "87840000:0:1", "-87840000:0:0.000001", "1:60:0", "1:2:3.1234567", "--1", "999999999"} {
		if got, err := Interval(s); err == nil {
			t.Errorf("%q: %+v, want an error", s, got)
		}
	}
}

func TestGeography(t *testing.T) {
	for s, want := range map[string]string{
		"POINT(1 2)":           "POINT(1 2)",
		" point ( 1.50  -2 ) ": "POINT(1.5 -2)",
		"POINT EMPTY":          "POINT EMPTY",
		"LINESTRING(1 2,3 4)":  "LINESTRING(1 2, 3 4)",
		"POLYGON((0 0,1 0,1 1,0 0),(0.1 0.1,0.2 0.1,0.2 0.2,0.1 0.1))":                      "POLYGON((0 0, 1 0, 1 1, 0 0), (0.1 0.1, 0.2 0.1, 0.2 0.2, 0.1 0.1))",
		"MULTIPOINT((1 2),(3 4))":                                                           "MULTIPOINT(1 2, 3 4)",
		"MULTIPOINT(1 2, 3 4)":                                                              "MULTIPOINT(1 2, 3 4)",
		"MULTIPOLYGON(((0 0,1 0,1 1,0 0)))":                                                 "MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)))",
		"GEOMETRYCOLLECTION(POINT(1 2),LINESTRING(1 2,3 4))":                                "GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(1 2, 3 4))",
		`{"type":"Point","coordinates":[1,2]}`:                                              "POINT(1 2)",
		`{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,0]]]}`:                      "POLYGON((0 0, 1 0, 1 1, 0 0))",
		`{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[1,2]}]}`: "GEOMETRYCOLLECTION(POINT(1 2))",
		`{"type":"LineString","coordinates":[]}`:                                            "LINESTRING EMPTY",
	} {
		if got, err := Geography(s); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", s, got, err, want)
		}
	}
	for _, s := range []string{"", "POINT", "POINT(1)", "POINT(1 2", "POINT(1 2) x", "POINT(1 91)", "CIRCLE(1 2)", "POINT(a b)", "LINESTRING(1 2,)", "POINT(1 2 3)",
		`{"type":"Point"}`, `{"type":"Point","coordinates":[1]}`, `{"type":"Feature"}`, `{`, "POINT(NaN 1)",
		strings.Repeat("GEOMETRYCOLLECTION(", 100) + "POINT(1 2)" + strings.Repeat(")", 100)} {
		if got, err := Geography(s); err == nil {
			t.Errorf("LBQ-88 %.40q: %q, want an error", s, got)
		}
	}
}
