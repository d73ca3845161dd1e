package scalar

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zones where the machine has none

	"github.com/millrace-dev/millrace/localbq/internal/text"
	"github.com/millrace-dev/millrace/localbq/internal/value"
)

// A DATE is days since 1970-01-01, a TIME microseconds since midnight, a DATETIME and a TIMESTAMP microseconds since
// 1970-01-01 00:00, on the wall and in UTC.

const (
	second = int64(1_000_000)
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

// units are the parts of a fixed length, in microseconds.
var units = map[string]int64{
	"MICROSECOND": 1, "MILLISECOND": 1000, "SECOND": second, "MINUTE": minute, "HOUR": hour, "DAY": day,
}

// months are the parts of a number of months.
var months = map[string]int64{"MONTH": 1, "QUARTER": 3, "YEAR": 12, "ISOYEAR": 12}

func at(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// floor is v / unit rounded down.
func floor(v, unit int64) int64 {
	q := v / unit
	if v%unit < 0 {
		q--
	}
	return q
}

// Zones.

var zones sync.Map // name to *time.Location

// zone finds a zone by its name in the zone database or by its offset, +01:00.
func zone(name string) (*time.Location, error) {
	if z, ok := zones.Load(name); ok {
		return z.(*time.Location), nil
	}
	z, err := loadZone(name)
	if err != nil {
		return nil, fmt.Errorf("Invalid time zone: %s", name)
	}
	zones.Store(strings.Clone(name), z)
	return z, nil
}

func loadZone(name string) (*time.Location, error) {
	if offset, ok := fixedOffset(name); ok {
		return time.FixedZone(name, offset), nil
	}
	if name == "" || name == "Local" {
		return nil, errors.New("no zone")
	}
	return time.LoadLocation(name)
}

// fixedOffset reads ±H[H][:MM], with or without UTC before it, as seconds.
func fixedOffset(name string) (int, bool) {
	rest := strings.TrimPrefix(strings.TrimPrefix(name, "UTC"), "GMT")
	if rest == "" || rest[0] != '+' && rest[0] != '-' {
		return 0, false
	}
	var h, m int
	hours, minutes, _ := strings.Cut(rest[1:], ":")
	if _, err := fmt.Sscanf(hours, "%d", &h); err != nil || len(hours) > 2 || h > 14 {
		return 0, false
	}
	if minutes != "" {
		if _, err := fmt.Sscanf(minutes, "%d", &m); err != nil || len(minutes) != 2 || m > 59 {
			return 0, false
		}
	}
	seconds := (h*60 + m) * 60
	if rest[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

// Local is the wall clock in a zone at an instant.
func Local(micros int64, name string) (int64, error) {
	z, err := zone(name)
	if err != nil {
		return 0, err
	}
	_, offset := at(micros).In(z).Zone()
	return micros + int64(offset)*second, nil
}

// Instant is when the wall clock in a zone shows a time; the later of two where it shows it twice.
func Instant(micros int64, name string) (int64, error) {
	z, err := zone(name)
	if err != nil {
		return 0, err
	}
	w := at(micros)
	t := time.Date(w.Year(), w.Month(), w.Day(), w.Hour(), w.Minute(), w.Second(), w.Nanosecond(), z)
	return inRange(t.UnixMicro(), "timestamp")
}

func inRange(micros int64, what string) (int64, error) {
	if micros < value.MinTimestamp || micros > value.MaxTimestamp {
		return 0, fmt.Errorf("Invalid %s: out of the range 0001-01-01 to 9999-12-31", what)
	}
	return micros, nil
}

// Casts.

func TextToDate(s string) (int32, error) {
	if d, err := value.Date(s); err == nil {
		return d, nil
	}
	// A DATETIME's text is a DATE's too.
	micros, err := value.DateTime(s)
	if err != nil {
		return 0, fmt.Errorf("Invalid date: '%s'", s)
	}
	return int32(floor(micros, day)), nil
}

func TextToTime(s string) (int64, error) {
	t, err := value.Time(s)
	if err != nil {
		return 0, fmt.Errorf("Invalid time string \"%s\"", s)
	}
	return t, nil
}

func TextToDateTime(s string) (int64, error) {
	t, err := value.DateTime(s)
	if err != nil {
		return 0, fmt.Errorf("Invalid datetime string \"%s\"", s)
	}
	return t, nil
}

// TextToTimestamp reads a text, in a zone where it names none itself.
func TextToTimestamp(s, name string) (int64, error) {
	if name != "UTC" {
		if wall, err := value.DateTime(s); err == nil {
			return Instant(wall, name)
		}
	}
	t, err := value.Timestamp(s)
	if err != nil {
		return 0, fmt.Errorf("Invalid timestamp: '%s'", s)
	}
	return t, nil
}

func TimeText(micros int64) (string, error) { return string(text.AppendSQLTime(nil, micros)), nil }
func DateTimeText(micros int64) (string, error) {
	return string(text.AppendSQLDateTime(nil, micros)), nil
}

// TimestampText is 2006-01-02 15:04:05+00, in a zone.
func TimestampText(micros int64, name string) (string, error) {
	local, err := Local(micros, name)
	if err != nil {
		return "", err
	}
	return string(text.AppendSQLDateTime(nil, local)) + offsetText((local-micros)/second, false), nil
}

// offsetText writes seconds as +01 or +01:30; whole always writes minutes.
func offsetText(seconds int64, whole bool) string {
	sign := byte('+')
	if seconds < 0 {
		sign, seconds = '-', -seconds
	}
	h, m := seconds/3600, seconds/60%60
	if m == 0 && !whole {
		return fmt.Sprintf("%c%02d", sign, h)
	}
	return fmt.Sprintf("%c%02d:%02d", sign, h, m)
}

// Constructors.

func MakeDate(y, m, d int64) (int32, error) {
	if y < 1 || y > 9999 || m < 1 || m > 12 || d < 1 || d > 31 {
		return 0, fmt.Errorf("Input calculates to invalid date: %04d-%02d-%02d", y, m, d)
	}
	t := time.Date(int(y), time.Month(m), int(d), 0, 0, 0, 0, time.UTC)
	if int64(t.Day()) != d {
		return 0, fmt.Errorf("Input calculates to invalid date: %04d-%02d-%02d", y, m, d)
	}
	return int32(t.Unix() / 86_400), nil
}

func MakeTime(h, m, s int64) (int64, error) {
	if h < 0 || h > 23 || m < 0 || m > 59 || s < 0 || s > 59 {
		return 0, fmt.Errorf("Input calculates to invalid time: %02d:%02d:%02d", h, m, s)
	}
	return h*hour + m*minute + s*second, nil
}

func MakeDateTime(y, mo, d, h, m, s int64) (int64, error) {
	date, err := MakeDate(y, mo, d)
	if err != nil {
		return 0, err
	}
	clock, err := MakeTime(h, m, s)
	return int64(date)*day + clock, err
}

// FromUnix is n units of so many microseconds since the epoch.
func FromUnix(n, unit int64) (int64, error) {
	micros, err := MultiplyInt(n, unit)
	if err != nil {
		return 0, fmt.Errorf("Invalid timestamp: out of the range 0001-01-01 to 9999-12-31")
	}
	return inRange(micros, "timestamp")
}

// Span is an INTERVAL.
type Span struct {
	Months, Days int32
	Micros       int64
}

// MakeInterval is INTERVAL n part.
func MakeInterval(n int64, part string) (Span, error) {
	switch {
	case months[part] != 0:
		return checked(n*months[part], 0, 0, abs(n) > 1<<40)
	case part == "WEEK":
		return checked(0, 7*n, 0, abs(n) > 1<<40)
	case part == "DAY":
		return checked(0, n, 0, false)
	}
	micros, err := MultiplyInt(n, units[part])
	return checked(0, 0, micros, err != nil)
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

// IntervalParts is an interval of these parts.
func IntervalParts(m, d, micros int64) (Span, error) { return checked(m, d, micros, false) }

func checked(m, d, micros int64, overflow bool) (Span, error) {
	s := value.Span{Months: int32(m), Days: int32(d), Micros: micros}
	if overflow || int64(s.Months) != m || int64(s.Days) != d || s.Check() != nil {
		return Span{}, fmt.Errorf("Interval value is out of range: %d months, %d days, %d microseconds", m, d, micros)
	}
	return Span(s), nil
}

// TextToInterval reads the canonical form, or the parts that FROM TO names ("YEAR MONTH", "HOUR SECOND").
func TextToInterval(s, parts string) (Span, error) {
	from, to, _ := strings.Cut(parts, " ")
	if strings.TrimSpace(parts) != "" {
		full, err := spellOut(s, from, to)
		if err != nil {
			return Span{}, err
		}
		s = full
	}
	v, err := value.Interval(s)
	if err != nil {
		return Span{}, fmt.Errorf("Invalid INTERVAL value '%s'", s)
	}
	return Span(v), nil
}

// intervalOrder are the parts of the canonical form, Y-M D H:M:S, from left to right.
var intervalOrder = []string{"YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"}

// spellOut makes the canonical form of a text that has the parts from..to only.
func spellOut(s, from, to string) (string, error) {
	if to == "" {
		to = from
	}
	first, last := -1, -1
	for i, p := range intervalOrder {
		if p == from {
			first = i
		}
		if p == to {
			last = i
		}
	}
	if first < 0 || last < first {
		return "", fmt.Errorf("Invalid INTERVAL parts: %s TO %s", from, to)
	}
	before := []string{"", "0-", "0-0 ", "0-0 0 ", "0-0 0 0:", "0-0 0 0:0:"}[first]
	after := []string{"-0 0 0:0:0", " 0 0:0:0", " 0:0:0", ":0:0", ":0", ""}[last]
	sign := ""
	body := trimSpace(s)
	if first != 2 && first != 0 && strings.HasPrefix(body, "-") { // the sign belongs before the whole group
		sign, body = "-", body[1:]
	}
	if first == 1 {
		return sign + before + body + after, nil
	}
	cut := strings.LastIndexByte(before, ' ') + 1
	return before[:cut] + sign + before[cut:] + body + after, nil
}

func IntervalText(s Span) (string, error) {
	return string(text.AppendInterval(nil, int64(s.Months), int64(s.Days), s.Micros)), nil
}
