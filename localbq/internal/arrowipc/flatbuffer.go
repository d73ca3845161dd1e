package arrowipc

import "encoding/binary"

// flatbuffer reads the metadata of a message in place. Whatever lies outside of the bytes reads as zero and breaks it.
type flatbuffer struct {
	data   []byte
	broken bool
}

func (f *flatbuffer) bytes(at, n int) []byte {
	if at < 0 || n < 0 || n > len(f.data) || at > len(f.data)-n {
		f.broken = true
		return nil
	}
	return f.data[at : at+n]
}

func (f *flatbuffer) uint8(at int) uint8 {
	if b := f.bytes(at, 1); b != nil {
		return b[0]
	}
	return 0
}

func (f *flatbuffer) uint16(at int) uint16 {
	if b := f.bytes(at, 2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (f *flatbuffer) uint32(at int) uint32 {
	if b := f.bytes(at, 4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (f *flatbuffer) int64(at int) int64 {
	if b := f.bytes(at, 8); b != nil {
		return int64(binary.LittleEndian.Uint64(b))
	}
	return 0
}

// table is one table: where it begins and where the table of its fields' places does.
type table struct {
	in         *flatbuffer
	at, vtable int
	size       int // of the vtable
}

func (f *flatbuffer) root() table { return f.table(int(f.uint32(0))) }

func (f *flatbuffer) table(at int) table {
	t := table{in: f, at: at, vtable: at - int(int32(f.uint32(at)))}
	t.size = int(f.uint16(t.vtable))
	f.bytes(t.vtable, t.size)
	return t
}

// field is the place of a field, by its number in the table's declaration; 0 for one that is not set.
func (t table) field(slot int) int {
	place := 4 + 2*slot
	if place+2 > t.size {
		return 0
	}
	offset := int(t.in.uint16(t.vtable + place))
	if offset == 0 {
		return 0
	}
	return t.at + offset
}

func (t table) byte(slot int, unset uint8) uint8 {
	if at := t.field(slot); at != 0 {
		return t.in.uint8(at)
	}
	return unset
}

func (t table) int16(slot int, unset int16) int16 {
	if at := t.field(slot); at != 0 {
		return int16(t.in.uint16(at))
	}
	return unset
}

func (t table) int32(slot int, unset int32) int32 {
	if at := t.field(slot); at != 0 {
		return int32(t.in.uint32(at))
	}
	return unset
}

func (t table) int64(slot int) int64 {
	if at := t.field(slot); at != 0 {
		return t.in.int64(at)
	}
	return 0
}

// sub is the table a field refers to, and whether it is set.
func (t table) sub(slot int) (table, bool) {
	at := t.field(slot)
	if at == 0 {
		return table{in: t.in}, false
	}
	return t.in.table(at + int(t.in.uint32(at))), true
}

// vector is where a field's elements of a size begin, and how many there are.
func (t table) vector(slot, size int) (start, n int) {
	at := t.field(slot)
	if at == 0 {
		return 0, 0
	}
	at += int(t.in.uint32(at))
	n = int(t.in.uint32(at))
	if n > len(t.in.data)/size {
		t.in.broken = true
		return 0, 0
	}
	t.in.bytes(at+4, n*size)
	return at + 4, n
}

func (t table) text(slot int) string {
	start, n := t.vector(slot, 1)
	return string(t.in.bytes(start, n))
}
