package protorow

import (
	"bytes"
	"cmp"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/millrace-dev/millrace/bigquery/row"
)

// entry is one of a map.
type entry struct {
	num  uint64 // the key, where it is a number or a bool
	text []byte // the key, where it is text
	data []byte // key and value
}

// entryList appends the entries of a map, sorted by key. Of two with one key the last counts.
func (s *scratch) entryList(buf []byte, c *column, data []byte) ([]byte, *row.Error) {
	base := len(s.entries)
	if err := s.collectEntries(c, c.members, data); err != nil {
		return buf, malformed(err)
	}
	slices.SortStableFunc(s.entries[base:], c.compare)
	index := 0
	for i := base; i < len(s.entries); i++ {
		if i+1 < len(s.entries) && c.compare(s.entries[i], s.entries[i+1]) == 0 {
			continue
		}
		var start int
		var e *row.Error
		buf, start = row.BeginLength(append(buf, c.tag...))
		if buf, e = s.message(buf, c.members, s.entries[i].data); e != nil {
			return buf, e.Element(index)
		}
		buf = row.EndLength(buf, start)
		index++
	}
	clear(s.entries[base:])
	s.entries = s.entries[:base]
	return buf, nil
}

// collectEntries appends the entries of a map, which are somewhere in data.
func (s *scratch) collectEntries(c *column, members *message, data []byte) error {
	for len(data) > 0 {
		number, typ, n := tag(data)
		_, content, size := value(data[n:], number, typ)
		data = data[n+size:]
		if number != uint64(c.number) || typ != c.wire {
			continue
		}
		e, err := s.entry(members, content)
		if err != nil {
			return err
		}
		s.entries = append(s.entries, e)
	}
	return nil
}

// entry reads the key of an entry.
func (s *scratch) entry(m *message, data []byte) (entry, error) {
	base := s.push(m)
	err := s.scan(m, data, base)
	key := s.slots[base]
	s.pop(base)
	e := entry{text: key.data, data: data}
	if c := &m.columns[0]; c.op == opBool {
		e.num = min(key.num, 1)
	} else {
		e.num = uint64(c.integer(key.num))
	}
	return e, err
}

// keyOrder is how keys of a kind are compared: text by its bytes, numbers by what they are worth, false before true.
func keyOrder(kind protoreflect.Kind) func(a, b entry) int {
	switch kind {
	case protoreflect.StringKind:
		return func(a, b entry) int { return bytes.Compare(a.text, b.text) }
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return func(a, b entry) int { return cmp.Compare(a.num, b.num) }
	}
	return func(a, b entry) int { return cmp.Compare(int64(a.num), int64(b.num)) }
}
