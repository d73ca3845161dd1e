package jsonrow

import (
	"hash/maphash"
	"strconv"

	"github.com/millrace-dev/millrace/bigquery/row"
)

// unknown reads the value of a key that has no column, p.key; the key is at at.
func (p *parser) unknown(at, depth int) bool {
	key, start := p.key, p.pos
	p.spaced, p.content = false, false
	if !p.skip(depth) {
		p.fault.name = p.shown(key)
		return false
	}
	switch {
	case p.plan.rest != nil:
		if !p.rest.add(p.pointer(key), p.data[start:p.pos], p.spaced) {
			p.fail(row.KindDuplicate, at, "the key is given twice")
			p.fault.name = p.shown(key)
			return false
		}
	case p.plan.exact && !p.content, p.options.IgnoreUnknownFields:
	default:
		p.fail(row.KindUnknown, at, "the table has no column for this key")
		p.fault.name = p.shown(key)
		return false
	}
	return true
}

// shown is a key as errors name it.
func (p *parser) shown(key span) string {
	const most = 200
	text := p.plain(key)
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}

// pointer is the JSON Pointer of a key of the innermost object (RFC 6901). It is valid until the next call.
func (p *parser) pointer(key span) []byte {
	b := p.rest.pointer[:0]
	for i := range len(p.frames) - 1 {
		f := &p.frames[i]
		b = appendPointer(b, f.object.columns[f.column].key)
		if f.index >= 0 {
			b = append(b, '/')
			b = strconv.AppendInt(b, int64(f.index), 10)
		}
	}
	b = appendPointer(b, p.plain(key))
	p.rest.pointer = b
	return b
}

func appendPointer[S ~string | ~[]byte](b []byte, key S) []byte {
	b = append(b, '/')
	for i := range len(key) {
		switch c := key[i]; c {
		case '~':
			b = append(b, '~', '0')
		case '/':
			b = append(b, '~', '1')
		default:
			b = append(b, c)
		}
	}
	return b
}

// rest is the object for keys without a column, while a document is read.
type rest struct {
	text    []byte // {"pointer":value,…
	pointer []byte
	keys    []span  // of the pointers in text, quotes included
	table   []int32 // open addressing: 1 + index into keys, 0 is free; a power of two long
	seed    maphash.Seed
	seeded  bool
}

func (r *rest) reset() {
	if len(r.keys) > 0 {
		r.text, r.keys = r.text[:0], r.keys[:0]
		clear(r.table)
	}
}

func (r *rest) empty() bool { return len(r.keys) == 0 }

// object closes the object and returns it, valid until reset.
func (r *rest) object() []byte {
	r.text = append(r.text, '}')
	return r.text
}

// add is false when the pointer is there already.
func (r *rest) add(pointer, value []byte, spaced bool) bool {
	if len(r.text) == 0 {
		r.text = append(r.text, '{')
	} else {
		r.text = append(r.text, ',')
	}
	start := len(r.text)
	r.text = row.AppendQuoted(r.text, pointer)
	if !r.remember(span{start: start, end: len(r.text)}) {
		return false
	}
	r.text = append(r.text, ':')
	if spaced {
		r.text = appendCompact(r.text, value)
	} else {
		r.text = append(r.text, value...)
	}
	return true
}

func (r *rest) remember(key span) bool {
	if 2*len(r.keys) >= len(r.table) {
		r.grow()
	}
	slot := r.slot(r.text[key.start:key.end])
	if *slot != 0 {
		return false
	}
	r.keys = append(r.keys, key)
	*slot = int32(len(r.keys))
	return true
}

// slot finds the entry of a quoted pointer, or where it would be.
func (r *rest) slot(quoted []byte) *int32 {
	mask := uint64(len(r.table) - 1)
	for i := maphash.Bytes(r.seed, quoted) & mask; ; i = (i + 1) & mask {
		slot := &r.table[i]
		if *slot == 0 {
			return slot
		}
		k := r.keys[*slot-1]
		if string(r.text[k.start:k.end]) == string(quoted) {
			return slot
		}
	}
}

func (r *rest) grow() {
	if !r.seeded {
		r.seed, r.seeded = maphash.MakeSeed(), true
	}
	r.table = make([]int32, max(32, 2*len(r.table)))
	for i, k := range r.keys {
		*r.slot(r.text[k.start:k.end]) = int32(i + 1)
	}
}
