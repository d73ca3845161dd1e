package jsonrow

import (
	"math"

	"github.com/millrace-dev/millrace/bigquery/row"
)

// timeValue reads the value of a DATE, TIME, DATETIME or TIMESTAMP column.
func (p *parser) timeValue(c *column, tag string) bool {
	at := p.pos
	var v int64
	var err error
	switch first := p.peek(); {
	case first == '"':
		sp, ok := p.str()
		if !ok {
			return false
		}
		v, err = p.timeText(c.op, p.plain(sp))
	case (first == '-' || first-'0' <= 9) && (c.op == opTimestamp || c.op == opDate):
		lit, ok := p.wholeText(false, "a whole number or a string")
		if !ok {
			return false
		}
		v, err = p.timeNumber(c.op, lit)
	default:
		return p.mismatch("a string")
	}
	if err != nil {
		return p.reject(err, at)
	}
	p.buf = row.AppendInt(append(p.buf, tag...), v)
	return true
}

var (
	errExactTimestamp = &row.ValueError{Kind: row.KindType, Msg: "expected a timestamp as YYYY-MM-DDTHH:MM:SS, at most 6 " +
		"fractional digits, and Z or an offset: other text would come back changed"}
	errExactDate = &row.ValueError{Kind: row.KindType, Msg: "expected a date as YYYY-MM-DD: other text would come back changed"}
	errTimeCount = &row.ValueError{Kind: row.KindRange, Msg: "expected a number that is an instant in the years 1 to 9999, UTC"}
	errDayCount  = &row.ValueError{Kind: row.KindRange, Msg: "expected a number of days from -719162 to 2932896"}
	errNoNumbers = &row.ValueError{Kind: row.KindType, Msg: "found a number, expected a timestamp as a string: " +
		"TimestampNumbers rejects numbers"}
)

// timeText converts the text of a string to what the wire holds.
func (p *parser) timeText(o op, text []byte) (int64, error) {
	switch o {
	case opTimestamp:
		if integer(text) {
			return p.timeNumber(o, text)
		}
		return row.ParseTimestamp(text)
	case opExactTimestamp:
		if !timestampShape(text) {
			return 0, errExactTimestamp
		}
		return row.ParseTimestamp(text)
	case opDate:
		return row.ParseDate(text)
	case opExactDate:
		if !dateShape(text) {
			return 0, errExactDate
		}
		return row.ParseDate(text)
	case opTime:
		micros, err := row.ParseTime(text)
		return row.PackTime(micros), err
	}
	micros, err := row.ParseDateTime(text)
	if err != nil {
		return 0, err
	}
	return row.PackDateTime(micros), nil
}

// timeNumber converts a whole number to what the wire holds.
func (p *parser) timeNumber(o op, lit []byte) (int64, error) {
	v, ok := parseInt(lit)
	if o == opDate {
		if !ok || row.CheckDays(v) != nil {
			return 0, errDayCount
		}
		return v, nil
	}
	unit := int64(1)
	switch p.options.TimestampNumbers {
	case RejectNumbers:
		return 0, errNoNumbers
	case Seconds:
		unit = 1_000_000
	case Millis:
		unit = 1000
	}
	if !ok || v > math.MaxInt64/unit || v < math.MinInt64/unit || row.CheckMicros(v*unit) != nil {
		return 0, errTimeCount
	}
	return v * unit, nil
}

// dateShape says whether text is YYYY-MM-DD, whatever the digits.
func dateShape(text []byte) bool {
	return len(text) == 10 && shaped(text, "0000-00-00")
}

// timestampShape says whether text is a timestamp that BigQuery keeps to the last digit: RFC 3339 with a zone and at most
// six fractional digits.
func timestampShape(text []byte) bool {
	const seconds = "0000-00-00T00:00:00"
	if len(text) <= len(seconds) || !shaped(text, seconds) {
		return false
	}
	rest := text[len(seconds):]
	if rest[0] == '.' {
		n := 1
		for n < len(rest) && rest[n]-'0' <= 9 {
			n++
		}
		if n < 2 || n > 7 {
			return false
		}
		rest = rest[n:]
	}
	if len(rest) == 1 {
		return rest[0] == 'Z'
	}
	return len(rest) == 6 && (rest[0] == '+' || rest[0] == '-') && shaped(rest[1:], "00:00")
}

// shaped says whether text begins like the pattern, in which 0 stands for any digit.
func shaped(text []byte, pattern string) bool {
	if len(text) < len(pattern) {
		return false
	}
	for i := range len(pattern) {
		if c := text[i]; c != pattern[i] && (pattern[i] != '0' || c-'0' > 9) {
			return false
		}
	}
	return true
}
