package scalar

import (
	"fmt"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/text"
)

// addMonths keeps the day of the month, or takes the month's last.
func addMonths(micros, n int64) int64 {
	t := at(micros)
	m := int64(t.Year())*12 + int64(t.Month()) - 1 + n
	year, month := int(floor(m, 12)), time.Month(m-floor(m, 12)*12+1)
	last := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
	date := time.Date(year, month, min(t.Day(), last), 0, 0, 0, 0, time.UTC)
	return date.UnixMicro() + micros - floor(micros, day)*day
}

// DateAdd adds n of a part to a DATE.
func DateAdd(days int32, n int64, part string) (int32, error) {
	out := int64(days)
	far := abs(n) > 1<<32
	switch {
	case far:
	case part == "DAY":
		out += n
	case part == "WEEK":
		out += 7 * n
	default:
		if out = floor(addMonths(out*day, n*months[part]), day); abs(n*months[part]) > 12*20_000 {
			far = true
		}
	}
	if far || out < -719_162 || out > 2_932_896 {
		return 0, fmt.Errorf("Adding %d %s to date %s causes overflow", n, part, text.AppendDate(nil, int64(days)))
	}
	return int32(out), nil
}

// CivilAdd adds an interval to a DATETIME.
func CivilAdd(micros int64, s Span) (int64, error) {
	out := addMonths(micros, int64(s.Months)) + int64(s.Days)*day
	sum, err := AddInt(out, s.Micros)
	if err != nil {
		return 0, fmt.Errorf("Adding an INTERVAL to %s causes overflow", text.AppendSQLDateTime(nil, micros))
	}
	return inRange(sum, "datetime")
}

// InstantAdd adds an interval to a TIMESTAMP, whose days have 24 hours and which knows no months.
func InstantAdd(micros int64, s Span) (int64, error) {
	if s.Months != 0 {
		return 0, fmt.Errorf("TIMESTAMP +/- INTERVAL is not supported for intervals with non-zero MONTH or YEAR part.")
	}
	sum, err := AddInt(micros+int64(s.Days)*day, s.Micros)
	if err != nil {
		return 0, fmt.Errorf("Adding an INTERVAL to %s+00 causes overflow", text.AppendSQLDateTime(nil, micros))
	}
	return inRange(sum, "timestamp")
}

// TimeAdd goes round at midnight.
func TimeAdd(micros int64, s Span) (int64, error) {
	v := (micros + s.Micros%day) % day
	if v < 0 {
		v += day
	}
	return v, nil
}

// weekStart is the day of the week that WEEK, WEEK(x) or ISOWEEK begins with, Sunday being 0; false for another part.
func weekStart(part string) (int64, bool) {
	switch part {
	case "WEEK", "WEEK(SUNDAY)":
		return 0, true
	case "ISOWEEK":
		return 1, true
	}
	name, ok := strings.CutPrefix(part, "WEEK(")
	if !ok {
		return 0, false
	}
	for d := time.Sunday; d <= time.Saturday; d++ {
		if strings.EqualFold(d.String(), strings.TrimSuffix(name, ")")) {
			return int64(d), true
		}
	}
	return 0, false
}

// weekOf counts weeks that begin with a day; 1970-01-01 was a Thursday.
func weekOf(days, start int64) int64 { return floor(days+4-start, 7) }

// ordinalOf numbers the periods of a part: a boundary lies between two times where their numbers differ.
func ordinalOf(micros int64, part string) (int64, error) {
	if unit := units[part]; unit != 0 {
		return floor(micros, unit), nil
	}
	if start, ok := weekStart(part); ok {
		return weekOf(floor(micros, day), start), nil
	}
	t := at(micros)
	switch part {
	case "MONTH", "QUARTER", "YEAR":
		return (int64(t.Year())*12 + int64(t.Month()) - 1) / months[part], nil
	case "ISOYEAR":
		year, _ := t.ISOWeek()
		return int64(year), nil
	}
	return 0, fmt.Errorf("Unsupported date part: %s", part)
}

// Diff counts the boundaries of a part between two times.
func Diff(a, b int64, part string) (int64, error) {
	x, err := ordinalOf(a, part)
	if err != nil {
		return 0, err
	}
	y, err := ordinalOf(b, part)
	return x - y, err
}

// SpanDiff counts the whole units between two instants.
func SpanDiff(a, b int64, part string) (int64, error) { return (a - b) / units[part], nil }

// Truncate is the start of the period a time lies in, by the clock of a zone.
func Truncate(micros int64, part, name string) (int64, error) {
	if name == "UTC" {
		return truncate(micros, part)
	}
	local, err := Local(micros, name)
	if err != nil {
		return 0, err
	}
	if unit := units[part]; unit != 0 && unit < day {
		return micros - (local - floor(local, unit)*unit), nil
	}
	start, err := truncate(local, part)
	if err != nil {
		return 0, err
	}
	return Instant(start, name)
}

func truncate(micros int64, part string) (int64, error) {
	if unit := units[part]; unit != 0 {
		return floor(micros, unit) * unit, nil
	}
	if start, ok := weekStart(part); ok {
		return inRange((weekOf(floor(micros, day), start)*7-4+start)*day, "date")
	}
	t := at(micros)
	switch part {
	case "MONTH", "QUARTER", "YEAR":
		month := (int(t.Month())-1)/int(months[part])*int(months[part]) + 1
		return time.Date(t.Year(), time.Month(month), 1, 0, 0, 0, 0, time.UTC).UnixMicro(), nil
	case "ISOYEAR":
		year, _ := t.ISOWeek()
		fourth := time.Date(year, 1, 4, 0, 0, 0, 0, time.UTC) // always in the first week
		return inRange((weekOf(fourth.Unix()/86_400, 1)*7-3)*day, "date")
	}
	return 0, fmt.Errorf("Unsupported date part: %s", part)
}

// LastDay is the last day of the period a date lies in.
func LastDay(micros int64, part string) (int64, error) {
	start, err := truncate(micros, part)
	if err != nil {
		return 0, err
	}
	switch {
	case part == "DAY":
		return start, nil
	case months[part] != 0 && part != "ISOYEAR":
		return addMonths(start, months[part]) - day, nil
	case part == "ISOYEAR":
		next, err := truncate(start+371*day, part)
		return next - day, err
	}
	return inRange(start+6*day, "date")
}

// Extract is a part of a time on the wall.
func Extract(part string, micros int64) (int64, error) {
	t := at(micros)
	switch part {
	case "MICROSECOND":
		return int64(t.Nanosecond() / 1000), nil
	case "MILLISECOND":
		return int64(t.Nanosecond() / 1_000_000), nil
	case "SECOND":
		return int64(t.Second()), nil
	case "MINUTE":
		return int64(t.Minute()), nil
	case "HOUR":
		return int64(t.Hour()), nil
	case "DAYOFWEEK":
		return int64(t.Weekday()) + 1, nil
	case "DAY":
		return int64(t.Day()), nil
	case "DAYOFYEAR":
		return int64(t.YearDay()), nil
	case "MONTH":
		return int64(t.Month()), nil
	case "QUARTER":
		return int64(t.Month()-1)/3 + 1, nil
	case "YEAR":
		return int64(t.Year()), nil
	}
	return extractWeek(part, t)
}

func extractWeek(part string, t time.Time) (int64, error) {
	year, week := t.ISOWeek()
	switch part {
	case "ISOWEEK":
		return int64(week), nil
	case "ISOYEAR":
		return int64(year), nil
	}
	start, ok := weekStart(part)
	if !ok {
		return 0, fmt.Errorf("Unsupported date part: %s", part)
	}
	return weekNumber(t, start), nil
}

// weekNumber counts weeks that begin with a day; days before the year's first such day are in week 0.
func weekNumber(t time.Time, start int64) int64 {
	since := (int64(t.Weekday()) - start + 7) % 7
	return (int64(t.YearDay()) - 1 + 7 - since) / 7
}

// ExtractDate and ExtractTime refuse the parts that their type has not.
func ExtractDate(part string, micros int64) (int64, error) {
	if unit := units[part]; unit != 0 && unit < day {
		return 0, fmt.Errorf("EXTRACT from DATE does not support the %s date part", part)
	}
	return Extract(part, micros)
}

func ExtractTime(part string, micros int64) (int64, error) {
	if unit := units[part]; unit == 0 || unit == day {
		return 0, fmt.Errorf("EXTRACT from TIME does not support the %s date part", part)
	}
	return Extract(part, micros)
}

func ExtractInterval(part string, s Span) (int64, error) {
	switch part {
	case "YEAR":
		return int64(s.Months) / 12, nil
	case "MONTH":
		return int64(s.Months) % 12, nil
	case "DAY":
		return int64(s.Days), nil
	case "HOUR":
		return s.Micros / hour, nil
	case "MINUTE":
		return s.Micros / minute % 60, nil
	case "SECOND":
		return s.Micros / second % 60, nil
	case "MILLISECOND":
		return s.Micros / 1000 % 1000, nil
	case "MICROSECOND":
		return s.Micros % second, nil
	}
	return 0, fmt.Errorf("EXTRACT from INTERVAL does not support the %s date part", part)
}

// maxGenerated bounds what GENERATE_ARRAY and its like make (GoogleSQL reference: 16,000 elements in BigQuery's case is a
// limit of the service's memory; the figure here only keeps a mistake from eating the machine's).
const maxGenerated = 4 << 20

func generate[T any](what string, step func() error, more func() bool, next func() (T, error)) ([]T, error) {
	if err := step(); err != nil {
		return nil, err
	}
	out := []T{}
	for more() {
		if len(out) >= maxGenerated {
			return nil, fmt.Errorf("%s: the array would have more than %d elements", what, maxGenerated)
		}
		v, err := next()
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// GenerateArray is from, from+step, … up to to.
func GenerateArray(from, to, step int64) ([]int64, error) {
	v, done := from, false
	return generate("GENERATE_ARRAY", func() error { return nonZero(step == 0, "GENERATE_ARRAY") },
		func() bool { return !done && (step > 0 && v <= to || step < 0 && v >= to) },
		func() (int64, error) {
			out := v
			var err error
			if v, err = AddInt(v, step); err != nil {
				done = true
			}
			return out, nil
		})
}

func nonZero(zero bool, name string) error {
	if zero {
		return fmt.Errorf("Sequence step cannot be 0 in %s", name)
	}
	return nil
}

func GenerateFloats(from, to, step float64) ([]float64, error) {
	n := 0.0
	return generate("GENERATE_ARRAY", func() error { return nonZero(step == 0, "GENERATE_ARRAY") },
		func() bool { return step > 0 && from+n*step <= to || step < 0 && from+n*step >= to },
		func() (float64, error) {
			n++
			return from + (n-1)*step, nil
		})
}

func GenerateDates(from, to int32, step int64, part string) ([]int32, error) {
	n := int64(0)
	v, err := from, error(nil)
	return generate("GENERATE_DATE_ARRAY", func() error { return nonZero(step == 0, "GENERATE_DATE_ARRAY") },
		func() bool { return err == nil && (step > 0 && v <= to || step < 0 && v >= to) },
		func() (int32, error) {
			out := v
			n++
			v, err = DateAdd(from, n*step, part)
			return out, nil
		})
}

func GenerateTimestamps(from, to, step int64, part string) ([]int64, error) {
	width, err := MultiplyInt(step, units[part])
	if err != nil {
		return nil, err
	}
	if step == 0 {
		return nil, nonZero(true, "GENERATE_TIMESTAMP_ARRAY")
	}
	return GenerateArray(from, to, width)
}
