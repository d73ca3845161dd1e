package jsonrow

import (
	"strings"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/bigquery/row"
)

// Field returns the scalar at a dotted path of keys, "event" or "payload.action": a string's text, or the source text of a
// number, true or false. Keys match exactly, by their text. It is what records are routed by.
//
// It reads the whole document and checks that it is exactly one JSON object in UTF-8, so that a broken document is found
// before a table is made for it. Errors are *row.Error values: R-JSON for what is malformed, cut, too deep or no object,
// R-MULTI for a second value, R-TEXT for text that is not UTF-8, R-EMPTYDOC for {}, R-REQUIRED where the path leads nowhere
// or to null, R-TYPE where it leads to or through something else than an object and a scalar, R-DUPKEY where a key of the
// path is given twice. What depends on the table, such as types and other keys given twice, is left to the serializer.
func Field(doc []byte, path string) (string, error) {
	value, err := AppendField(nil, doc, path)
	return string(value), err
}

// AppendField appends what Field returns to buf.
func AppendField(buf, doc []byte, path string) ([]byte, error) {
	f := fieldFinder{scanner: scanner{data: doc}, path: path, buf: buf}
	if !f.document() {
		return buf, &row.Error{Kind: f.fault.kind, Path: f.fault.name, Offset: int64(f.fault.at), Msg: f.fault.msg}
	}
	return f.buf, nil
}

// Valid checks what Field checks about the document as a whole.
func Valid(doc []byte) error {
	s := scanner{data: doc}
	if s.openDocument() && s.emptyDocument() && s.skip(0) && s.closeDocument() {
		return nil
	}
	return &row.Error{Kind: s.fault.kind, Offset: int64(s.fault.at), Msg: s.fault.msg}
}

// emptyDocument refuses {}; pos is at the brace and stays there.
func (s *scanner) emptyDocument() bool {
	at := s.pos
	s.pos++
	s.space()
	empty := s.peek() == '}'
	s.pos = at
	if empty {
		return s.fail(row.KindEmptyDoc, at, "the document is {}, expected at least one key")
	}
	return true
}

type fieldFinder struct {
	scanner
	path  string
	buf   []byte
	found bool
}

func (f *fieldFinder) document() bool {
	if !f.openDocument() || !f.emptyDocument() || !f.object(f.path, 1) || !f.closeDocument() {
		return false
	}
	if !f.found {
		f.fail(row.KindRequired, 0, "the document has no value there, expected one")
		f.fault.name = f.path
		return false
	}
	return true
}

// object reads the object at pos and follows rest, the part of the path that begins in it.
func (f *fieldFinder) object(rest string, depth int) bool {
	if depth > maxDepth {
		return f.fail(row.KindJSON, f.pos, "objects and arrays lie more than 512 deep")
	}
	key, rest, more := strings.Cut(rest, ".")
	seen := false
	f.pos++
	f.space()
	if f.peek() == '}' {
		f.pos++
		return true
	}
	for {
		at := f.pos
		if f.peek() != '"' {
			return f.unexpected("a key")
		}
		sp, ok := f.str()
		if !ok || !f.colon() {
			return false
		}
		switch {
		case !f.spells(sp, key):
			ok = f.skip(depth)
		case seen:
			return f.failPath(row.KindDuplicate, at, "the key is given twice")
		case more:
			seen, ok = true, f.follow(rest, depth)
		default:
			seen, ok = true, f.take(depth)
		}
		if !ok {
			return false
		}
		f.space()
		switch f.peek() {
		case ',':
			f.pos++
			f.space()
		case '}':
			f.pos++
			return true
		default:
			return f.unexpected("a comma or }")
		}
	}
}

// spells says whether a key's text is name.
func (f *fieldFinder) spells(sp span, name string) bool {
	content := f.data[sp.start:sp.end]
	if sp.escaped && len(content) <= 12*len(name) { // an escape is up to 12 bytes of one character
		content = unescape(make([]byte, 0, len(name)+utf8.UTFMax), content)
	}
	return string(content) == name
}

func (f *fieldFinder) failPath(kind row.Kind, at int, msg string) bool {
	f.fail(kind, at, msg)
	f.fault.name = f.path
	return false
}

// follow goes on with the path in the value at pos.
func (f *fieldFinder) follow(rest string, depth int) bool {
	switch f.peek() {
	case '{':
		return f.object(rest, depth+1)
	case 'n':
		return f.literal("null")
	}
	at := f.pos
	return f.skip(depth) && f.failPath(row.KindType, at, "the path leads through a value that is no object")
}

// take appends the value at pos.
func (f *fieldFinder) take(depth int) bool {
	at := f.pos
	switch c := f.peek(); c {
	case '{', '[':
		return f.skip(depth) && f.failPath(row.KindType, at, "found an object or an array, expected a string, number or boolean")
	case '"':
		sp, ok := f.str()
		if ok {
			f.found = true
			f.buf = unescape(f.buf, f.data[sp.start:sp.end])
		}
		return ok
	default:
		if !f.skip(depth) {
			return false
		}
		if c != 'n' {
			f.found = true
			f.buf = append(f.buf, f.data[at:f.pos]...)
		}
		return true
	}
}
