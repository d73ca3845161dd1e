package value

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Ranges of the types of time: 0001-01-01 to 9999-12-31 (BigQuery documentation, "Data types").
const (
	MinDate      = -719_162 // days since 1970-01-01
	MaxDate      = 2_932_896
	MinTimestamp = -62_135_596_800_000_000 // microseconds since 1970-01-01 00:00:00 UTC, also of a DATETIME read as UTC
	MaxTimestamp = 253_402_300_799_999_999
	MaxTime      = 86_400_000_000 - 1 // microseconds since midnight
)

const (
	microsPerSecond = 1_000_000
	microsPerMinute = 60 * microsPerSecond
	microsPerHour   = 60 * microsPerMinute
	microsPerDay    = 24 * microsPerHour
)

var errCivil = errors.New("is not a date or time")

// Date reads "Y-[M]M-[D]D" as days since 1970-01-01.
func Date(s string) (int32, error) {
	p := scanner{rest: strings.TrimSpace(s)}
	days, err := p.date()
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return 0, fmt.Errorf("Invalid date: %q", s)
	}
	return int32(days), nil
}

// Time reads "[H]H:[M]M:[S]S[.F]" as microseconds since midnight.
func Time(s string) (int64, error) {
	p := scanner{rest: strings.TrimSpace(s)}
	picos, err := p.clock()
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return 0, fmt.Errorf("Invalid time string %q", s)
	}
	return picos.micros, nil
}

// DateTime reads "Y-[M]M-[D]D", optionally followed by a space or T and a time, as microseconds since 1970-01-01 00:00.
func DateTime(s string) (int64, error) {
	p := scanner{rest: strings.TrimSpace(s)}
	at, err := p.dateTime()
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return 0, fmt.Errorf("Invalid datetime string %q", s)
	}
	return at.micros, nil
}

// Timestamp reads a date, optionally a time and a zone (Z, UTC, ±H[H][:MM], or a name of the zone database, UTC when
// absent), as microseconds since the epoch. Digits past the sixth are cut off.
func Timestamp(s string) (int64, error) {
	at, err := timestamp(s)
	return at.micros, err
}

// TimestampPicos is Timestamp for a column of picoseconds: the instant as 2006-01-02T15:04:05.000000000000Z.
func TimestampPicos(s string) (string, error) {
	at, err := timestamp(s)
	if err != nil {
		return "", err
	}
	return FormatPicos(at.micros, at.picos), nil
}

// FormatPicos writes microseconds since the epoch and picoseconds within the microsecond as a text of fixed width, which
// sorts as the instants do.
func FormatPicos(micros int64, picos int32) string {
	t := time.UnixMicro(micros).UTC()
	return fmt.Sprintf("%s.%06d%06dZ", t.Format("2006-01-02T15:04:05"), t.Nanosecond()/1000, picos)
}

func timestamp(s string) (instant, error) {
	p := scanner{rest: strings.TrimSpace(s)}
	at, err := p.dateTime()
	if err != nil {
		return instant{}, fmt.Errorf("Invalid timestamp: %q", s)
	}
	offset, err := p.zone(at.micros)
	if err != nil {
		return instant{}, fmt.Errorf("Invalid timestamp: %q", s)
	}
	at.micros -= offset
	if at.micros < MinTimestamp || at.micros > MaxTimestamp {
		return instant{}, fmt.Errorf("Timestamp is out of range: %q", s)
	}
	return at, nil
}

// instant is microseconds, and the picoseconds that a microsecond leaves over.
type instant struct {
	micros int64
	picos  int32
}

// scanner reads a text from the front.
type scanner struct{ rest string }

func (p *scanner) end() error {
	if p.rest != "" {
		return errCivil
	}
	return nil
}

// number reads low to high digits.
func (p *scanner) number(low, high int) (int, error) {
	n, i := 0, 0
	for i < len(p.rest) && i < high && p.rest[i] >= '0' && p.rest[i] <= '9' {
		n = n*10 + int(p.rest[i]-'0')
		i++
	}
	if i < low {
		return 0, errCivil
	}
	p.rest = p.rest[i:]
	return n, nil
}

// char reads one of the characters in set.
func (p *scanner) char(set string) bool {
	if p.rest == "" || strings.IndexByte(set, p.rest[0]) < 0 {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// date reads a calendar date, strictly: 2026-02-30 is none.
func (p *scanner) date() (int64, error) {
	year, err := p.number(1, 4)
	if err != nil || !p.char("-") {
		return 0, errCivil
	}
	month, err := p.number(1, 2)
	if err != nil || !p.char("-") {
		return 0, errCivil
	}
	day, err := p.number(1, 2)
	if err != nil {
		return 0, err
	}
	return civilDays(year, month, day)
}

// civilDays are the days from 1970-01-01 to a date that exists, in the years 1 to 9999.
func civilDays(year, month, day int) (int64, error) {
	if year < 1 || year > 9999 || month < 1 || month > 12 || day < 1 || day > 31 {
		return 0, errCivil
	}
	t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if t.Day() != day {
		return 0, errCivil
	}
	return t.Unix() / 86_400, nil
}

// clock reads a time of day. The instant counts from midnight.
func (p *scanner) clock() (instant, error) {
	hour, err := p.number(1, 2)
	if err != nil || !p.char(":") {
		return instant{}, errCivil
	}
	minute, err := p.number(1, 2)
	if err != nil || !p.char(":") {
		return instant{}, errCivil
	}
	second, err := p.number(1, 2)
	if err != nil || hour > 23 || minute > 59 || second > 59 {
		return instant{}, errCivil
	}
	at := instant{micros: int64(hour)*microsPerHour + int64(minute)*microsPerMinute + int64(second)*microsPerSecond}
	if p.char(".") {
		micros, picos, err := p.fraction()
		if err != nil {
			return instant{}, err
		}
		at.micros, at.picos = at.micros+micros, picos
	}
	return at, nil
}

// fraction reads the digits of a second behind the point: up to 12 count, more are refused.
func (p *scanner) fraction() (micros int64, picos int32, err error) {
	before := len(p.rest)
	n, err := p.number(1, 12)
	if err != nil {
		return 0, 0, err
	}
	if p.rest != "" && p.rest[0] >= '0' && p.rest[0] <= '9' {
		return 0, 0, errCivil
	}
	v := int64(n)
	for range 12 - (before - len(p.rest)) {
		v *= 10
	}
	return v / 1_000_000, int32(v % 1_000_000), nil
}

func (p *scanner) dateTime() (instant, error) {
	days, err := p.date()
	if err != nil {
		return instant{}, err
	}
	at := instant{micros: days * microsPerDay}
	if p.rest == "" || !p.timeFollows() {
		return at, nil
	}
	p.rest = p.rest[1:]
	clock, err := p.clock()
	at.micros += clock.micros
	at.picos = clock.picos
	return at, err
}

// timeFollows tells "2026-01-01 10:…" from "2026-01-01 UTC".
func (p *scanner) timeFollows() bool {
	if p.rest[0] == 'T' || p.rest[0] == 't' {
		return true
	}
	return p.rest[0] == ' ' && len(p.rest) > 1 && p.rest[1] >= '0' && p.rest[1] <= '9'
}

// zone reads what is left as a zone and returns its offset from UTC in microseconds at a local time.
func (p *scanner) zone(local int64) (int64, error) {
	name := strings.TrimLeft(p.rest, " ")
	switch {
	case name == "" && p.rest == "", name == "Z", name == "z", strings.EqualFold(name, "UTC"):
		return 0, nil
	case name == "":
		return 0, errCivil
	case name[0] == '+' || name[0] == '-':
		return fixedOffset(name)
	}
	if p.rest == name { // a named zone stands apart from the time
		return 0, errCivil
	}
	return namedOffset(name, local)
}

func fixedOffset(name string) (int64, error) {
	p := scanner{rest: name[1:]}
	hour, err := p.number(1, 2)
	if err != nil {
		return 0, err
	}
	minute := 0
	if p.rest != "" {
		p.char(":")
		if minute, err = p.number(2, 2); err != nil {
			return 0, err
		}
	}
	if p.rest != "" || minute > 59 || hour*60+minute > 14*60 {
		return 0, errCivil
	}
	offset := int64(hour)*microsPerHour + int64(minute)*microsPerMinute
	if name[0] == '-' {
		offset = -offset
	}
	return offset, nil
}

func namedOffset(name string, local int64) (int64, error) {
	if strings.EqualFold(name, "local") {
		return 0, errCivil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return 0, errCivil
	}
	l := time.UnixMicro(local).UTC()
	_, seconds := time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), 0, zone).Zone()
	return int64(seconds) * microsPerSecond, nil
}
