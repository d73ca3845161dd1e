package jsonrow

import "github.com/millrace-dev/millrace/bigquery/row"

// nesting remembers for each open bracket whether it is an object's.
type nesting [maxDepth / 64]uint64

func (n *nesting) set(depth int, object bool) {
	bit := uint64(1) << (depth & 63)
	if object {
		n[depth>>6] |= bit
	} else {
		n[depth>>6] &^= bit
	}
}

func (n *nesting) object(depth int) bool { return n[depth>>6]>>(depth&63)&1 != 0 }

// skip reads one value of any kind, which lies below depth others, and checks it fully. It does not recurse.
func (s *scanner) skip(depth int) bool {
	var open nesting
	base := depth
	for {
		// A value begins at pos.
		switch c := s.peek(); {
		case c == '{' || c == '[':
			if depth == maxDepth {
				return s.fail(row.KindJSON, s.pos, "objects and arrays lie more than 512 deep")
			}
			open.set(depth, c == '{')
			depth++
			s.pos++
			s.gap()
			if s.peek() == c+2 { // the closing bracket, in ASCII
				break
			}
			if c == '{' && !s.key() {
				return false
			}
			continue
		case !s.scalar(c):
			return false
		}
		// A value has ended, or an empty object or array is about to.
		for {
			if depth == base {
				return true
			}
			s.gap()
			object := open.object(depth - 1)
			c := s.peek()
			if object && c == '}' || !object && c == ']' {
				depth--
				s.pos++
				continue
			}
			if c != ',' {
				return s.unexpected(separatorOf(object))
			}
			s.pos++
			s.gap()
			if object && !s.key() {
				return false
			}
			break
		}
	}
}

func separatorOf(object bool) string {
	if object {
		return "a comma or }"
	}
	return "a comma or ]"
}

// scalar reads a string, number, true, false or null, which begins with c.
func (s *scanner) scalar(c byte) (ok bool) {
	switch {
	case c == '"':
		s.content = true
		_, ok = s.str()
	case c == '-' || c-'0' <= 9:
		s.content = true
		_, ok = s.number()
	case c == 't':
		s.content = true
		ok = s.literal("true")
	case c == 'f':
		s.content = true
		ok = s.literal("false")
	case c == 'n':
		ok = s.literal("null")
	default:
		ok = s.unexpected("a value")
	}
	return ok
}

// key reads a key and its colon.
func (s *scanner) key() bool {
	if s.peek() != '"' {
		return s.unexpected("a key")
	}
	if _, ok := s.str(); !ok {
		return false
	}
	if s.peek() == ':' && s.pos+1 < len(s.data) && s.data[s.pos+1] > ' ' {
		s.pos++
		return true
	}
	s.spaced = true
	return s.colon()
}

// gap skips white space and remembers that there was some.
func (s *scanner) gap() {
	if at := s.pos; s.peek() <= ' ' {
		s.space()
		s.spaced = s.spaced || s.pos > at
	}
}
