package jsonrow

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/bigquery/row"
)

// maxDepth is how deep objects and arrays may lie in each other, the document included. It bounds what a document of
// brackets costs, and BigQuery's own JSON type ends at 500.
const maxDepth = 512

// scanner reads the tokens of one document. Its methods return false at the first fault, which it then holds; after that
// nothing may be called any more. It never reads beyond data and never keeps state per byte, so that its cost is one
// pass over the document.
type scanner struct {
	data []byte
	pos  int

	spaced  bool // skip passed white space within the value
	content bool // skip passed a string, number, true or false

	fault fault
}

// fault is what is wrong, before its path is known.
type fault struct {
	kind row.Kind
	at   int    // offset in data
	name string // an unknown key, which is the path's last part; "" adds nothing
	msg  string
}

func (s *scanner) fail(kind row.Kind, at int, msg string) bool {
	s.fault = fault{kind: kind, at: at, msg: msg}
	return false
}

// space skips white space.
func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// peek is the byte at pos, 0 at the end: no token begins with 0.
func (s *scanner) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

// unexpected fails about the byte at pos.
func (s *scanner) unexpected(want string) bool {
	if s.pos >= len(s.data) {
		return s.fail(row.KindJSON, s.pos, "the JSON is cut: it ends where "+want+" is expected")
	}
	if r, n := utf8.DecodeRune(s.data[s.pos:]); r == utf8.RuneError && n == 1 {
		return s.fail(row.KindText, s.pos, "the document is not valid UTF-8")
	}
	return s.fail(row.KindJSON, s.pos, "not valid JSON: expected "+want)
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special marks the bytes of x that end a run of plain string content: quotes, backslashes and control characters. The
// lowest mark is exact; those above it may be wrong.
func special(x uint64) uint64 {
	quote := x ^ ones*'"'
	slash := x ^ ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash | (x-ones*' ')&^x) & highs
}

// span is a string's content in data, without the quotes.
type span struct {
	start, end int
	escaped    bool
}

// str reads a string, whose opening quote is at pos. It checks escapes, surrogates and UTF-8.
func (s *scanner) str() (span, bool) {
	data := s.data
	sp := span{start: s.pos + 1}
	i := sp.start
	var all uint64 // every byte of the string, ored
	for {
		for i+8 <= len(data) {
			x := binary.LittleEndian.Uint64(data[i:])
			all |= x
			if m := special(x); m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				goto found
			}
			i += 8
		}
		for ; i < len(data); i++ {
			c := data[i]
			all |= uint64(c)
			if c == '"' || c == '\\' || c < ' ' {
				goto found
			}
		}
		s.pos = i
		return sp, s.fail(row.KindJSON, i, "the JSON is cut: it ends within a string")
	found:
		switch data[i] {
		case '"':
			sp.end = i
			s.pos = i + 1
			if all&highs != 0 && !utf8.Valid(data[sp.start:i]) {
				return sp, s.fail(row.KindText, sp.start+invalidAt(data[sp.start:i]), "the text is not valid UTF-8")
			}
			return sp, true
		case '\\':
			sp.escaped = true
			n := s.escape(i)
			if n == 0 {
				return sp, false
			}
			i += n
		default:
			return sp, s.fail(row.KindJSON, i, "not valid JSON: a control character within a string")
		}
	}
}

func invalidAt(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(b)
}

// escape checks the escape at i and says how long it is, 0 after a failure.
func (s *scanner) escape(i int) int {
	if i+1 >= len(s.data) {
		s.fail(row.KindJSON, i, "the JSON is cut: it ends within a string")
		return 0
	}
	switch s.data[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		r, ok := hex4(s.data, i+2)
		if !ok {
			s.fail(row.KindJSON, i, `not valid JSON: \u without four hexadecimal digits`)
			return 0
		}
		if r < 0xd800 || r > 0xdfff {
			return 6
		}
		if low, ok := lowSurrogate(s.data, i+6); r > 0xdbff || !ok || low == 0 {
			s.fail(row.KindText, i, "half a surrogate pair, which is no character")
			return 0
		}
		return 12
	}
	s.fail(row.KindJSON, i, "not valid JSON: an unknown escape within a string")
	return 0
}

// lowSurrogate reads the second half of a pair at i.
func lowSurrogate(data []byte, i int) (rune, bool) {
	if i+1 >= len(data) || data[i] != '\\' || data[i+1] != 'u' {
		return 0, false
	}
	r, ok := hex4(data, i+2)
	return r, ok && r >= 0xdc00 && r <= 0xdfff
}

func hex4(data []byte, i int) (r rune, ok bool) {
	if i+4 > len(data) {
		return 0, false
	}
	for _, c := range data[i : i+4] {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// number reads a number at pos and says whether it is whole: written without point and exponent.
func (s *scanner) number() (whole, ok bool) {
	data, i := s.data, s.pos
	if i < len(data) && data[i] == '-' {
		i++
	}
	switch {
	case i < len(data) && data[i] == '0':
		i++
	case i < len(data) && data[i]-'1' <= 8:
		for i < len(data) && data[i]-'0' <= 9 {
			i++
		}
	default:
		s.pos = i
		return false, s.unexpected("a digit")
	}
	if i >= len(data) || data[i] != '.' && data[i]|0x20 != 'e' {
		s.pos = i
		return true, true
	}
	return false, s.inexact(i)
}

// inexact reads fraction and exponent of a number from i on.
func (s *scanner) inexact(i int) bool {
	data := s.data
	digits := func() bool {
		start := i
		for i < len(data) && data[i]-'0' <= 9 {
			i++
		}
		return i > start
	}
	if data[i] == '.' {
		i++
		if !digits() {
			s.pos = i
			return s.unexpected("a digit behind the point")
		}
	}
	if i < len(data) && data[i]|0x20 == 'e' {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		if !digits() {
			s.pos = i
			return s.unexpected("a digit of the exponent")
		}
	}
	s.pos = i
	return true
}

// literal reads true, false or null.
func (s *scanner) literal(word string) bool {
	if rest := s.data[s.pos:]; len(rest) >= len(word) && string(rest[:len(word)]) == word {
		s.pos += len(word)
		return true
	}
	for i := range len(word) {
		if s.peek() != word[i] {
			break
		}
		s.pos++
	}
	return s.unexpected(word)
}

// colon reads what stands between a key and its value.
func (s *scanner) colon() bool {
	if s.peek() != ':' {
		s.space()
		if s.peek() != ':' {
			return s.unexpected("a colon")
		}
	}
	s.pos++
	s.space()
	return true
}
