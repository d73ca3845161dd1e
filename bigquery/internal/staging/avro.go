package staging

import (
	"encoding/binary"
)

// AvroEncoder turns rows into Avro datums of the schema that AvroSchema derives. It is for one goroutine.
type AvroEncoder struct {
	plan *Plan
	scan Scanner
}

// NewAvroEncoder makes an encoder for rows of a plan.
func NewAvroEncoder(p *Plan) *AvroEncoder { return &AvroEncoder{plan: p} }

// Append appends the datum of a row. With an error, a *row.Error that names the column, buf is what it was. Some bytes that buf has
// room for may be written over behind the datum.
func (a *AvroEncoder) Append(buf, data []byte) ([]byte, error) {
	out, ok := a.plan.Root.straight(buf, data)
	if ok {
		return out, nil
	}
	a.scan.Reset()
	out, err := a.general(out[:len(buf)], a.plan.Root, data)
	if err != nil {
		return buf, err
	}
	return out, nil
}

// general writes a message whose fields stand in any order.
func (a *AvroEncoder) general(buf []byte, m *Message, data []byte) ([]byte, error) {
	f, err := a.scan.Open(m, data)
	if err != nil {
		return buf, err
	}
	for i := range m.Columns {
		c := &m.Columns[i]
		slot := &a.scan.slots[f.slots+i]
		switch {
		case c.Repeated():
			buf, err = a.list(buf, c, f, *slot)
		case slot.Count == 0 && c.Required():
			return buf, c.Missing()
		case slot.Count == 0:
			buf = append(buf, 0) // the first branch, null
			continue
		default:
			if !c.Required() {
				buf = append(buf, 2) // the second branch
			}
			if c.Kind == Int {
				buf = appendLong(buf, int64(slot.raw))
				continue
			}
			buf, err = a.value(buf, c, a.scan.Single(f, slot))
		}
		if err != nil {
			return buf, c.Under(err)
		}
	}
	a.scan.Close(f)
	return buf, nil
}

// list writes an array as one block. A block's size in bytes is not written: nobody skips over it.
func (a *AvroEncoder) list(buf []byte, c *Column, f Frame, slot Slot) (_ []byte, err error) {
	if n := a.scan.Len(f, c, &slot); n > 0 {
		buf = appendLong(buf, int64(n))
	}
	err = a.scan.Each(f, c, &slot, func(v Value) (err error) {
		buf, err = a.value(buf, c, v)
		return err
	})
	return append(buf, 0), err
}

func (a *AvroEncoder) value(buf []byte, c *Column, v Value) ([]byte, error) {
	if c.Kind == Record {
		return a.general(buf, c.Message, v.Bytes)
	}
	return c.appendAvro(buf, v)
}

// appendAvro writes a value that is no Record.
func (c *Column) appendAvro(buf []byte, v Value) ([]byte, error) {
	switch c.Kind {
	case Bool, Int, Date, Time, DateTime, Timestamp:
		n, err := c.Integer(v.Raw)
		if c.Kind == Bool {
			return append(buf, byte(n)), err
		}
		return appendLong(buf, n), err
	case Float:
		return binary.LittleEndian.AppendUint64(buf, v.Raw), nil
	case Text, Bytes:
		if err := c.Content(v.Bytes); err != nil {
			return buf, err
		}
		return append(appendLong(buf, int64(len(v.Bytes))), v.Bytes...), nil
	case DateTimeText:
		n, err := c.Literal(v.Bytes)
		return appendLong(buf, n), err
	}
	// A decimal is at most 33 bytes, so its length takes one.
	at := len(buf)
	buf, err := c.AppendDecimal(append(buf, 0), v.Bytes)
	buf[at] = byte(len(buf)-at-1) << 1
	return buf, err
}

// appendLong writes a number as Avro does: zigzag, so that small negative ones are short too.
func appendLong(buf []byte, v int64) []byte {
	z := uint64(v)<<1 ^ uint64(v>>63)
	if z < 0x80 {
		return append(buf, byte(z))
	}
	return binary.AppendUvarint(buf, z)
}
