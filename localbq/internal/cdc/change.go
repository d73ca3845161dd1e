package cdc

import (
	"encoding/binary"
	"errors"
)

// The columns of a writer's schema that carry changes. They are matched without regard to case and are never columns of a
// table.
const (
	TypeColumn     = "_CHANGE_TYPE"
	SequenceColumn = "_CHANGE_SEQUENCE_NUMBER"
)

// MaxKeyColumns is how many columns a primary key may have.
const MaxKeyColumns = 16

// Change says what a row of an append does.
type Change struct {
	Delete   bool
	Sequence Sequence
}

// ParseType reads a change type and reports whether it removes the row of its key; ok is false for anything else.
func ParseType(s string) (deletes, ok bool) {
	switch s {
	case "UPSERT":
		return false, true
	case "DELETE":
		return true, true
	}
	return false, false
}

// Append adds the durable form of changes to buf: for each a byte, 1 for a delete plus 2 for a sequence number, and the four
// sections as uvarints where there is one.
func Append(buf []byte, changes []Change) []byte {
	for _, c := range changes {
		kind := byte(0)
		if c.Delete {
			kind |= 1
		}
		if c.Sequence.given {
			kind |= 2
		}
		buf = append(buf, kind)
		if c.Sequence.given {
			for _, section := range c.Sequence.sections {
				buf = binary.AppendUvarint(buf, section)
			}
		}
	}
	return buf
}

var errDamaged = errors.New("encoded changes are damaged")

// Parse reads what Append wrote.
func Parse(b []byte) ([]Change, error) {
	var out []Change
	in := reader{rest: b}
	for len(in.rest) > 0 {
		kind := in.byte()
		c := Change{Delete: kind&1 != 0, Sequence: in.sequence(kind&2 != 0)}
		if in.failed || kind > 3 {
			return nil, errDamaged
		}
		out = append(out, c)
	}
	return out, nil
}

// reader reads numbers and bytes; once it has failed it answers zeros.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) byte() byte {
	b := r.bytes(1)
	if len(b) == 0 {
		return 0
	}
	return b[0]
}

func (r *reader) bytes(n uint64) []byte {
	if r.failed || n > uint64(len(r.rest)) {
		r.failed, r.rest = true, nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if r.failed || n <= 0 {
		r.failed, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) sequence(given bool) Sequence {
	s := Sequence{given: given}
	if given {
		for i := range s.sections {
			s.sections[i] = r.uvarint()
		}
	}
	return s
}
