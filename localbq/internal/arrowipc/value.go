package arrowipc

import (
	"encoding/binary"
	"math/big"
	"slices"
)

// Null reports whether value i is NULL; nothing else of it means anything then.
func (c *Column) Null(i int) bool { return c.valid != nil && c.valid[i>>3]&(1<<(i&7)) == 0 }

// Nulls reports whether there can be a NULL.
func (c *Column) Nulls() bool { return c.valid != nil }

// Bits is a number of up to 64 bits as it lies in the buffer, signed integers extended; a Bool is 0 or 1.
func (c *Column) Bits(i int) uint64 {
	if c.Field.Kind == Bool {
		return uint64(c.Values[i>>3] >> (i & 7) & 1)
	}
	switch b := c.Values[i*c.width:]; c.width {
	case 1:
		if c.Field.Signed {
			return uint64(int8(b[0]))
		}
		return uint64(b[0])
	case 2:
		n := binary.LittleEndian.Uint16(b)
		if c.Field.Signed {
			return uint64(int16(n))
		}
		return uint64(n)
	case 4:
		n := binary.LittleEndian.Uint32(b)
		if c.Field.Signed || c.Field.Kind == Date || c.Field.Kind == YearMonth {
			return uint64(int32(n))
		}
		return uint64(n)
	default:
		return binary.LittleEndian.Uint64(b)
	}
}

// Bytes is a value of a Utf8 or Binary column.
func (c *Column) Bytes(i int) []byte { return c.Values[c.offset(i):c.offset(i+1)] }

// Range is where the elements of list i lie in Fields[0].
func (c *Column) Range(i int) (from, to int) { return c.offset(i), c.offset(i + 1) }

// Raw is the bytes of a value of fixed width.
func (c *Column) Raw(i int) []byte { return c.Values[i*c.width : (i+1)*c.width] }

// Unscaled is a Decimal's integer.
func (c *Column) Unscaled(i int) *big.Int {
	b := slices.Clone(c.Raw(i))
	negative := b[len(b)-1]&0x80 != 0
	slices.Reverse(b)
	n := new(big.Int).SetBytes(b)
	if negative {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(c.Field.Bits)))
	}
	return n
}

// AppendRow appends the content of a row, so that equal rows of one schema and no others give equal bytes.
func (b *Batch) AppendRow(buf []byte, row int) []byte {
	for _, c := range b.Columns {
		buf = c.appendValue(buf, row)
	}
	return buf
}

func (c *Column) appendValue(buf []byte, i int) []byte {
	if c.Null(i) {
		return append(buf, 0)
	}
	buf = append(buf, 1)
	switch c.Field.Kind {
	case Struct:
		for _, m := range c.Fields {
			buf = m.appendValue(buf, i)
		}
		return buf
	case List:
		from, to := c.Range(i)
		buf = binary.AppendUvarint(buf, uint64(to-from))
		for ; from < to; from++ {
			buf = c.Fields[0].appendValue(buf, from)
		}
		return buf
	case Utf8, Binary:
		b := c.Bytes(i)
		return append(binary.AppendUvarint(buf, uint64(len(b))), b...)
	case Bool:
		return append(buf, byte(c.Bits(i)))
	}
	return append(buf, c.Raw(i)...)
}
