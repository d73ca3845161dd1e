package literal

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind is what an expression is.
type Kind uint8

const (
	Null Kind = iota + 1
	Bool
	Int64
	Float64
	String
	Bytes
	Typed            // DATE '…', NUMERIC '…' and their like: Text is what stands in the quotes
	CurrentTimestamp // CURRENT_TIMESTAMP()
	CurrentDate
	CurrentDateTime
	CurrentTime
	UUID // GENERATE_UUID()
	Array
)

// Expr is a parsed expression.
type Expr struct {
	Kind     Kind
	Type     string // of Typed: the type's name in upper case
	Text     string // of String, Bytes and Typed
	Bool     bool
	Int64    int64
	Float64  float64
	Elements []Expr // of Array
}

var functions = map[string]Kind{
	"CURRENT_TIMESTAMP": CurrentTimestamp, "CURRENT_DATE": CurrentDate, "CURRENT_DATETIME": CurrentDateTime,
	"CURRENT_TIME": CurrentTime, "GENERATE_UUID": UUID,
}

var typed = map[string]bool{
	"DATE": true, "TIME": true, "DATETIME": true, "TIMESTAMP": true, "NUMERIC": true, "DECIMAL": true, "BIGNUMERIC": true,
	"BIGDECIMAL": true, "JSON": true,
}

// Parse reads an expression whole.
func Parse(sql string) (Expr, error) {
	p := parser{rest: sql}
	e, err := p.expr(true)
	if err == nil {
		p.space()
		if p.rest != "" {
			err = fmt.Errorf("unexpected %.20q behind it", p.rest)
		}
	}
	if err != nil {
		return Expr{}, fmt.Errorf("local BigQuery does not implement the default value expression %q: %w "+
			"(it takes literals, arrays of literals, CURRENT_TIMESTAMP(), CURRENT_DATE(), CURRENT_DATETIME(), CURRENT_TIME() and GENERATE_UUID())", sql, err)
	}
	return e, nil
}

type parser struct{ rest string }

func (p *parser) space() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

func (p *parser) char(c byte) bool {
	p.space()
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *parser) expr(arrays bool) (Expr, error) {
	p.space()
	switch {
	case p.rest == "":
		return Expr{}, fmt.Errorf("it is empty")
	case p.rest[0] == '[':
		if !arrays {
			return Expr{}, fmt.Errorf("an array stands in an array")
		}
		return p.array()
	case p.rest[0] == '(':
		return p.parenthesis(arrays)
	case p.quoted():
		return p.text()
	case strings.IndexByte("+-.0123456789", p.rest[0]) >= 0:
		return p.number()
	}
	return p.word()
}

func (p *parser) parenthesis(arrays bool) (Expr, error) {
	p.char('(')
	e, err := p.expr(arrays)
	if err == nil && !p.char(')') {
		err = fmt.Errorf("a closing parenthesis is missing")
	}
	return e, err
}

func (p *parser) array() (Expr, error) {
	p.char('[')
	e := Expr{Kind: Array}
	if p.char(']') {
		return e, nil
	}
	for {
		element, err := p.expr(false)
		if err != nil {
			return Expr{}, err
		}
		e.Elements = append(e.Elements, element)
		if p.char(']') {
			return e, nil
		}
		if !p.char(',') {
			return Expr{}, fmt.Errorf("a comma or ] is missing")
		}
	}
}

func (p *parser) number() (Expr, error) {
	end := 1
	for end < len(p.rest) && (strings.IndexByte(".0123456789abcdefABCDEFxX", p.rest[end]) >= 0 ||
		(p.rest[end] == '+' || p.rest[end] == '-') && p.rest[end-1]|0x20 == 'e') {
		end++
	}
	s := p.rest[:end]
	p.rest = p.rest[end:]
	if v, err := strconv.ParseInt(s, 0, 64); err == nil && !strings.HasPrefix(strings.TrimLeft(s, "+-"), "0o") {
		return Expr{Kind: Int64, Int64: v}, nil
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(v, 0) {
		return Expr{}, fmt.Errorf("%q is no number", s)
	}
	return Expr{Kind: Float64, Float64: v}, nil
}

func (p *parser) word() (Expr, error) {
	end := 0
	for end < len(p.rest) && (p.rest[end] == '_' || p.rest[end]|0x20 >= 'a' && p.rest[end]|0x20 <= 'z') {
		end++
	}
	word := strings.ToUpper(p.rest[:end])
	p.rest = p.rest[end:]
	switch word {
	case "NULL":
		return Expr{Kind: Null}, nil
	case "TRUE", "FALSE":
		return Expr{Kind: Bool, Bool: word == "TRUE"}, nil
	}
	if kind, ok := functions[word]; ok {
		if p.char('(') && !p.char(')') {
			return Expr{}, fmt.Errorf("%s has arguments", word)
		}
		return Expr{Kind: kind}, nil
	}
	if typed[word] {
		p.space()
		if p.quoted() {
			e, err := p.text()
			return Expr{Kind: Typed, Type: word, Text: e.Text}, err
		}
	}
	return Expr{}, fmt.Errorf("%.20q is not known", word+p.rest)
}

// quoted reports whether a string or bytes literal comes next: '…' or "…" behind any of b, r, br, rb.
func (p *parser) quoted() bool {
	s := strings.TrimLeft(p.rest[:min(3, len(p.rest))], "bBrR")
	return s != "" && (s[0] == '\'' || s[0] == '"')
}

func (p *parser) text() (Expr, error) {
	prefix := strings.ToLower(p.rest[:strings.IndexAny(p.rest, "'\"")])
	body := p.rest[len(prefix):]
	quote := body[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(body, triple) {
		quote = triple
	}
	e := Expr{Kind: String}
	if strings.Contains(prefix, "b") {
		e.Kind = Bytes
	}
	out, rest, err := unquote(body[len(quote):], quote, strings.Contains(prefix, "r"), e.Kind == Bytes)
	e.Text, p.rest = out, rest
	return e, err
}

// unquote reads up to the closing quote and undoes escapes.
func unquote(s, quote string, verbatim, bytes bool) (out, rest string, err error) {
	var b strings.Builder
	for s != "" {
		switch {
		case strings.HasPrefix(s, quote):
			return b.String(), s[len(quote):], nil
		case s[0] == '\\' && len(s) > 1 && verbatim:
			b.WriteString(s[:2])
			s = s[2:]
		case s[0] == '\\':
			if s, err = escape(&b, s, bytes); err != nil {
				return "", "", err
			}
		default:
			_, size := utf8.DecodeRuneInString(s)
			b.WriteString(s[:size])
			s = s[size:]
		}
	}
	return "", "", fmt.Errorf("a closing quote is missing")
}

func escape(b *strings.Builder, s string, bytes bool) (string, error) {
	if len(s) > 1 && strings.IndexByte("'\"`?", s[1]) >= 0 {
		b.WriteByte(s[1])
		return s[2:], nil
	}
	r, _, rest, err := strconv.UnquoteChar(s, 0)
	switch {
	case err != nil:
		return "", fmt.Errorf("%.10q is no escape", s)
	case bytes && r > 0xff:
		return "", fmt.Errorf("%.10q is no byte", s)
	case bytes:
		b.WriteByte(byte(r))
	default:
		b.WriteRune(r)
	}
	return rest, nil
}
