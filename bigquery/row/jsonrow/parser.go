package jsonrow

import (
	"math/bits"
	"strconv"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// parser turns one document after another into rows. It is used by one goroutine at a time and keeps its memory.
type parser struct {
	scanner
	options *Options
	plan    *plan
	buf     []byte // the row so far, behind what the caller had

	frames []frame  // the objects being read, outermost first
	seen   []uint64 // for each of those, one bit for each column that had its key
	key    span     // the key read last, unless it was the expected one
	text   []byte   // a string without its escapes
	folded []byte   // a key without its case
	rest   rest
}

// frame is an object being read: where errors and JSON Pointers take their paths from.
type frame struct {
	object *object
	column int // being read, -1 before the first
	index  int // of the element being read, -1 outside of lists
}

// maxKept is the largest scratch memory that is kept for the next document, in bytes.
const maxKept = 1 << 20

func (p *parser) row(pl *plan, buf, doc []byte) ([]byte, error) {
	p.scanner = scanner{data: doc}
	p.plan, p.buf = pl, buf
	p.frames, p.seen = p.frames[:0], p.seen[:0]
	p.rest.reset()
	ok := p.document()
	buf = p.buf
	p.buf, p.data = nil, nil
	p.shrink()
	if !ok {
		return buf, p.error()
	}
	return buf, nil
}

// shrink gives back what a document of unusual size made grow.
func (p *parser) shrink() {
	if cap(p.text) > maxKept {
		p.text = nil
	}
	if cap(p.folded) > maxKept {
		p.folded = nil
	}
	if cap(p.rest.text) > maxKept {
		p.rest = rest{}
	}
}

func (p *parser) document() bool {
	if !p.openDocument() {
		return false
	}
	if !p.object(p.plan.root, 1) || !p.closeDocument() {
		return false
	}
	if p.plan.rest != nil && !p.rest.empty() {
		p.buf = append(p.buf, p.plan.rest.tag...)
		p.buf = row.AppendText(p.buf, p.rest.object())
	}
	return true
}

// openDocument checks that a document begins with an object; pos is then at its brace.
func (s *scanner) openDocument() bool {
	s.space()
	c := s.peek()
	if c == '{' {
		return true
	}
	what := ""
	switch {
	case s.pos == len(s.data):
		return s.fail(row.KindJSON, s.pos, "the document is empty, expected a JSON object")
	case c == '[':
		what = "an array"
	case c == '"':
		what = "a string"
	case c == '-' || c-'0' <= 9:
		what = "a number"
	case c == 't' || c == 'f' || c == 'n':
		what = "no object"
	default:
		return s.unexpected("a JSON object")
	}
	return s.fail(row.KindJSON, s.pos, "the document is "+what+", expected a JSON object")
}

// closeDocument checks that only white space follows.
func (s *scanner) closeDocument() bool {
	s.space()
	if s.pos < len(s.data) {
		return s.fail(row.KindMulti, s.pos, "something follows the JSON object: expected exactly one in a record")
	}
	return true
}

// error is the fault with the path that the frames tell.
func (p *parser) error() error {
	var path []byte
	for i := range p.frames {
		f := &p.frames[i]
		if f.column < 0 {
			break
		}
		path = appendName(path, f.object.columns[f.column].key, f.object.columns[f.column].name)
		if f.index >= 0 {
			path = append(path, '[')
			path = strconv.AppendInt(path, int64(f.index), 10)
			path = append(path, ']')
		}
	}
	if p.fault.name != "" {
		path = appendName(path, p.fault.name, "")
	}
	return &row.Error{Kind: p.fault.kind, Path: string(path), Offset: int64(p.fault.at), Msg: p.fault.msg}
}

// appendName appends a key to a path, or the column's name where the key is none that can be shown.
func appendName(path []byte, key, name string) []byte {
	if key == noKey {
		key = name
	}
	if len(path) > 0 {
		path = append(path, '.')
	}
	return append(path, key...)
}

// object reads an object, whose brace is at pos, and appends the columns it fills. depth counts it and what it lies in.
func (p *parser) object(o *object, depth int) bool {
	if depth > maxDepth {
		return p.fail(row.KindJSON, p.pos, "objects and arrays lie more than 512 deep")
	}
	at := p.pos
	base := len(p.seen)
	for range o.words {
		p.seen = append(p.seen, 0)
	}
	p.frames = append(p.frames, frame{o, -1, -1})
	p.pos++
	p.space()
	if p.peek() == '}' {
		if depth == 1 {
			return p.fail(row.KindEmptyDoc, at, "the document is {}, expected at least one key")
		}
		p.pos++
	} else if !p.members(o, base, depth) {
		return false
	}
	if !p.complete(o, base, at) {
		return false
	}
	p.frames = p.frames[:len(p.frames)-1]
	p.seen = p.seen[:base]
	return true
}

// members reads keys and values up to the closing brace.
func (p *parser) members(o *object, base, depth int) bool {
	top := len(p.frames) - 1
	next := 0 // the column whose key is expected: documents repeat their order
	for {
		at := p.pos
		i, ok := p.column(o, next)
		if !ok {
			return false
		}
		if i < 0 {
			if !p.unknown(at, depth) {
				return false
			}
		} else {
			p.frames[top].column = i
			word, bit := base+i/64, uint64(1)<<(i%64)
			if p.seen[word]&bit != 0 {
				return p.fail(row.KindDuplicate, at, "the key is given twice, ignoring case where columns do")
			}
			p.seen[word] |= bit
			if !p.value(&o.columns[i], depth) {
				return false
			}
			next = i + 1
		}
		p.frames[top].column = -1
		if c := p.peek(); c <= ' ' {
			p.space()
		}
		switch p.peek() {
		case ',':
			p.pos++
			if p.peek() != '"' {
				p.space()
			}
		case '}':
			p.pos++
			return true
		default:
			p.frames[top].column = i // the fault is next to this value, or within it
			return p.unexpected("a comma or }")
		}
	}
}

// column reads a key and its colon, and answers the column it fills, -1 for none, and p.key is the key then.
func (p *parser) column(o *object, next int) (i int, ok bool) {
	if next < len(o.columns) {
		key := o.columns[next].key
		rest := p.data[p.pos:]
		if n := len(key) + 1; len(rest) > n && rest[0] == '"' && rest[n] == '"' && string(rest[1:n]) == key {
			p.pos += n + 1
			return next, p.colon()
		}
	}
	if p.peek() != '"' {
		return 0, p.unexpected("a key")
	}
	sp, ok := p.str()
	if !ok {
		return 0, false
	}
	p.key = sp
	return p.find(o, p.plain(sp)), p.colon()
}

// find answers the column that a key fills, -1 for none.
func (p *parser) find(o *object, key []byte) int {
	if i, ok := o.exact[string(key)]; ok {
		return i
	}
	if o.folded == nil {
		return -1
	}
	p.folded = table.AppendFoldName(p.folded[:0], key)
	if i, ok := o.folded[string(p.folded)]; ok {
		return i
	}
	return -1
}

// plain is a string's text. It is valid until the next call.
func (p *parser) plain(sp span) []byte {
	content := p.data[sp.start:sp.end]
	if !sp.escaped {
		return content
	}
	p.text = unescape(p.text[:0], content)
	return p.text
}

// complete checks that every REQUIRED column of an object had its key.
func (p *parser) complete(o *object, base, at int) bool {
	for w, required := range o.required {
		if missing := required &^ p.seen[base+w]; missing != 0 {
			p.frames[len(p.frames)-1].column = w*64 + bits.TrailingZeros64(missing)
			return p.fail(row.KindRequired, at, "no value, expected one: the column is REQUIRED")
		}
	}
	return true
}
