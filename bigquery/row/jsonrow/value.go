package jsonrow

import (
	"errors"
	"math"
	"strconv"
	"unsafe"

	"github.com/millrace-dev/millrace/bigquery/row"
)

// value reads the value of a column, at pos, and appends what it gives.
func (p *parser) value(c *column, depth int) bool {
	switch {
	case p.peek() == 'n':
		at := p.pos
		if p.literal("null") && c.require {
			return p.fail(row.KindRequired, at, "null, expected a value: the column is REQUIRED")
		}
		return p.fault.msg == ""
	case c.list:
		return p.list(c, depth)
	}
	return p.single(c, c.tag, depth)
}

// list reads the array of a REPEATED column.
func (p *parser) list(c *column, depth int) bool {
	if p.peek() != '[' {
		return p.mismatch("an array: the column is REPEATED")
	}
	if depth++; depth > maxDepth {
		return p.fail(row.KindJSON, p.pos, "objects and arrays lie more than 512 deep")
	}
	p.pos++
	p.space()
	if p.peek() == ']' {
		p.pos++
		return true
	}
	tag, start := c.tag, 0
	if c.packed {
		p.buf = append(p.buf, tag...)
		p.buf, start = row.BeginLength(p.buf)
		tag = ""
	}
	if !p.elements(c, tag, depth) {
		return false
	}
	if c.packed {
		p.buf = row.EndLength(p.buf, start)
	}
	return true
}

// elements reads values up to the closing bracket.
func (p *parser) elements(c *column, tag string, depth int) bool {
	top := len(p.frames) - 1
	for i := 0; ; i++ {
		p.frames[top].index = i
		if p.peek() == 'n' {
			at := p.pos
			return p.literal("null") && p.fail(row.KindNullElem, at, "null within an array: a REPEATED column holds none")
		}
		if !p.single(c, tag, depth) {
			return false
		}
		p.space()
		switch p.peek() {
		case ',':
			p.pos++
			p.space()
		case ']':
			p.pos++
			p.frames[top].index = -1
			return true
		default:
			return p.unexpected("a comma or ]")
		}
	}
}

// single reads one value and appends the tag and the value.
func (p *parser) single(c *column, tag string, depth int) bool {
	switch c.op {
	case opString, opExactString:
		return p.stringValue(c, tag)
	case opInt, opExactInt:
		return p.intValue(c, tag)
	case opFloat, opExactFloat:
		return p.floatValue(c, tag)
	case opBool, opExactBool:
		return p.boolValue(c, tag)
	case opTimestamp, opExactTimestamp, opDate, opExactDate, opTime, opDateTime:
		return p.timeValue(c, tag)
	case opStruct:
		return p.structValue(c, tag, depth)
	case opDecimal, opExactDecimal:
		return p.decimalValue(c, tag)
	case opBytes:
		return p.bytesValue(tag)
	case opInterval:
		if p.peek() != '"' {
			return p.mismatch("an interval as a string")
		}
		return p.stringText(tag)
	case opGeography:
		return p.geographyValue(tag, depth)
	}
	return p.jsonValue(c, tag, depth)
}

// mismatch fails about the kind of the value at pos.
func (p *parser) mismatch(want string) bool {
	found := ""
	switch c := p.peek(); {
	case c == '"':
		found = "a string"
	case c == '-' || c-'0' <= 9:
		found = "a number"
	case c == 't' || c == 'f':
		found = "a boolean"
	case c == 'n':
		found = "null"
	case c == '{':
		found = "an object"
	case c == '[':
		found = "an array"
	default:
		return p.unexpected("a value")
	}
	return p.fail(row.KindType, p.pos, "found "+found+", expected "+want)
}

// reject fails with a conversion's error.
func (p *parser) reject(err error, at int) bool {
	var v *row.ValueError
	if errors.As(err, &v) {
		return p.fail(v.Kind, at, v.Msg)
	}
	return p.fail(row.KindType, at, err.Error())
}

// stringText appends the string at pos as it is.
func (p *parser) stringText(tag string) bool {
	sp, ok := p.str()
	if !ok {
		return false
	}
	p.buf = append(p.buf, tag...)
	content := p.data[sp.start:sp.end]
	if !sp.escaped {
		p.buf = row.AppendText(p.buf, content)
		return true
	}
	var start int
	p.buf, start = row.BeginLength(p.buf)
	p.buf = row.EndLength(unescape(p.buf, content), start)
	return true
}

func (p *parser) stringValue(c *column, tag string) bool {
	first := p.peek()
	if first == '"' {
		return p.stringText(tag)
	}
	if c.op == opExactString {
		return p.mismatch("a string")
	}
	at := p.pos
	ok := true
	switch {
	case first == '-' || first-'0' <= 9:
		_, ok = p.number()
	case first == 't':
		ok = p.literal("true")
	case first == 'f':
		ok = p.literal("false")
	default:
		return p.mismatch("a string")
	}
	if !ok {
		return false
	}
	p.buf = append(p.buf, tag...)
	p.buf = row.AppendText(p.buf, p.data[at:p.pos])
	return true
}

func (p *parser) boolValue(c *column, tag string) bool {
	v := false
	switch first := p.peek(); {
	case first == 't':
		if v = true; !p.literal("true") {
			return false
		}
	case first == 'f':
		if !p.literal("false") {
			return false
		}
	case first == '"' && c.op == opBool:
		at := p.pos
		sp, ok := p.str()
		if !ok {
			return false
		}
		text := p.plain(sp)
		if v = foldsTo(text, "true"); !v && !foldsTo(text, "false") {
			return p.fail(row.KindType, at, "expected true or false")
		}
	default:
		return p.mismatch("true or false")
	}
	p.buf = row.AppendBool(append(p.buf, tag...), v)
	return true
}

// foldsTo says whether text is the lower-case word, in any case.
func foldsTo(text []byte, word string) bool {
	if len(text) != len(word) {
		return false
	}
	for i, c := range text {
		if c|0x20 != word[i] {
			return false
		}
	}
	return true
}

func (p *parser) intValue(c *column, tag string) bool {
	at := p.pos
	lit, ok := p.wholeText(c.op == opInt, "a whole number")
	if !ok {
		return false
	}
	v, ok := parseInt(lit)
	if !ok {
		return p.fail(row.KindRange, at, "expected a number from -9223372036854775808 to 9223372036854775807")
	}
	p.buf = row.AppendInt(append(p.buf, tag...), v)
	return true
}

// wholeText reads a number without point and exponent, or where quoted says so a string of one.
func (p *parser) wholeText(quoted bool, want string) (lit []byte, ok bool) {
	at := p.pos
	switch first := p.peek(); {
	case first == '-' || first-'0' <= 9:
		whole, ok := p.number()
		if ok && !whole {
			ok = p.fail(row.KindType, at, "found a number with a point or an exponent, expected "+want)
		}
		return p.data[at:p.pos], ok
	case first == '"' && quoted:
		sp, ok := p.str()
		if !ok {
			return nil, false
		}
		text := p.plain(sp)
		if !integer(text) {
			return nil, p.fail(row.KindType, at, "found a string that is no whole number, expected "+want)
		}
		return text, true
	}
	return nil, p.mismatch(want)
}

// integer says whether text is -?digits.
func integer(text []byte) bool {
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

// parseInt reads -?digits; ok is false beyond int64.
func parseInt(text []byte) (v int64, ok bool) {
	negative := text[0] == '-'
	if negative {
		text = text[1:]
	}
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	var u uint64
	for _, c := range text {
		if u > math.MaxInt64/10 {
			return 0, false
		}
		if u = u*10 + uint64(c-'0'); u > limit {
			return 0, false
		}
	}
	if negative {
		return int64(-u), true
	}
	return int64(u), true
}

// numberText reads a number's source text, from a string too where texts are allowed.
func (p *parser) numberText(texts bool) (lit []byte, quoted, ok bool) {
	at := p.pos
	switch first := p.peek(); {
	case first == '-' || first-'0' <= 9:
		_, ok := p.number()
		return p.data[at:p.pos], false, ok
	case first == '"' && texts:
		sp, ok := p.str()
		if !ok {
			return nil, true, false
		}
		return p.plain(sp), true, true
	}
	return nil, false, p.mismatch("a number")
}

func (p *parser) floatValue(c *column, tag string) bool {
	at := p.pos
	lit, quoted, ok := p.numberText(c.op == opFloat)
	if !ok {
		return false
	}
	if quoted && !floatText(lit) {
		return p.fail(row.KindType, at, `expected a number, "NaN", "Infinity" or "-Infinity"`)
	}
	v, err := strconv.ParseFloat(view(lit), 64)
	if err != nil {
		return p.fail(row.KindRange, at, "expected a number that FLOAT64 holds")
	}
	if v != v {
		v = quietNaN
	}
	if c.op == opExactFloat && !survives(lit, v) {
		return p.fail(row.KindScale, at, "expected fewer digits: FLOAT64 would change the number")
	}
	p.buf = row.AppendFloat(append(p.buf, tag...), v)
	return true
}

// quietNaN is the NaN of IEEE 754 that other languages write; Go's own has another last bit.
var quietNaN = math.Float64frombits(0x7ff8 << 48)

// floatText says whether a string is a JSON number or one of the three words that none is.
func floatText(text []byte) bool {
	switch string(text) {
	case "NaN", "Infinity", "-Infinity":
		return true
	}
	return numeric(text)
}

// numeric says whether text is a JSON number.
func numeric(text []byte) bool {
	s := scanner{data: text}
	_, ok := s.number()
	return ok && s.pos == len(text)
}

// view is b as a string that must not outlive it.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func (p *parser) decimalValue(c *column, tag string) bool {
	at := p.pos
	lit, _, ok := p.numberText(c.op == opDecimal)
	if !ok {
		return false
	}
	v, err := row.ParseDecimal(c.decimal, lit)
	if err != nil {
		return p.reject(err, at)
	}
	p.buf = row.AppendScaled(append(p.buf, tag...), v)
	return true
}

func (p *parser) structValue(c *column, tag string, depth int) bool {
	if p.peek() != '{' {
		return p.mismatch("an object")
	}
	p.buf = append(p.buf, tag...)
	var start int
	p.buf, start = row.BeginLength(p.buf)
	if !p.object(c.members, depth+1) {
		return false
	}
	p.buf = row.EndLength(p.buf, start)
	return true
}

func (p *parser) geographyValue(tag string, depth int) bool {
	switch p.peek() {
	case '"':
		return p.stringText(tag)
	case '{':
		return p.compact(tag, depth)
	}
	return p.mismatch("a geography as a string, or a GeoJSON object")
}

func (p *parser) jsonValue(c *column, tag string, depth int) bool {
	if p.peek() == '"' && c.op != opJSONValue {
		return p.stringText(tag)
	}
	if c.op == opJSONText {
		return p.mismatch("JSON text as a string")
	}
	return p.compact(tag, depth)
}

// compact appends the value at pos as JSON text without white space.
func (p *parser) compact(tag string, depth int) bool {
	at := p.pos
	p.spaced = false
	if !p.skip(depth) {
		return false
	}
	text := p.data[at:p.pos]
	p.buf = append(p.buf, tag...)
	if !p.spaced {
		p.buf = row.AppendText(p.buf, text)
		return true
	}
	var start int
	p.buf, start = row.BeginLength(p.buf)
	p.buf = row.EndLength(appendCompact(p.buf, text), start)
	return true
}
