package jsonrow

import (
	"encoding/base64"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// appendFloat appends the shortest number that reads back as v, with an exponent where ECMAScript would write one, as
// encoding/json does.
func appendFloat(buf []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(buf, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(buf, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(buf, `"-Infinity"`...)
	}
	format := byte('f')
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(buf, v, format, -1, 64)
}

func appendDecimal(buf []byte, v *row.Value) ([]byte, error) {
	s, err := row.ScaledFromBigEndian(v.Bytes)
	if err == nil && (v.Int < 0 || v.Int > 77) {
		err = decodeError("a decimal with the scale " + strconv.FormatInt(v.Int, 10))
	}
	if err != nil {
		return buf, err
	}
	return s.AppendText(buf, int(v.Int)), nil
}

func appendBase64(buf, b []byte) []byte {
	buf = append(buf, '"')
	buf = base64.StdEncoding.AppendEncode(buf, b)
	return append(buf, '"')
}

func appendTime(buf []byte, t table.Type, v int64) (_ []byte, err error) {
	buf = append(buf, '"')
	switch t {
	case table.Date:
		if err = row.CheckDays(v); err == nil {
			buf = row.AppendDate(buf, v)
		}
	case table.Time:
		if err = row.CheckTime(v); err == nil {
			buf = row.AppendTime(buf, v)
		}
	case table.DateTime:
		if err = row.CheckDateTime(v); err == nil {
			buf = row.AppendDateTime(buf, v)
		}
	default:
		if err = row.CheckMicros(v); err == nil {
			buf = row.AppendTimestamp(buf, v)
		}
	}
	return append(buf, '"'), err
}

func appendInterval(buf []byte, v *row.Value) ([]byte, error) {
	if len(v.List) != 3 {
		return buf, decodeError("an INTERVAL of " + strconv.Itoa(len(v.List)) + " parts")
	}
	buf = append(buf, '"')
	buf = row.AppendInterval(buf, v.List[0].Int, v.List[1].Int, v.List[2].Int)
	return append(buf, '"'), nil
}

// appendJSONColumn appends a JSON column's value. It is checked: one broken value would break the line, and all that
// follow.
func appendJSONColumn(buf, text []byte) ([]byte, error) {
	s := scanner{data: text}
	s.space()
	at := s.pos
	if !s.skip(0) {
		return buf, decodeError("the JSON column does not hold JSON: " + s.fault.msg)
	}
	end := s.pos
	if s.space(); s.pos < len(text) {
		return buf, decodeError("the JSON column holds more than one value")
	}
	if s.spaced {
		return appendCompact(buf, text[at:end]), nil
	}
	return append(buf, text[at:end]...), nil
}

func appendText(buf, text []byte) ([]byte, error) {
	if !utf8.Valid(text) {
		return buf, decodeError("the text is not valid UTF-8")
	}
	return row.AppendQuoted(buf, text), nil
}
