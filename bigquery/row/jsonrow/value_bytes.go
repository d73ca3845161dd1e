package jsonrow

import "github.com/millrace-dev/millrace/bigquery/row"

// bytesValue reads the value of a BYTES column: base64, or an array of numbers.
func (p *parser) bytesValue(tag string) bool {
	encoding := p.options.BytesEncoding
	switch c := p.peek(); {
	case c == '"' && encoding != ByteArrays:
		return p.base64Value(tag)
	case c == '[' && encoding != Base64:
		return p.byteArray(tag)
	case encoding == Base64:
		return p.mismatch("base64 as a string")
	case encoding == ByteArrays:
		return p.mismatch("an array of byte values")
	}
	return p.mismatch("base64 as a string, or an array of byte values")
}

// base64Values are the six bits of every character of both alphabets, 0xff for others.
var base64Values = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xff
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i := range len(alphabet) {
		t[alphabet[i]] = byte(i)
	}
	t['-'], t['_'] = t['+'], t['/']
	return t
}()

func (p *parser) base64Value(tag string) bool {
	at := p.pos
	sp, ok := p.str()
	if !ok {
		return false
	}
	text := p.plain(sp)
	if n := len(text); n > 0 && n%4 == 0 && text[n-1] == '=' {
		text = text[:n-1]
		if text[n-2] == '=' {
			text = text[:n-2]
		}
	}
	if len(text)%4 == 1 {
		return p.fail(row.KindType, at, "expected base64: characters are missing or too many")
	}
	p.buf = append(p.buf, tag...)
	p.buf = row.AppendInt(p.buf, int64(len(text)/4*3+len(text)%4*3/4))
	var bad byte
	for ; len(text) >= 4; text = text[4:] {
		a, b, c, d := base64Values[text[0]], base64Values[text[1]], base64Values[text[2]], base64Values[text[3]]
		bad |= a | b | c | d
		p.buf = append(p.buf, a<<2|b>>4, b<<4|c>>2, c<<6|d)
	}
	if len(text) >= 2 {
		a, b := base64Values[text[0]], base64Values[text[1]]
		bad |= a | b
		p.buf = append(p.buf, a<<2|b>>4)
		if len(text) == 3 {
			c := base64Values[text[2]]
			bad |= c
			p.buf = append(p.buf, b<<4|c>>2)
		}
	}
	if bad&0xc0 != 0 {
		return p.fail(row.KindType, at, "expected base64: found another character")
	}
	return true
}

func (p *parser) byteArray(tag string) bool {
	p.buf = append(p.buf, tag...)
	var start int
	p.buf, start = row.BeginLength(p.buf)
	p.pos++
	p.space()
	if p.peek() == ']' {
		p.pos++
		return true
	}
	for {
		at := p.pos
		lit, ok := p.wholeText(false, "a byte value")
		if !ok {
			return false
		}
		v, ok := parseInt(lit)
		if !ok || v < -128 || v > 255 {
			return p.fail(row.KindRange, at, "expected a byte value from -128 to 255")
		}
		p.buf = append(p.buf, byte(v))
		p.space()
		switch p.peek() {
		case ',':
			p.pos++
			p.space()
		case ']':
			p.pos++
			p.buf = row.EndLength(p.buf, start)
			return true
		default:
			return p.unexpected("a comma or ]")
		}
	}
}
