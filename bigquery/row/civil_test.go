package row

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

const (
	secondsMin = MinMicros / microsPerSecond
	secondsMax = MaxMicros / microsPerSecond
)

func TestDaysAgainstTime(t *testing.T) {
	for days := int64(MinDays); days <= MaxDays; days++ {
		if days > MinDays+800 && days < MaxDays-800 && days%97 != 0 && (days < -800 || days > 800) {
			continue
		}
		want := time.Unix(days*86_400, 0).UTC()
		year, month, day := Date(days)
		if year != want.Year() || month != int(want.Month()) || day != want.Day() {
			t.Fatalf("Date(%d) = %d-%d-%d, want %s", days, year, month, day, want.Format(time.DateOnly))
		}
		if back, ok := Days(year, month, day); !ok || back != days {
			t.Fatalf("Days(%d, %d, %d) = %d, %v, want %d", year, month, day, back, ok, days)
		}
	}
	for _, d := range [][3]int{{0, 1, 1}, {10000, 1, 1}, {2026, 0, 1}, {2026, 13, 1}, {2026, 2, 29}, {1900, 2, 29}, {2000, 2, 30}, {2026, 4, 31}, {2026, 1, 0}} {
		if days, ok := Days(d[0], d[1], d[2]); ok {
			t.Errorf("Days(%v) = %d, want none: there is no such date", d, days)
		}
	}
}

func TestPack(t *testing.T) {
	at := func(s string) int64 {
		v, err := time.Parse("2006-01-02T15:04:05.999999", s)
		if err != nil {
			t.Fatal(err)
		}
		return v.UnixMicro()
	}
	day := int64(microsPerDay)
	for _, c := range []struct {
		name      string
		got, want int64
		micros    int64
		time      bool
	}{
		{"midnight", PackTime(0), 0, 0, true},
		{"01:02:03.456789", PackTime(3723456789), 0x10836F855, 3723456789, true},
		{"12:34:56.789", PackTime(45296789000), 0xC8B8C0A08, 45296789000, true},
		{"SER-137 23:59:59.999999", PackTime(day - 1), 102806536767, day - 1, true},
		{"0001-01-01", PackDateTime(MinMicros), 0x442000000000, MinMicros, false},
		{"1970-01-01", PackDateTime(0), 0x1EC842000000000, 0, false},
		{"2021", PackDateTime(at("2021-09-27T20:51:10.752")), 142258614586538368, at("2021-09-27T20:51:10.752"), false},
		{"2026", PackDateTime(at("2026-07-26T01:02:03.456789")), 142601439875102805, at("2026-07-26T01:02:03.456789"), false},
		{"SER-137 9999", PackDateTime(MaxMicros), 703674213004689983, MaxMicros, false},
		{"SER-137 before 1970", PackDateTime(-1), 138613197258048063, -1, false},
	} {
		if c.got != c.want {
			t.Errorf("%s packs to %#x, want %#x", c.name, c.got, c.want)
		}
		unpack := UnpackDateTime
		if c.time {
			unpack = UnpackTime
		}
		if back, err := unpack(c.want); err != nil || back != c.micros {
			t.Errorf("%s unpacks to %d, %v, want %d", c.name, back, err, c.micros)
		}
	}
}

func TestUnpackRefuses(t *testing.T) {
	for name, packed := range map[string]int64{
		"SER-138 hour 23 and a microsecond too many": 102806536768, "SER-138 hour 24": 24 << 32, "minute 60": 60 << 26,
		"second 60": 60 << 20, "a million microseconds": 1_000_000, "bit above": 1 << 37, "negative": -1,
	} {
		if v, err := UnpackTime(packed); err == nil {
			t.Errorf("UnpackTime of %s = %d, want an error", name, v)
		}
	}
	good := PackDateTime(0)
	for name, packed := range map[string]int64{
		"no year": good & (1<<46 - 1), "month 0": good &^ (15 << 42), "month 13": good | 13<<42, "day 0": good &^ (31 << 37),
		"30 February": 2026<<46 | 2<<42 | 30<<37, "hour 24": good | 24<<32, "year 10000": 10000<<46 | 1<<42 | 1<<37, "negative": -good,
	} {
		if v, err := UnpackDateTime(packed); err == nil {
			t.Errorf("UnpackDateTime of %s = %d, want an error", name, v)
		}
	}
}

func TestPackIsInvertible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(MinMicros, MaxMicros).Draw(t, "micros")
		packed := PackDateTime(micros)
		at := time.UnixMicro(micros).UTC()
		want := int64(at.Year())<<46 | int64(at.Month())<<42 | int64(at.Day())<<37 | int64(at.Hour())<<32 | int64(at.Minute())<<26 |
			int64(at.Second())<<20 | int64(at.Nanosecond()/1000)
		if packed != want {
			t.Fatalf("PackDateTime(%d) = %#x, want %#x", micros, packed, want)
		}
		if back, err := UnpackDateTime(packed); err != nil || back != micros {
			t.Fatalf("UnpackDateTime(%#x) = %d, %v, want %d", packed, back, err, micros)
		}
	})
}

func TestAppendTimesAgainstTime(t *testing.T) {
	layout := func(micros int64, prefix string) string {
		switch {
		case micros%1_000_000 == 0:
			return prefix
		case micros%1000 == 0:
			return prefix + ".000"
		}
		return prefix + ".000000"
	}
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(secondsMin, secondsMax).Draw(t, "seconds") * 1_000_000
		micros += rapid.SampledFrom([]int64{0, 1, 10, 123_000, 999_999}).Draw(t, "fraction")
		at := time.UnixMicro(micros).UTC()
		if got, want := string(AppendTimestamp(nil, micros)), at.Format(layout(micros, "2006-01-02T15:04:05")+"Z"); got != want {
			t.Fatalf("AppendTimestamp(%d) = %s, want %s", micros, got, want)
		}
		if back, err := ParseTimestamp(AppendTimestamp(nil, micros)); err != nil || back != micros {
			t.Fatalf("%s reads back as %d, %v, want %d", AppendTimestamp(nil, micros), back, err, micros)
		}
		if back, err := ParseDateTime(AppendDateTime(nil, micros)); err != nil || back != micros {
			t.Fatalf("%s reads back as %d, %v, want %d", AppendDateTime(nil, micros), back, err, micros)
		}
		days, rest := splitDays(micros)
		if back, err := ParseDate(AppendDate(nil, days)); err != nil || back != days {
			t.Fatalf("%s reads back as %d, %v, want %d", AppendDate(nil, days), back, err, days)
		}
		if back, err := ParseTime(AppendTime(nil, rest)); err != nil || back != rest {
			t.Fatalf("%s reads back as %d, %v, want %d", AppendTime(nil, rest), back, err, rest)
		}
	})
}

func TestParseTimestampAgainstTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(secondsMin+86_400, secondsMax-86_400).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanos"))
		zone := time.FixedZone("", 60*rapid.IntRange(-14*60, 14*60).Draw(t, "offset"))
		text := at.In(zone).Format(rapid.SampledFrom([]string{time.RFC3339Nano, "2006/1/2 15:04:05.000000000 -0700", "2006-1-02t15:04:05.999999999-07:00"}).Draw(t, "layout"))
		want := at.UnixNano() / 1000
		if at.UnixNano()%1000 < 0 {
			want--
		}
		if at.Year() < 1700 || at.Year() > 2200 { // beyond int64 nanoseconds
			want = at.UnixMicro()
		}
		if got, err := ParseTimestamp(text); err != nil || got != want {
			t.Fatalf("ParseTimestamp(%q) = %d, %v, want %d", text, got, err, want)
		}
	})
}
