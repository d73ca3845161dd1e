package staging

import (
	"encoding/binary"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// straight writes a message whose fields stand in the order of the columns, each once, in a single pass. It gives up on
// everything else, errors included, which the general way then finds; ok says whether it did not.
func (m *Message) straight(buf, data []byte) (_ []byte, ok bool) {
	at, next := 0, 0
	for {
		buf, at, next = m.plain(slices.Grow(buf, room), data, at, next)
		if at >= len(data) {
			break
		}
		i := next
		if i < len(m.Columns) && uint64(data[at]) == m.Columns[i].tag {
			at++
		} else {
			if i, at = m.later(data, at, next); i < 0 {
				return buf, false
			}
			if buf, ok = appendAbsent(buf, m.Columns[next:i]); !ok {
				return buf, false
			}
		}
		if buf, at, ok = m.Columns[i].straightField(buf, data, at); !ok {
			return buf, false
		}
		next = i + 1
	}
	if at > len(data) { // the last value is cut
		return buf, false
	}
	return appendAbsent(buf, m.Columns[next:])
}

// later finds the column of the tag at an index, which must be column next or one behind it, and where the tag ends; -1
// when it is none.
func (m *Message) later(data []byte, at, next int) (i, end int) {
	tag, n := binary.Uvarint(data[at:])
	if n <= 0 || tag>>3 > uint64(protowire.MaxValidNumber) {
		return -1, at
	}
	if i = m.column(protowire.Number(tag >> 3)); i < next || m.Columns[i].tag != tag {
		return -1, at
	}
	return i, at + n
}

// appendAbsent writes columns that the message has nothing for.
func appendAbsent(buf []byte, columns []Column) (_ []byte, ok bool) {
	for i := range columns {
		if columns[i].required {
			return buf, false
		}
		buf = append(buf, 0) // null, or the end of an empty array
	}
	return buf, true
}

// straightField writes a column whose first value is at an index, and says where the field behind its last one is.
func (c *Column) straightField(buf, data []byte, at int) (_ []byte, end int, ok bool) {
	switch {
	case c.repeated && c.wire == protowire.BytesType:
		return c.straightList(buf, data, at)
	case c.repeated:
		start, end := extent(data, at)
		if end < 0 {
			return buf, at, false
		}
		buf, ok = c.appendPacked(buf, data[start:end])
		return buf, end, ok
	case !c.required:
		buf = append(buf, 2)
	}
	if c.Kind == Record && at < len(data) && data[at] < 0x80 && int(data[at]) < len(data)-at {
		end = at + 1 + int(data[at])
		buf, ok = c.Message.straight(buf, data[at+1:end])
		return buf, end, ok
	}
	return c.straightValue(buf, data, at)
}

// straightList writes a list whose fields stand behind one another.
func (c *Column) straightList(buf, data []byte, at int) (_ []byte, end int, ok bool) {
	start, count := len(buf), 0
	for buf = append(buf, 0); at >= 0; at = c.again(data, end) {
		if buf, end, ok = c.straightValue(buf, data, at); !ok {
			return buf, at, false
		}
		count++
	}
	return append(setCount(buf, start, count), 0), end, true
}

// again is where another value of the column is whose field is at an index; -1 is none.
func (c *Column) again(data []byte, at int) int {
	if tag, n := binary.Uvarint(data[at:]); n > 0 && tag == c.tag {
		return at + n
	}
	return -1
}

// setCount puts the length of a list where a byte was left for it.
func setCount(buf []byte, start, count int) []byte {
	var space [binary.MaxVarintLen64]byte
	long := appendLong(space[:0], int64(count))
	buf[start] = long[0]
	return slices.Insert(buf, start+1, long[1:]...)
}

// straightValue writes the value at an index, and says where it ends.
func (c *Column) straightValue(buf, data []byte, at int) (_ []byte, end int, ok bool) {
	var v Value
	switch c.wire {
	case protowire.VarintType:
		n := 0
		v.Raw, n = binary.Uvarint(data[at:])
		if end = at + n; n <= 0 {
			return buf, at, false
		}
	case protowire.Fixed64Type:
		if end = at + 8; end > len(data) {
			return buf, at, false
		}
		v.Raw = binary.LittleEndian.Uint64(data[at:])
	default:
		start := 0
		if start, end = extent(data, at); end < 0 {
			return buf, at, false
		}
		v.Bytes = data[start:end]
	}
	if c.Kind == Record {
		buf, ok = c.Message.straight(buf, v.Bytes)
		return buf, end, ok
	}
	buf, err := c.appendAvro(buf, v)
	return buf, end, err == nil
}

func (c *Column) appendPacked(buf, list []byte) (_ []byte, ok bool) {
	p := piece{end: int32(len(list)), packed: true}
	n := p.len(list, c.wire)
	if n == 0 {
		return append(buf, 0), len(list) == 0
	}
	buf = appendLong(buf, int64(n))
	if c.wire == protowire.Fixed64Type {
		return append(append(buf, list...), 0), len(list) == n*8
	}
	for len(list) > 0 {
		v, size := number(list, c.wire)
		if size <= 0 {
			return buf, false
		}
		var err error
		if buf, err = c.appendAvro(buf, v); err != nil {
			return buf, false
		}
		list = list[size:]
	}
	return append(buf, 0), true
}
