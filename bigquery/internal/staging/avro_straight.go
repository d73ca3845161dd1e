package staging

import (
	"encoding/binary"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// straight writes a message whose fields stand in the order of the columns, each once, in a single pass. It gives up on
// everything else, errors included, which the general way then finds; ok says whether it did not.
func (a *AvroEncoder) straight(buf []byte, m *Message, data []byte) (_ []byte, ok bool) {
	next := 0
	for at := 0; at < len(data); {
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
		next = i + 1
		c := &m.Columns[i]
		switch {
		case c.repeated:
			buf, at, ok = a.straightList(buf, c, data, at)
		case c.anyLength && at < len(data) && data[at] < 0x40 && int(data[at]) < len(data)-at:
			// Short text: its length takes one byte in both forms.
			end := at + 1 + int(data[at])
			text := data[at+1 : end]
			if !c.required {
				buf = append(buf, 2)
			}
			buf = append(append(buf, data[at]<<1), text...)
			at, ok = end, c.Kind == Bytes || valid(text)
		default:
			if !c.required {
				buf = append(buf, 2)
			}
			buf, at, ok = a.straightValue(buf, c, data, at)
		}
		if !ok {
			return buf, false
		}
	}
	return appendAbsent(buf, m.Columns[next:])
}

// valid is utf8.Valid, faster where text is short and ASCII.
func valid(b []byte) bool {
	const high = 0x8080808080808080
	n := len(b)
	switch {
	case n > 64:
		return utf8.Valid(b)
	case n >= 8:
		bits := binary.LittleEndian.Uint64(b[n-8:])
		for i := 0; i+8 < n; i += 8 {
			bits |= binary.LittleEndian.Uint64(b[i:])
		}
		return bits&high == 0 || utf8.Valid(b)
	case n >= 4:
		bits := binary.LittleEndian.Uint32(b) | binary.LittleEndian.Uint32(b[n-4:])
		return bits&(high>>32) == 0 || utf8.Valid(b)
	}
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return utf8.Valid(b)
		}
	}
	return true
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

// straightValue writes the value at an index, and says where the next field is.
func (a *AvroEncoder) straightValue(buf []byte, c *Column, data []byte, at int) (_ []byte, next int, ok bool) {
	switch {
	case c.Kind == Text || c.Kind >= Bytes:
		start, end := extent(data, at)
		if end < 0 {
			return buf, at, false
		}
		buf, ok = a.straightContent(buf, c, data[start:end])
		return buf, end, ok
	case c.Kind == Float:
		if len(data)-at < 8 {
			return buf, at, false
		}
		return append(buf, data[at:at+8]...), at + 8, true
	case at == len(data):
		return buf, at, false
	}
	v, n := uint64(data[at]), 1
	if v >= 0x80 {
		if v, n = binary.Uvarint(data[at:]); n <= 0 {
			return buf, at, false
		}
	}
	if c.Kind == Int {
		return appendLong(buf, int64(v)), at + n, true
	}
	i, err := c.Integer(v)
	if c.Kind == Bool {
		return append(buf, byte(i)), at + n, true
	}
	return appendLong(buf, i), at + n, err == nil
}

func (a *AvroEncoder) straightContent(buf []byte, c *Column, content []byte) (_ []byte, ok bool) {
	if c.Kind == Text || c.Kind == Bytes {
		if c.Kind == Text && !valid(content) || c.Field.MaxLength > 0 && c.Content(content) != nil {
			return buf, false
		}
		return append(appendLong(buf, int64(len(content))), content...), true
	}
	var err error
	if c.Kind == Record {
		mark := len(buf)
		if buf, ok = a.straight(buf, c.Message, content); ok {
			return buf, true
		}
		// Only this message, and what lies in it, is written in the general way.
		buf, err = a.general(buf[:mark], c.Message, content)
		return buf, err == nil
	}
	buf, err = a.value(buf, c, Value{Bytes: content})
	return buf, err == nil
}

// straightList writes a list whose fields stand behind one another, or that is packed in one piece.
func (a *AvroEncoder) straightList(buf []byte, c *Column, data []byte, at int) (_ []byte, next int, ok bool) {
	if c.wire != protowire.BytesType {
		start, end := extent(data, at)
		if end < 0 {
			return buf, at, false
		}
		buf, ok = c.appendPacked(buf, data[start:end])
		return buf, end, ok
	}
	n, end := occurrences(data, at, c.tag)
	if end < 0 {
		return buf, at, false
	}
	size := protowire.SizeVarint(c.tag)
	buf = appendLong(buf, int64(n))
	for range n {
		start, stop := extent(data, at)
		if buf, ok = a.straightContent(buf, c, data[start:stop]); !ok {
			return buf, at, false
		}
		at = stop + size
	}
	return append(buf, 0), end, true
}

// occurrences counts fields of one tag that stand behind one another; the first one's value is at an index.
func occurrences(data []byte, at int, tag uint64) (n, end int) {
	for {
		if _, at = extent(data, at); at < 0 {
			return 0, -1
		}
		n++
		if at == len(data) {
			return n, at
		}
		if tag < 0x80 && uint64(data[at]) == tag {
			at++
			continue
		}
		again, size := binary.Uvarint(data[at:])
		if again != tag || size != protowire.SizeVarint(tag) {
			return n, at
		}
		at += size
	}
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
		v, size := binary.Uvarint(list)
		if size <= 0 {
			return buf, false
		}
		i, err := c.Integer(v)
		if err != nil {
			return buf, false
		}
		if c.Kind == Bool {
			buf = append(buf, byte(i))
		} else {
			buf = appendLong(buf, i)
		}
		list = list[size:]
	}
	return append(buf, 0), true
}
