package row

import (
	"errors"
	"strings"
	"testing"
)

// kindOf is the kind of a conversion's error, "" for none.
func kindOf(t *testing.T, err error) Kind {
	t.Helper()
	var v *ValueError
	if err != nil && !errors.As(err, &v) {
		t.Fatalf("%v is no *ValueError", err)
	}
	if v == nil {
		return ""
	}
	return v.Kind
}

type textCase struct {
	text string
	want int64
	kind Kind
}

func checkTexts(t *testing.T, name string, parse func(string) (int64, error), cases []textCase) {
	t.Helper()
	for _, c := range cases {
		got, err := parse(c.text)
		if kind := kindOf(t, err); kind != c.kind || err == nil && got != c.want {
			t.Errorf("%s(%q) = %d, %v, want %d, %q", name, c.text, got, err, c.want, c.kind)
		}
	}
}

func TestParseDate(t *testing.T) {
	checkTexts(t, "ParseDate", ParseDate[string], []textCase{
		{"2026-07-26", 20660, ""}, {"2026-7-26", 20660, ""}, {"2026-7-6", 20640, ""}, {"1970-01-01", 0, ""}, {"0001-01-01", MinDays, ""},
		{"9999-12-31", MaxDays, ""}, {"2024-02-29", 19782, ""},
		{"2027-02-29", 0, KindRange}, {"0000-01-01", 0, KindRange}, {"2026-13-01", 0, KindRange}, {"2026-00-01", 0, KindRange}, {"2026-01-32", 0, KindRange},
		{"", 0, KindType}, {"2026", 0, KindType}, {"2026-07", 0, KindType}, {"2026-07-", 0, KindType}, {"2026-07-261", 0, KindType},
		{"2026-007-2", 0, KindType}, {"12026-07-26", 0, KindType}, {"26-07-2026", 0, KindType}, {"2026/07/26", 0, KindType}, {"2026-07/26", 0, KindType},
		{" 2026-07-26", 0, KindType}, {"2026-07-26 ", 0, KindType}, {"2026-07-26T00:00:00", 0, KindType}, {"２026-07-26", 0, KindType}, {"2026--7-26", 0, KindType},
	})
}

func TestParseTime(t *testing.T) {
	checkTexts(t, "ParseTime", ParseTime[string], []textCase{
		{"00:00:00", 0, ""}, {"01:02:03.456789", 3723456789, ""}, {"12:34", 45240000000, ""}, {"12:34:56.7", 45296700000, ""},
		{"12:34:56.789000000", 45296789000, ""}, {"23:59:59.999999", microsPerDay - 1, ""},
		{"24:00:00", 0, KindRange}, {"23:60:00", 0, KindRange}, {"23:59:60", 0, KindRange},
		{"12:34:56.1234567", 0, KindScale}, {"12:34:56.000000001", 0, KindScale},
		{"1:02:03", 0, KindType}, {"12:3", 0, KindType}, {"12:34:5", 0, KindType}, {"12:34:56.", 0, KindType}, {"12:34:56.1234567890", 0, KindType},
		{"12", 0, KindType}, {"", 0, KindType}, {"12:34:56Z", 0, KindType}, {"12:34:56,7", 0, KindType}, {"012:34", 0, KindType}, {"12:34:567", 0, KindType}, {"-1:00:00", 0, KindType},
	})
}

func TestParseDateTime(t *testing.T) {
	const at, day = 1632775870752000, 1632700800000000 // 2021-09-27T20:51:10.752 and that midnight
	checkTexts(t, "ParseDateTime", ParseDateTime[string], []textCase{
		{"2021-09-27T20:51:10.752", at, ""}, {"2021-09-27t20:51:10.752", at, ""}, {"2021-9-27 20:51:10.752", at, ""}, {"2021-09-27", day, ""},
		{"2021-09-27 1:2", day + 3720000000, ""}, {"2021-09-27 1:2:3", day + 3723000000, ""}, {"2021-09-27T20:51:10.752000000", at, ""},
		{"0001-01-01T00:00:00", MinMicros, ""}, {"9999-12-31T23:59:59.999999", MaxMicros, ""},
		{"2026-08-04 24:00:00", 0, KindRange}, {"2026-02-30 00:00:00", 0, KindRange}, {"2021-09-27T20:51:10.1234567", 0, KindScale},
		{"2021-09-27T", 0, KindType}, {"2021-09-27T20", 0, KindType}, {"2021-09-27  20:51:10", 0, KindType}, {"2021-09-27T20:51:10Z", 0, KindType},
		{"2021-09-27T20:51:10+00:00", 0, KindType}, {"2021-09-27_20:51:10", 0, KindType}, {"2021/09/27", 0, KindType}, {"20210927", 0, KindType}, {"", 0, KindType},
	})
}

func TestParseTimestamp(t *testing.T) {
	const at = 1649135171000000 // 2022-04-05T05:06:11Z
	checkTexts(t, "ParseTimestamp", ParseTimestamp[string], []textCase{
		{"2026-07-26T01:02:03.456789Z", 1785027723456789, ""}, {"1970-01-01 00:00:00.000010", 10, ""}, {"2018/08/19 12:11", 1534680660000000, ""},
		{"2022-04-05T09:06:11+04:00", at, ""}, {"2022-04-05t09:06:11+04", at, ""}, {"2022-04-05 09:06:11 +0400", at, ""}, {"2022-4-5 1:06:11-04:00", at, ""},
		{"2022-04-05 05:06:11UTC", at, ""}, {"2022-04-05 05:06:11 GMT", at, ""}, {"2022-04-05 05:06:11z", at, ""}, {"2022-04-05 05:06:11", at, ""},
		{"2022-04-05 07:06:11 Europe/Berlin", at, ""}, {"2022-01-05 06:06:11Europe/Berlin", 1641359171000000, ""}, {"2022-04-05 10:51:11 Asia/Kathmandu", at, ""},
		{"1969-12-31T23:59:59.9999999Z", -1, ""}, {"1969-12-31T23:59:59.999999999+00:00", -1, ""}, {"0001-01-01T00:00:00Z", MinMicros, ""},
		{"9999-12-31T23:59:59.999999Z", MaxMicros, ""}, {"0001-01-01T00:30:00+00:30", MinMicros, ""},
		{"2026-02-30T00:00:00Z", 0, KindRange}, {"2026-02-03T24:00:00Z", 0, KindRange}, {"2026-02-03T23:59:60Z", 0, KindRange},
		{"0001-01-01T00:00:00+00:01", 0, KindRange}, {"9999-12-31T23:59:59-01:00", 0, KindRange},
		{"2026-07-26", 0, KindType}, {"2022-04-05 09:06:11 PST", 0, KindType}, {"1.5e3", 0, KindType}, {"NaN", 0, KindType}, {"20230101", 0, KindType}, {"", 0, KindType},
		{"2022-04-05 9:6:11", 0, KindType}, {"2022-04-05 09:06:11 Local", 0, KindType}, {"2022-04-05 09:06:11 ", 0, KindType}, {"2022-04-05 09:06:11  Z", 0, KindType},
		{"2022-04-05 09:06:11+4", 0, KindType}, {"2022-04-05 09:06:11+04:0", 0, KindType}, {"2022-04-05 09:06:11+04:00:00", 0, KindType}, {"2022-04-05 09:06:11+15:00", 0, KindType},
		{"2022-04-05 09:06:11+14:01", 0, KindType}, {"2022-04-05 09:06:11+01:60", 0, KindType}, {"2022-04-05 09:06:11.Z", 0, KindType}, {"2022-04-05 09:06:11.1234567890Z", 0, KindType},
		{"2022-04-05 09:06:11 ../../etc/passwd", 0, KindType}, {"2022-04-05 09:06:11 " + strings.Repeat("x", 1000), 0, KindType}, {"2022-04/05 09:06:11Z", 0, KindType},
	})
}

func TestInterval(t *testing.T) {
	for _, c := range []struct {
		text                 string
		months, days, micros int64
	}{
		{"0-0 0 0:0:0", 0, 0, 0}, {"1-2 3 4:5:6.700", 14, 3, 14706700000}, {"-1-2 -3 -4:5:6.789123", -14, -3, -14706789123},
		{"10000-0 -3660000 87840000:0:0", 120000, -3660000, 316224000000000000},
	} {
		if got := string(AppendInterval(nil, c.months, c.days, c.micros)); got != c.text {
			t.Errorf("AppendInterval(%d, %d, %d) = %q, want %q", c.months, c.days, c.micros, got, c.text)
		}
		months, days, micros, err := ParseInterval(c.text)
		if err != nil || months != c.months || days != c.days || micros != c.micros {
			t.Errorf("ParseInterval(%q) = %d, %d, %d, %v, want %d, %d, %d", c.text, months, days, micros, err, c.months, c.days, c.micros)
		}
	}
	for _, text := range []string{"", "1-2", "1-2 3", "1-12 0 0:0:0", "1-2 3 4:5", "1-2 x 4:5:6", "1-2 3 4:60:6", "1-2 3 4:5:6.", "1-2 3 4:5:6.1234567", "1-2 3 4:5:6 7", "--1-2 3 4:5:6"} {
		if _, _, _, err := ParseInterval(text); kindOf(t, err) != KindType {
			t.Errorf("ParseInterval(%q) = %v, want %s", text, err, KindType)
		}
	}
}

func TestIntervalRange(t *testing.T) {
	for _, text := range []string{"10000-1 0 0:0:0", "-10000-1 0 0:0:0", "0-0 3660001 0:0:0", "0-0 -3660001 0:0:0", "0-0 0 87840000:0:0.000001", "0-0 0 -87840001:0:0"} {
		if _, _, _, err := ParseInterval(text); kindOf(t, err) != KindRange {
			t.Errorf("ParseInterval(%q) = %v, want %s", text, err, KindRange)
		}
	}
	for _, parts := range [][3]int64{{MaxIntervalMonths, MaxIntervalDays, MaxIntervalMicros}, {-MaxIntervalMonths, -MaxIntervalDays, -MaxIntervalMicros}} {
		if err := CheckInterval(parts[0], parts[1], parts[2]); err != nil {
			t.Errorf("%v: %v", parts, err)
		}
	}
}

func TestUnknownZonesAreNotKept(t *testing.T) {
	before := len(zones.known)
	for _, zone := range []string{"X/Y", "Nowhere/" + strings.Repeat("x", 30), "PST"} {
		if loc := findZone(&zones, zone); loc != nil {
			t.Errorf("findZone(%q) = %v, want none", zone, loc)
		}
	}
	if len(zones.known) != before {
		t.Errorf("%d zones are kept, want %d", len(zones.known), before)
	}
}
