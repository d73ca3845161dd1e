package csvrow

import (
	"bytes"
	"encoding/base64"
	"math"
	"strconv"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

var (
	errInt    = &row.ValueError{Kind: row.KindType, Msg: "expected a whole number"}
	errIntBig = &row.ValueError{Kind: row.KindRange, Msg: "expected a whole number of 64 bits"}
	errFloat  = &row.ValueError{Kind: row.KindType, Msg: "expected a number, NaN, Infinity or -Infinity"}
	errHuge   = &row.ValueError{Kind: row.KindRange, Msg: "expected a number that FLOAT64 holds"}
	errBool   = &row.ValueError{Kind: row.KindType, Msg: "expected true or false"}
	errBase64 = &row.ValueError{Kind: row.KindType, Msg: "expected base64"}
	errNumber = &row.ValueError{Kind: row.KindType, Msg: "found a number, expected a timestamp: TimestampNumbers says what numbers mean"}
	errCount  = &row.ValueError{Kind: row.KindRange, Msg: "expected a number that is an instant in the years 1 to 9999, UTC"}
	errRange  = &row.ValueError{Kind: row.KindType, Msg: "expected a range as [start, end), each side a value or UNBOUNDED"}
)

// value appends the value of a cell. What is appended before an error is ignored.
func (p *parser) value(buf []byte, c *column, text []byte) ([]byte, error) {
	switch c.typ {
	case table.String, table.JSON, table.Geography:
		return row.AppendText(buf, text), nil
	case table.Int64:
		n, err := whole(text)
		return row.AppendInt(buf, n), err
	case table.Float64:
		f, err := float(text)
		return row.AppendFloat(buf, f), err
	case table.Bool:
		switch {
		case bytes.EqualFold(text, []byte("true")):
			return row.AppendBool(buf, true), nil
		case bytes.EqualFold(text, []byte("false")):
			return row.AppendBool(buf, false), nil
		}
		return buf, errBool
	case table.Numeric, table.BigNumeric:
		v, err := row.ParseDecimal(c.decimal, text)
		return row.AppendScaled(buf, v), err
	case table.Bytes:
		return p.bytes(buf, text)
	case table.Interval:
		months, days, micros, err := row.ParseInterval(string(text))
		if err != nil {
			return buf, err
		}
		out, start := row.BeginLength(buf)
		return row.EndLength(row.AppendInterval(out, months, days, micros), start), nil
	case table.Range:
		return p.rangeValue(buf, c, text)
	}
	n, err := p.time(c.typ, text)
	return row.AppendInt(buf, n), err
}

// whole reads -?[0-9]+.
func whole(text []byte) (int64, error) {
	if !digits(text) {
		return 0, errInt
	}
	negative := text[0] == '-'
	if negative {
		text = text[1:]
	}
	var n uint64
	for _, c := range text {
		d := uint64(c - '0')
		if n > (math.MaxInt64+1-d)/10 {
			return 0, errIntBig
		}
		n = n*10 + d
	}
	switch {
	case negative:
		return -int64(n), nil
	case n > math.MaxInt64:
		return 0, errIntBig
	}
	return int64(n), nil
}

func digits(text []byte) bool {
	if len(text) > 0 && text[0] == '-' {
		text = text[1:]
	}
	for _, c := range text {
		if c-'0' > 9 {
			return false
		}
	}
	return len(text) > 0
}

func float(text []byte) (float64, error) {
	for _, c := range text {
		// What Go also reads and other programs do not: hexadecimal, underscores, inf, infinity in any case.
		if c-'0' > 9 && c != '.' && c != '-' && c != '+' && c|0x20 != 'e' {
			return special(text)
		}
	}
	f, err := strconv.ParseFloat(string(text), 64)
	switch {
	case err != nil && math.IsInf(f, 0):
		return 0, errHuge
	case err != nil:
		return 0, errFloat
	}
	return f, nil
}

// quietNaN is the NaN of IEEE 754 that other languages write; Go's own has another last bit.
var quietNaN = math.Float64frombits(0x7ff8 << 48)

func special(text []byte) (float64, error) {
	switch string(text) {
	case "NaN":
		return quietNaN, nil
	case "Infinity":
		return math.Inf(1), nil
	case "-Infinity":
		return math.Inf(-1), nil
	}
	return 0, errFloat
}

// bytes reads base64 of either alphabet, padded or not.
func (p *parser) bytes(buf, text []byte) ([]byte, error) {
	p.text = append(p.text[:0], bytes.TrimRight(text, "=")...)
	for i, c := range p.text {
		switch c {
		case '-':
			p.text[i] = '+'
		case '_':
			p.text[i] = '/'
		case '\r', '\n':
			return buf, errBase64 // Go would pass over them
		}
	}
	if pad := len(text) - len(p.text); pad > 2 || pad > 0 && len(text)%4 != 0 {
		return buf, errBase64
	}
	buf, start := row.BeginLength(buf)
	out, err := base64.RawStdEncoding.AppendDecode(buf, p.text)
	if err != nil {
		return buf, errBase64
	}
	return row.EndLength(out, start), nil
}

// time converts text to what the wire holds.
func (p *parser) time(t table.Type, text []byte) (int64, error) {
	switch t {
	case table.Date:
		return row.ParseDate(text)
	case table.Time:
		n, err := row.ParseTime(text)
		return row.PackTime(n), err
	case table.DateTime:
		n, err := row.ParseDateTime(text)
		if err != nil {
			return 0, err
		}
		return row.PackDateTime(n), nil
	}
	if digits(text) {
		return p.count(text)
	}
	return row.ParseTimestamp(text)
}

// count is the instant that a whole number is.
func (p *parser) count(text []byte) (int64, error) {
	unit := int64(1)
	switch p.options.TimestampNumbers {
	case RejectNumbers:
		return 0, errNumber
	case Seconds:
		unit = 1_000_000
	case Millis:
		unit = 1000
	}
	n, err := whole(text)
	if err != nil || n > math.MaxInt64/unit || n < math.MinInt64/unit || row.CheckMicros(n*unit) != nil {
		return 0, errCount
	}
	return n * unit, nil
}

// rangeValue reads [start, end).
func (p *parser) rangeValue(buf []byte, c *column, text []byte) ([]byte, error) {
	if len(text) < 2 || text[0] != '[' || text[len(text)-1] != ')' {
		return buf, errRange
	}
	start, end, ok := bytes.Cut(text[1:len(text)-1], []byte(", "))
	if !ok {
		return buf, errRange
	}
	buf, from := row.BeginLength(buf)
	for i, side := range [...][]byte{start, end} {
		if bytes.EqualFold(side, []byte("UNBOUNDED")) {
			continue
		}
		n, err := p.time(c.element, side)
		if err != nil {
			return buf, err
		}
		f := table.Field{Type: c.element}
		buf = row.AppendInt(append(buf, byte(row.FieldNumber(i))<<3|byte(row.WireType(&f))), n)
	}
	return row.EndLength(buf, from), nil
}
