package scalar

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Strptime reads a time by a format; kind is DATE, DATETIME, TIMESTAMP or TIME. What the format does not name is that of
// 1970-01-01 00:00:00, in a zone for a TIMESTAMP.
func Strptime(format, s, name, kind string) (int64, error) {
	p := parsing{rest: s, year: 1970, month: 1, day: 1, quarter: -1, yearDay: -1}
	err := p.all(format)
	if err == nil && trimSpace(p.rest) != "" {
		err = fmt.Errorf("illegal non-space trailing data '%s' in string", p.rest)
	}
	if err != nil {
		return 0, fmt.Errorf("Failed to parse input string %q: %w", s, err)
	}
	micros, err := p.result(name, kind)
	if err != nil {
		return 0, fmt.Errorf("Failed to parse input string %q: %w", s, err)
	}
	return micros, nil
}

// parsing is what has been read so far.
type parsing struct {
	rest             string
	year, month, day int
	yearDay, quarter int // -1 where not named
	hour             int
	minute, second   int
	micros           int64
	pm, twelve       bool // AM or PM, and an hour of twelve
	zone             *time.Location
	instant          *int64 // %s
}

func (p *parsing) all(format string) error {
	for i := 0; i < len(format); i++ {
		c := format[i]
		switch {
		case c == '%' && i+1 < len(format):
			n, err := p.element(format[i+1:])
			if err != nil {
				return err
			}
			i += n
		case unicode.IsSpace(rune(c)):
			p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace)
		case p.rest == "" || p.rest[0] != c:
			return fmt.Errorf("expected %q at %q", c, p.rest)
		default:
			p.rest = p.rest[1:]
		}
	}
	return nil
}

// expansions are elements that stand for others.
var expansions = map[byte]string{
	'D': "%m/%d/%y", 'x': "%m/%d/%y", 'F': "%Y-%m-%d", 'R': "%H:%M", 'T': "%H:%M:%S", 'X': "%H:%M:%S", 'r': "%I:%M:%S %p",
	'c': "%a %b %e %H:%M:%S %Y", 'n': " ", 't': " ",
}

// element reads what the element at the start of f means, and answers its length without the per cent sign.
func (p *parsing) element(f string) (int, error) {
	if e, ok := expansions[f[0]]; ok {
		return 1, p.all(e)
	}
	var err error
	switch f[0] {
	case 'E':
		return p.extended(f)
	case '%':
		return 1, p.all("%")
	case 'Y':
		p.year, err = p.number(4, 1, 9999)
	case 'y':
		if p.year, err = p.number(2, 0, 99); p.year < 69 {
			p.year += 100
		}
		p.year += 1900
	case 'm':
		p.month, err = p.number(2, 1, 12)
	case 'd', 'e':
		p.rest = strings.TrimLeft(p.rest, " ")
		p.day, err = p.number(2, 1, 31)
	case 'j':
		p.yearDay, err = p.number(3, 1, 366)
	case 'Q':
		p.quarter, err = p.number(1, 1, 4)
	case 'H', 'k':
		p.rest = strings.TrimLeft(p.rest, " ")
		p.hour, err = p.number(2, 0, 23)
	case 'I', 'l':
		p.rest = strings.TrimLeft(p.rest, " ")
		p.twelve = true
		p.hour, err = p.number(2, 1, 12)
	case 'M':
		p.minute, err = p.number(2, 0, 59)
	case 'S':
		p.second, err = p.number(2, 0, 60)
	default:
		return 1, p.word(f[0])
	}
	return 1, err
}

func (p *parsing) word(element byte) (err error) {
	switch element {
	case 'B', 'b', 'h':
		var i int
		i, err = p.name(func(i int) string { return time.Month(i + 1).String() }, 12)
		p.month = i + 1
	case 'A', 'a':
		_, err = p.name(func(i int) string { return time.Weekday(i).String() }, 7)
	case 'p', 'P':
		var i int
		i, err = p.name(func(i int) string { return []string{"AM", "PM"}[i] }, 2)
		p.pm = i == 1
	case 'z', 'Z':
		err = p.zoneElement()
	case 's':
		var n int64
		if n, err = strconv.ParseInt(p.digits(18), 10, 64); err == nil {
			p.instant = new(n * second)
		}
	case 'u', 'w', 'U', 'V', 'W', 'G', 'g', 'C':
		_, err = p.number(4, 0, 9999) // read, and without effect on the date
	default:
		err = fmt.Errorf("invalid format element %%%c", element)
	}
	return err
}

// extended reads %Ez, %E4Y and %E*S, %E3S and their like.
func (p *parsing) extended(f string) (int, error) {
	var err error
	switch {
	case strings.HasPrefix(f, "Ez"):
		return 2, p.zoneElement()
	case strings.HasPrefix(f, "E4Y"):
		p.year, err = p.number(4, 1, 9999)
		return 3, err
	case len(f) > 2 && f[2] == 'S':
		if p.second, err = p.number(2, 0, 60); err != nil || !strings.HasPrefix(p.rest, ".") {
			return 3, err
		}
		p.rest = p.rest[1:]
		fraction := p.digits(9)
		micros := (fraction + "000000")[:6]
		p.micros, err = strconv.ParseInt(micros, 10, 64)
		return 3, err
	}
	return 0, fmt.Errorf("invalid format element %%E")
}

func (p *parsing) digits(most int) string {
	n := 0
	if n < len(p.rest) && (p.rest[0] == '-' && most > 9) {
		n++
	}
	for n < len(p.rest) && n < most && p.rest[n] >= '0' && p.rest[n] <= '9' {
		n++
	}
	text := p.rest[:n]
	p.rest = p.rest[n:]
	return text
}

func (p *parsing) number(most, low, high int) (int, error) {
	text := p.digits(most)
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("expected a number from %d to %d at %q", low, high, text+p.rest)
	}
	return n, nil
}

// name reads one of n names, whole or by its first three letters, and answers which.
func (p *parsing) name(of func(int) string, n int) (int, error) {
	for i := range n {
		full := of(i)
		for _, word := range []string{full, full[:min(3, len(full))]} {
			if len(p.rest) >= len(word) && strings.EqualFold(p.rest[:len(word)], word) {
				p.rest = p.rest[len(word):]
				return i, nil
			}
		}
	}
	return 0, fmt.Errorf("expected a name such as %s at %q", of(0), p.rest)
}

func (p *parsing) zoneElement() error {
	n := strings.IndexFunc(p.rest, func(r rune) bool { return unicode.IsSpace(r) || r == ')' })
	if n < 0 {
		n = len(p.rest)
	}
	name := p.rest[:n]
	p.rest = p.rest[n:]
	if name == "Z" {
		name = "UTC"
	}
	if len(name) == 5 && (name[0] == '+' || name[0] == '-') && !strings.Contains(name, ":") {
		name = name[:3] + ":" + name[3:]
	}
	var err error
	p.zone, err = zone(name)
	return err
}

func (p *parsing) result(name, kind string) (int64, error) {
	if p.instant != nil {
		return *p.instant, nil
	}
	if p.twelve {
		p.hour %= 12
		if p.pm {
			p.hour += 12
		}
	}
	if p.quarter > 0 && p.month == 1 {
		p.month = 3*p.quarter - 2
	}
	if p.yearDay > 0 {
		t := time.Date(p.year, 1, p.yearDay, 0, 0, 0, 0, time.UTC)
		p.month, p.day = int(t.Month()), t.Day()
	}
	date, err := MakeDate(int64(p.year), int64(p.month), int64(p.day))
	if err != nil {
		return 0, err
	}
	clock := int64(p.hour)*hour + int64(p.minute)*minute + int64(min(p.second, 59))*second + p.micros
	switch kind {
	case "DATE":
		return int64(date) * day, nil
	case "TIME":
		return clock, nil
	case "DATETIME":
		return int64(date)*day + clock, nil
	}
	if p.zone != nil {
		wall := at(int64(date)*day + clock)
		return time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), wall.Nanosecond(), p.zone).UnixMicro(), nil
	}
	return Instant(int64(date)*day+clock, name)
}
