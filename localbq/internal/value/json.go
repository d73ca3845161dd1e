package value

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxJSONDepth is BigQuery's limit of nesting (BigQuery documentation, "JSON type").
const maxJSONDepth = 500

// AppendJSON appends the normalised form of a JSON text to dst: no space between tokens, members of an object ordered by
// name and the first of equal names kept, integers in the range of int64 and uint64 exact, other numbers as doubles
// (BigQuery documentation, "JSON type", leaves the order and the form of numbers open). The text must be one JSON value.
func AppendJSON(dst, text []byte) ([]byte, error) {
	p := normaliser{text: text}
	p.space()
	out, err := p.value(dst, 1)
	if err == nil {
		p.space()
		if p.at < len(text) {
			err = p.fail("unexpected %q after the value", text[p.at])
		}
	}
	if err != nil {
		return dst, err
	}
	return out, nil
}

type normaliser struct {
	text []byte
	at   int
}

func (p *normaliser) fail(format string, args ...any) error {
	return fmt.Errorf("syntax error while parsing JSON at byte %d: %s", p.at, fmt.Sprintf(format, args...))
}

func (p *normaliser) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// skip passes c and the space after it.
func (p *normaliser) skip(c byte) bool {
	if p.at >= len(p.text) || p.text[p.at] != c {
		return false
	}
	p.at++
	p.space()
	return true
}

func (p *normaliser) value(dst []byte, depth int) ([]byte, error) {
	if p.at >= len(p.text) {
		return nil, p.fail("unexpected end of text")
	}
	switch c := p.text[p.at]; {
	case (c == '{' || c == '[') && depth > maxJSONDepth:
		return nil, p.fail("nested deeper than %d levels", maxJSONDepth)
	case c == '{':
		return p.object(dst, depth)
	case c == '[':
		return p.array(dst, depth)
	case c == '"':
		return p.string(dst)
	case c == '-' || c >= '0' && c <= '9':
		return p.number(dst)
	}
	for _, literal := range [...]string{"true", "false", "null"} {
		if bytes.HasPrefix(p.text[p.at:], []byte(literal)) {
			p.at += len(literal)
			return append(dst, literal...), nil
		}
	}
	return nil, p.fail("unexpected %q", p.text[p.at])
}

func (p *normaliser) array(dst []byte, depth int) ([]byte, error) {
	p.skip('[')
	dst = append(dst, '[')
	if p.closes(']') {
		return append(dst, ']'), nil
	}
	for {
		var err error
		if dst, err = p.value(dst, depth+1); err != nil {
			return nil, err
		}
		p.space()
		if p.closes(']') {
			return append(dst, ']'), nil
		}
		if !p.skip(',') {
			return nil, p.fail("expected a comma or ]")
		}
		dst = append(dst, ',')
	}
}

// closes passes the bracket that ends a value and leaves the space after it to the caller.
func (p *normaliser) closes(c byte) bool {
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

// member is where in the output a member of the object at hand was written: "name":value.
type member struct{ from, name, to int }

func (p *normaliser) object(dst []byte, depth int) ([]byte, error) {
	p.skip('{')
	dst = append(dst, '{')
	if p.closes('}') {
		return append(dst, '}'), nil
	}
	start := len(dst)
	var members []member
	for {
		m := member{from: len(dst)}
		var err error
		if p.at >= len(p.text) || p.text[p.at] != '"' {
			return nil, p.fail("expected a member's name")
		}
		if dst, err = p.string(dst); err != nil {
			return nil, err
		}
		m.name = len(dst)
		p.space()
		if !p.skip(':') {
			return nil, p.fail("expected a colon")
		}
		if dst, err = p.value(append(dst, ':'), depth+1); err != nil {
			return nil, err
		}
		m.to = len(dst)
		members = append(members, m)
		p.space()
		if p.closes('}') {
			return append(arrange(dst, start, members), '}'), nil
		}
		if !p.skip(',') {
			return nil, p.fail("expected a comma or }")
		}
	}
}

// arrange puts the members written from start on in order, with commas, and drops all but the first of equal names.
func arrange(dst []byte, start int, members []member) []byte {
	written := slices.Clone(dst[start:])
	name := func(m member) []byte { return written[m.from-start : m.name-start] }
	slices.SortStableFunc(members, func(a, b member) int { return bytes.Compare(name(a), name(b)) })
	dst = dst[:start]
	for i, m := range members {
		if i > 0 && bytes.Equal(name(members[i-1]), name(m)) {
			continue
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, written[m.from-start:m.to-start]...)
	}
	return dst
}

func (p *normaliser) string(dst []byte) ([]byte, error) {
	end, plain := p.at+1, true
	for ; end < len(p.text) && p.text[end] != '"'; end++ {
		switch c := p.text[end]; {
		case c == '\\':
			plain = false
			end++
		case c < ' ':
			return nil, p.fail("control character in a string")
		}
	}
	if end >= len(p.text) {
		return nil, p.fail("unterminated string")
	}
	raw := p.text[p.at : end+1]
	if !utf8.Valid(raw) {
		return nil, p.fail("string is not valid UTF-8")
	}
	if !plain {
		unquoted, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return nil, p.fail("invalid string")
		}
		p.at = end + 1
		return jsontext.AppendQuote(dst, unquoted)
	}
	p.at = end + 1
	return append(dst, raw...), nil
}

func (p *normaliser) number(dst []byte) ([]byte, error) {
	from := p.at
	if p.text[p.at] == '-' {
		p.at++
	}
	leadingZero := p.at < len(p.text) && p.text[p.at] == '0'
	digits := p.digits()
	if digits == 0 || leadingZero && digits > 1 {
		return nil, p.fail("invalid number")
	}
	integer := true
	if p.closes('.') {
		if integer = false; p.digits() == 0 {
			return nil, p.fail("invalid number")
		}
	}
	if p.closes('e') || p.closes('E') {
		if _ = p.closes('+') || p.closes('-'); p.digits() == 0 {
			return nil, p.fail("invalid number")
		}
		integer = false
	}
	return appendNumber(dst, string(p.text[from:p.at]), integer, p)
}

func (p *normaliser) digits() int {
	from := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	return p.at - from
}

func appendNumber(dst []byte, s string, integer bool, p *normaliser) ([]byte, error) {
	if integer {
		if v, err := strconv.ParseInt(s, 10, 64); err == nil {
			return strconv.AppendInt(dst, v, 10), nil
		}
		if v, err := strconv.ParseUint(s, 10, 64); err == nil {
			return strconv.AppendUint(dst, v, 10), nil
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, p.fail("number %s is out of range", s)
	}
	return appendDouble(dst, v), nil
}

// appendDouble writes the shortest form that reads back the same, with a point or an exponent in it.
func appendDouble(dst []byte, v float64) []byte {
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e15) {
		return strconv.AppendFloat(dst, v, 'e', -1, 64)
	}
	from := len(dst)
	dst = strconv.AppendFloat(dst, v, 'f', -1, 64)
	if bytes.IndexByte(dst[from:], '.') < 0 {
		dst = append(dst, ".0"...)
	}
	return dst
}
