package staging

import (
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Scanner finds the values of columns in the bytes of rows, which hold them in any order and may hold some twice. It keeps
// its memory from row to row and is for one goroutine.
type Scanner struct {
	slots  []Slot
	pieces []piece
}

// Slot is what a message has for one column.
type Slot struct {
	piece
	Count int32 // how often the field occurs; 0 is NULL
	last  int32 // index of the last further piece, plus one
}

// piece is one occurrence of a field.
type piece struct {
	raw        uint64 // of a varint or eight bytes
	start, end int32  // of what else there is, in the message
	packed     bool   // a list of numbers in one piece
	more       int32  // index of the next piece, plus one
}

// Value is one value as it stands on the wire.
type Value struct {
	Raw   uint64 // of a varint or eight bytes
	Bytes []byte // of everything else
}

// Frame is a message that has been scanned. It must be closed before the one that was opened before it is.
type Frame struct {
	data          []byte
	slots, pieces int
}

// Open scans a message. An error is a *row.Error with the path of the field in this message.
func (s *Scanner) Open(m *Message, data []byte) (Frame, error) {
	f := Frame{data: data, slots: len(s.slots), pieces: len(s.pieces)}
	if len(data) > math.MaxInt32 {
		return f, malformed("", "the row is larger than 2 GiB")
	}
	for range m.Columns {
		s.slots = append(s.slots, Slot{})
	}
	slots := s.slots[f.slots:]
	for at := 0; at < len(data); {
		tag, n := uint64(data[at]), 1
		if tag >= 0x80 {
			if tag, n = binary.Uvarint(data[at:]); n <= 0 {
				return f, malformed("", "a field's tag is cut")
			}
		}
		at += n
		i := -1
		if num := tag >> 3; num > 0 && num <= uint64(protowire.MaxValidNumber) {
			i = m.column(protowire.Number(num))
		}
		if i < 0 {
			return f, malformed("", "field number %d, which the descriptor does not have", tag>>3)
		}
		c := &m.Columns[i]
		p, next := c.piece(data, at, protowire.Type(tag&7))
		if next < 0 {
			return f, malformed(c.Field.Name, "wire type %d, or a value that is cut: expected wire type %d", tag&7, c.wire)
		}
		at = next
		s.add(&slots[i], c, p)
	}
	return f, nil
}

func malformed(path, format string, args ...any) *row.Error {
	return &row.Error{Kind: row.KindDecode, Path: path, Offset: -1, Msg: "the bytes are no row of the descriptor: " + fmt.Sprintf(format, args...)}
}

// piece reads the value at an index, which ends at next; -1 when there is none of the right form.
func (c *Column) piece(data []byte, at int, t protowire.Type) (p piece, next int) {
	switch {
	case t == protowire.BytesType && (c.wire == t || c.Repeated()):
		start, end := extent(data, at)
		p.start, p.end, p.packed = int32(start), int32(end), c.wire != t
		return p, end
	case t != c.wire:
		return p, -1
	case t == protowire.VarintType:
		n := 1
		if at < len(data) && data[at] < 0x80 {
			p.raw = uint64(data[at])
		} else if p.raw, n = binary.Uvarint(data[at:]); n <= 0 {
			return p, -1
		}
		return p, at + n
	case len(data)-at < 8:
		return p, -1
	}
	p.raw = binary.LittleEndian.Uint64(data[at:])
	return p, at + 8
}

// extent is where what has a length lies; end is -1 when it is cut.
func extent(data []byte, at int) (start, end int) {
	size, n := uint64(0), 1
	if at < len(data) && data[at] < 0x80 {
		size = uint64(data[at])
	} else {
		size, n = binary.Uvarint(data[at:])
	}
	if n <= 0 || size > uint64(len(data)-at-n) {
		return 0, -1
	}
	return at + n, at + n + int(size)
}

// add notes an occurrence. Of a value that is no list the last one counts; the occurrences of a STRUCT are parts of one.
func (s *Scanner) add(slot *Slot, c *Column, p piece) {
	slot.Count++
	if slot.Count == 1 || !c.Repeated() && c.Kind != Record {
		slot.piece = p
		return
	}
	s.pieces = append(s.pieces, p)
	index := int32(len(s.pieces))
	if slot.last == 0 {
		slot.more = index
	} else {
		s.pieces[slot.last-1].more = index
	}
	slot.last = index
}

// Close forgets a frame.
func (s *Scanner) Close(f Frame) { s.slots, s.pieces = s.slots[:f.slots], s.pieces[:f.pieces] }

// Reset forgets all frames, as after an error.
func (s *Scanner) Reset() { s.slots, s.pieces = s.slots[:0], s.pieces[:0] }

// Slot is what the message has for column i.
func (s *Scanner) Slot(f Frame, i int) Slot { return s.slots[f.slots+i] }

// Single is the value of a column that is not repeated and occurs.
func (s *Scanner) Single(f Frame, slot *Slot) Value {
	v := Value{Raw: slot.raw, Bytes: f.data[slot.start:slot.end]}
	if slot.more == 0 {
		return v
	}
	// Messages that are parts of one are merged when their bytes stand behind one another (protobuf documentation,
	// "Encoding", "Last One Wins").
	merged := append([]byte(nil), v.Bytes...)
	for at := slot.more; at > 0; at = s.pieces[at-1].more {
		p := &s.pieces[at-1]
		merged = append(merged, f.data[p.start:p.end]...)
	}
	v.Bytes = merged
	return v
}

// Len is the number of elements of a repeated column.
func (s *Scanner) Len(f Frame, c *Column, slot *Slot) int {
	if c.wire == protowire.BytesType {
		return int(slot.Count)
	}
	if slot.Count == 0 {
		return 0
	}
	n := 0
	for p := &slot.piece; ; p = &s.pieces[p.more-1] {
		n += p.len(f.data, c.wire)
		if p.more == 0 {
			return n
		}
	}
}

// len is the number of values in a piece. What a packed list has behind its last value is not counted.
func (p *piece) len(data []byte, t protowire.Type) int {
	if !p.packed {
		return 1
	}
	if t == protowire.Fixed64Type {
		return int(p.end-p.start) / 8
	}
	n := 0
	for _, b := range data[p.start:p.end] {
		if b < 0x80 {
			n++
		}
	}
	return n
}

// Each calls do for the elements of a repeated column, in order. An error is a *row.Error whose path begins with the
// element's index.
func (s *Scanner) Each(f Frame, c *Column, slot *Slot, do func(Value) error) error {
	if slot.Count == 0 {
		return nil
	}
	i := 0
	// The pieces of this slot may move while do opens messages, so none is held across a call.
	for p := slot.piece; ; p = s.pieces[p.more-1] {
		if !p.packed {
			if err := do(Value{Raw: p.raw, Bytes: f.data[p.start:p.end]}); err != nil {
				return under(err, fmt.Sprintf("[%d]", i))
			}
			i++
		}
		for list := f.data[p.start:p.end]; p.packed && len(list) > 0; i++ {
			v, n := number(list, c.wire)
			if n <= 0 {
				return malformed(fmt.Sprintf("[%d]", i), "the packed list is cut")
			}
			if err := do(v); err != nil {
				return under(err, fmt.Sprintf("[%d]", i))
			}
			list = list[n:]
		}
		if p.more == 0 {
			return nil
		}
	}
}

// number reads one value of a packed list; n is not positive when there is none.
func number(list []byte, t protowire.Type) (v Value, n int) {
	if t == protowire.VarintType {
		v.Raw, n = binary.Uvarint(list)
		return v, n
	}
	if len(list) < 8 {
		return v, 0
	}
	return Value{Raw: binary.LittleEndian.Uint64(list)}, 8
}

// under puts a name or an index before the path of an error.
func under(err error, name string) error {
	e, ok := err.(*row.Error)
	if !ok {
		return row.At(err, name, -1)
	}
	switch {
	case e.Path == "" || e.Path[0] == '[':
		e.Path = name + e.Path
	default:
		e.Path = table.Join(name, e.Path)
	}
	return e
}

// Under puts a column's name before the path of an error about its value.
func (c *Column) Under(err error) error { return under(err, c.Field.Name) }

// Missing is the error of a REQUIRED column that a row has no value for.
func (c *Column) Missing() error {
	return &row.Error{Kind: row.KindRequired, Path: c.Field.Name, Offset: -1, Msg: "no value for a REQUIRED column"}
}
