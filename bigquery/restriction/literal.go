package restriction

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// Literal is a value of one type. One that has no text in SQL is nothing, and what compares with it is not written.
type Literal struct {
	typ  table.Type
	text string
	// raw is what is rendered when it is known to fit.
	raw []byte
}

// Int is an INT64.
func Int(v int64) Literal { return Literal{typ: table.Int64, text: strconv.FormatInt(v, 10)} }

// Bool is a BOOL.
func Bool(v bool) Literal {
	return Literal{typ: table.Bool, text: strings.ToUpper(strconv.FormatBool(v))}
}

// Float is a FLOAT64; infinities and NaN are nothing.
func Float(v float64) Literal {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Literal{}
	}
	text := strconv.FormatFloat(v, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return Literal{typ: table.Float64, text: text}
}

// String is a STRING; what is not valid UTF-8 is nothing.
func String(v string) Literal {
	if !utf8.ValidString(v) {
		return Literal{}
	}
	return Literal{typ: table.String, raw: []byte(v)}
}

// Bytes are BYTES.
func Bytes(v []byte) Literal { return Literal{typ: table.Bytes, raw: v} }

// Decimal is a NUMERIC or BIGNUMERIC in plain digits, "-12.50". What is none is nothing.
func Decimal(v string) Literal {
	if !decimal(v) {
		return Literal{}
	}
	return Literal{typ: table.BigNumeric, text: "BIGNUMERIC '" + v + "'"}
}

func decimal(s string) bool {
	s = strings.TrimPrefix(s, "-")
	whole, fraction, point := strings.Cut(s, ".")
	return digits(whole) && (!point || digits(fraction))
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// Date is a DATE, "2026-08-12". The text is that of a value; what is not of this form is nothing.
func Date(v string) Literal { return typed(table.Date, "DATE", v, "0000-00-00") }

// Time is a TIME, "12:34:56.789000".
func Time(v string) Literal { return typed(table.Time, "TIME", v, "00:00:00.000000") }

// DateTime is a DATETIME, "2026-08-12 10:00:00.000000".
func DateTime(v string) Literal {
	return typed(table.DateTime, "DATETIME", v, "0000-00-00 00:00:00.000000")
}

// Timestamp is a TIMESTAMP in UTC, "2026-08-12 10:00:00.000000Z".
func Timestamp(v string) Literal {
	return typed(table.Timestamp, "TIMESTAMP", v, "0000-00-00 00:00:00.000000Z")
}

// typed is a literal whose text has the form of an example, with any digits.
func typed(t table.Type, name, v, form string) Literal {
	if len(v) != len(form) {
		return Literal{}
	}
	for i := range len(v) {
		if digit := v[i] >= '0' && v[i] <= '9'; digit != (form[i] == '0') || !digit && v[i] != form[i] {
			return Literal{}
		}
	}
	return Literal{typ: t, text: name + " '" + v + "'"}
}

// fits says whether a column can be compared with the literal.
func (l Literal) fits(t table.Type) bool {
	return l.typ == t || l.typ == table.BigNumeric && t == table.Numeric || l.typ == table.Int64 && (t == table.Numeric || t == table.BigNumeric)
}

// size is the bytes that append adds.
func (l Literal) size() int {
	switch l.typ {
	case table.Bytes:
		return 4*len(l.raw) + len("b''")
	case table.String:
		n := len("''")
		for i := range l.raw {
			n += len(escaped(l.raw[i:i+1], '\''))
		}
		return n
	}
	return len(l.text)
}

func (l Literal) append(b []byte) []byte {
	switch l.typ {
	case table.Bytes:
		b = append(b, "b'"...)
		for _, c := range l.raw {
			b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
		}
		return append(b, '\'')
	case table.String:
		return append(appendEscaped(append(b, '\''), l.raw, '\''), '\'')
	}
	return append(b, l.text...)
}

const hex = "0123456789abcdef"

// appendEscaped writes text between quotes (GoogleSQL, "Lexical structure", "Escape sequences").
func appendEscaped(b, text []byte, quote byte) []byte {
	for i := range text {
		b = append(b, escaped(text[i:i+1], quote)...)
	}
	return b
}

// escaped is one byte of a text between quotes. Bytes of longer characters stand for themselves.
func escaped(one []byte, quote byte) string {
	c := one[0]
	switch c {
	case quote, '\\':
		return "\\" + string(one)
	case '\b':
		return `\b`
	case '\f':
		return `\f`
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	if c < 0x20 || c == 0x7f {
		return `\u00` + string([]byte{hex[c>>4], hex[c&15]})
	}
	return string(one)
}
