package protorow

import (
	"errors"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// slot is what a message has of one field.
type slot struct {
	num   uint64 // of a number; where a list begins
	data  []byte // of text, bytes and messages; of a list all from its first element to its last, with what lies between
	seen  bool
	owned bool // data is ours and may grow
}

// scratch is the memory that one row is made with. It is used again: nothing of it is in the row.
type scratch struct {
	slots   []slot  // of the messages that are being read, the innermost last; zero behind the length
	entries []entry // of the maps that are being read, likewise
	wire    []byte  // the record in wire form
}

// push makes room for the slots of a message and returns where they begin.
func (s *scratch) push(m *message) (base int) {
	base = len(s.slots)
	s.slots = slices.Grow(s.slots, len(m.columns))[:base+len(m.columns)]
	return base
}

// pop forgets the slots from base on, and the memory they refer to.
func (s *scratch) pop(base int) {
	clear(s.slots[base:])
	s.slots = s.slots[:base]
}

var (
	errTag   = errors.New("no field number is to be found where one is expected")
	errGroup = errors.New("a group ends that has not begun")
	errCut   = errors.New("a field is cut")
)

// scan notes where the fields of a message are. Of several values of one field the last counts, and those of a message are
// joined, as everywhere in protobuf; of the members of a oneof the last counts. Values of another wire type than the field
// has are unknown fields.
func (s *scratch) scan(m *message, data []byte, base int) error {
	slots := s.slots[base : base+len(m.columns)]
	for at := 0; at < len(data); {
		start := at
		number, typ, n := tag(data[at:])
		if n <= 0 {
			return errTag
		}
		at += n
		var num uint64
		var content []byte
		num, content, n = value(data[at:], number, typ)
		if n < 0 {
			if typ == protowire.EndGroupType {
				return errGroup
			}
			return errCut
		}
		at += n
		i := m.column(number)
		if i < 0 {
			continue
		}
		c, sl := &m.columns[i], &slots[i]
		switch {
		case c.list:
			if typ != c.wire && !(typ == protowire.BytesType && c.inPacked) {
				continue
			}
			if !sl.seen {
				sl.num = uint64(start)
			}
			sl.data = data[sl.num:at]
		case typ != c.wire:
			continue
		case sl.seen && c.members != nil, sl.seen && c.print != nil:
			sl.join(content)
		default:
			sl.num, sl.data = num, content
		}
		sl.seen = true
		for _, r := range c.rivals {
			slots[r] = slot{}
		}
	}
	return nil
}

// join joins another occurrence of a message to those before it.
func (sl *slot) join(content []byte) {
	if !sl.owned {
		sl.data, sl.owned = slices.Clone(sl.data), true
	}
	sl.data = append(sl.data, content...)
}

// tag reads a field number and a wire type; n is not positive where there is none.
func tag(b []byte) (number uint64, typ protowire.Type, n int) {
	v := uint64(b[0])
	if n = 1; v >= 0x80 {
		if v, n = protowire.ConsumeVarint(b); n < 0 || v > math.MaxUint32 {
			return 0, 0, -1
		}
	}
	if number = v >> 3; number == 0 {
		return 0, 0, -1
	}
	return number, protowire.Type(v & 7), n
}

// value reads a value behind its tag: a number into num, anything else into content. n is negative where it is cut.
func value(b []byte, number uint64, typ protowire.Type) (num uint64, content []byte, n int) {
	switch typ {
	case protowire.VarintType:
		if len(b) > 0 && b[0] < 0x80 {
			return uint64(b[0]), nil, 1
		}
		num, n = protowire.ConsumeVarint(b)
	case protowire.BytesType:
		if len(b) > 0 && b[0] < 0x80 && int(b[0]) < len(b) {
			n = 1 + int(b[0])
			return 0, b[1:n:n], n
		}
		content, n = protowire.ConsumeBytes(b)
	case protowire.Fixed64Type:
		num, n = protowire.ConsumeFixed64(b)
	case protowire.Fixed32Type:
		var v uint32
		v, n = protowire.ConsumeFixed32(b)
		num = uint64(v)
	case protowire.StartGroupType:
		content, n = protowire.ConsumeGroup(protowire.Number(number), b)
	default:
		n = -1
	}
	return num, content, n
}
