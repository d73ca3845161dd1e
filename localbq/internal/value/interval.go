package value

import (
	"fmt"
	"strings"
)

// Span is an INTERVAL.
type Span struct {
	Months, Days int32
	Micros       int64
}

// Ranges of an INTERVAL's parts (BigQuery documentation, "Interval type").
const (
	maxMonths = 120_000
	maxDays   = 3_660_000
	maxMicros = 87_840_000 * microsPerHour
)

// Interval reads "[sign]Y-M [sign]D [sign]H:M:S[.F]" or some of its parts, in that order.
func Interval(s string) (Span, error) {
	var out Span
	parts := strings.Fields(s)
	last := 0 // 1 year-month, 2 day, 3 time
	for _, part := range parts {
		kind, err := out.part(part)
		if err != nil || kind <= last {
			return Span{}, fmt.Errorf("Invalid interval literal %q", s)
		}
		last = kind
	}
	if last == 0 {
		return Span{}, fmt.Errorf("Invalid interval literal %q", s)
	}
	return out, out.Check()
}

// Check holds the ranges of the parts.
func (s Span) Check() error {
	switch {
	case s.Months < -maxMonths || s.Months > maxMonths:
		return fmt.Errorf("Interval value is out of range: %d months", s.Months)
	case s.Days < -maxDays || s.Days > maxDays:
		return fmt.Errorf("Interval value is out of range: %d days", s.Days)
	case s.Micros < -maxMicros || s.Micros > maxMicros:
		return fmt.Errorf("Interval value is out of range: %d microseconds", s.Micros)
	}
	return nil
}

// part reads one part and says which it was.
func (s *Span) part(text string) (kind int, err error) {
	sign := int64(1)
	if text[0] == '-' || text[0] == '+' {
		if text[0] == '-' {
			sign = -1
		}
		text = text[1:]
	}
	p := scanner{rest: text}
	n, err := p.number(1, 8)
	switch {
	case err != nil:
		return 0, err
	case p.rest == "":
		s.Days = int32(sign) * int32(n)
		return 2, nil
	case p.char("-"):
		months, err := p.number(1, 8)
		s.Months = int32(sign) * int32(min(n*12+months, maxMonths+1))
		return 1, firstOf(err, p.end())
	case p.char(":"):
		s.Micros, err = p.hours(int64(n))
		s.Micros *= sign
		return 3, firstOf(err, p.end())
	}
	return 0, errCivil
}

// hours reads "M:S[.F]" behind the hours of an interval, which have no upper limit of a day.
func (p *scanner) hours(hours int64) (int64, error) {
	minute, err := p.number(1, 2)
	if err != nil || minute > 59 {
		return 0, errCivil
	}
	micros := hours*microsPerHour + int64(minute)*microsPerMinute
	if !p.char(":") {
		return micros, nil
	}
	second, err := p.number(1, 2)
	if err != nil || second > 59 {
		return 0, errCivil
	}
	micros += int64(second) * microsPerSecond
	if p.char(".") {
		fraction, picos, err := p.fraction()
		if err != nil || picos != 0 {
			return 0, errCivil
		}
		micros += fraction
	}
	return micros, nil
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
