package staging

import (
	"encoding/binary"
	"math/bits"
)

// form is how the values of a column are written when they are plain.
type form uint8

const (
	neverPlain  form = iota
	plainNumber      // of one varint
	plainText        // of any length; also a list of it
	plainBool
	plainFloat
	plainDecimal // without parameters
)

// formOf is a column's form. A plainNumber's varint needs no check if it is below a limit, as firstVarint gives it: 55 bits are
// a TIMESTAMP before the year 3112, 21 bits a DATE before 7712. More than 55 would not fit in eight bytes when they are doubled.
func formOf(c *Column) (f form, unchecked uint64) {
	if c.repeated && c.Kind != Text {
		return neverPlain, 0
	}
	switch c.Kind {
	case Int, Timestamp:
		return plainNumber, 1 << 62
	case Date:
		return plainNumber, 1 << 24
	case Text:
		if c.Field.MaxLength == 0 {
			return plainText, 0
		}
	case Bool:
		return plainBool, 0
	case Float:
		return plainFloat, 0
	case Decimal:
		if c.Field.Precision == 0 {
			return plainDecimal, 0
		}
	}
	return neverPlain, 0
}

// shortText is the longest text that is plain: its length takes one byte in both encodings.
const shortText = 63

// room is what plain needs to write in, before each value: the branch of a union, and a short text with its length, by eights.
const room = 80

// plain writes columns from next on as long as their fields stand in the message, one behind the other, with values that are
// short and need no check, or an easy one: text that is ASCII, numbers that are neither negative nor large. It says where the
// first field is that it leaves to others, and of which column or of one behind it. A list it writes whole or not at all.
//
// This is where a row's time goes, and most values are plain. So they are written without a call, which would cost more than
// the value, and read by eights, as if zeros followed the message. A last value that is cut therefore ends behind the message:
// at is larger than its length then.
func (m *Message) plain(buf, data []byte, at, next int) (_ []byte, _, _ int) {
	columns, out, w := m.Columns, buf[:cap(buf)], len(buf)
	for next < len(columns) && at < len(data) && len(out)-w >= room {
		c := &columns[next]
		if uint64(data[at]) != c.tag {
			break
		}
		out[w] = 2                         // the second branch of a union; or what is overwritten
		from, to := at+1, w+int(c.preface) // where the value is, and where it goes
		switch c.form {
		case plainNumber:
			v, n := firstVarint(eightAt(data, from))
			if n > 8 || v >= c.unchecked {
				return out[:w], at, next
			}
			from += n
			v, n = doubled(v)
			binary.LittleEndian.PutUint64(out[to:], v)
			to += n
		case plainText:
			count := 0
		element:
			if from == len(data) || data[from] > shortText || int(data[from]) >= len(data)-from {
				return out[:w], at, next
			}
			n := uint(data[from])
			out[to] = byte(n) << 1
			from++
			to++
			seen := uint64(0)
			for ; n >= 8; n -= 8 {
				eight := binary.LittleEndian.Uint64(data[from:])
				binary.LittleEndian.PutUint64(out[to:], eight)
				seen |= eight
				from += 8
				to += 8
			}
			eight := eightAt(data, from)
			binary.LittleEndian.PutUint64(out[to:], eight) // more than the text; what follows overwrites it
			seen |= eight << (64 - 8*n)
			from += int(n)
			to += int(n)
			if seen&eighthBits != 0 { // not ASCII
				return out[:w], at, next
			}
			if !c.repeated {
				break
			}
			if count++; count > 63 || len(out)-to < room {
				return out[:w], at, next
			}
			if from < len(data) && uint64(data[from]) == c.tag {
				from++
				goto element
			}
			out[w] = byte(count) << 1
			out[to] = 0 // the end of the list
			to++
		case plainBool:
			if from == len(data) || data[from] > 1 {
				return out[:w], at, next
			}
			out[to] = data[from]
			from++
			to++
		case plainFloat:
			binary.LittleEndian.PutUint64(out[to:], eightAt(data, from))
			from += 8
			to += 8
		case plainDecimal:
			// Two to eight bytes, the lowest first, of which the highest is not superfluous.
			if from == len(data) || data[from] < 2 || data[from] > 8 || int(data[from]) >= len(data)-from {
				return out[:w], at, next
			}
			n := uint(data[from])
			v := eightAt(data, from+1) << (64 - 8*n)
			if top := int64(v) >> 55; top == 0 || top == -1 {
				return out[:w], at, next
			}
			out[to] = byte(n) << 1
			binary.LittleEndian.PutUint64(out[to+1:], bits.ReverseBytes64(v))
			from += 1 + int(n)
			to += 1 + int(n)
		default:
			return out[:w], at, next
		}
		at, w, next = from, to, next+1
	}
	return out[:w], at, next
}
