package decode

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// raw is a value as the wire carries it: a number's bits, or bytes that belong to the request.
type raw struct {
	bits uint64
	data []byte
}

// put converts a value, checks it and appends it to a vector.
type put func(raw) error

// node is the columns of a table, or the members of a STRUCT, and the message that feeds them.
type node struct {
	columns []column
	slots   []slot // by column: the last value seen in the message at hand
	epoch   uint64 // counts messages: a slot of another epoch is empty
	numbers numbers
}

// slot is a column's value in the message at hand.
type slot struct {
	raw
	epoch  uint64
	merged bool // data is the slot's own
}

// column is one column and how it is fed.
type column struct {
	name, path string
	vector     vector
	list       *list // of a REPEATED column: vector itself
	required   bool
	absent     bool // no field of the descriptor feeds it

	put      put // of one element where the column is REPEATED; nil when absent
	number   protowire.Number
	wire     protowire.Type
	packable bool
	message  bool
	enum     map[int32]string // of an enum field

	fallback    raw // the descriptor's default_value
	hasFallback bool
	standard    *standard // the table's default; nil for none
	useStandard bool      // in the request at hand
}

// numbers finds a column by field number.
type numbers struct {
	dense  []int32 // index+1 by number, for small numbers
	sparse map[protowire.Number]int32
}

const denseNumbers = 1024

func (n *numbers) add(number protowire.Number, index int) {
	if number >= denseNumbers {
		if n.sparse == nil {
			n.sparse = map[protowire.Number]int32{}
		}
		n.sparse[number] = int32(index) + 1
		return
	}
	for int(number) >= len(n.dense) {
		n.dense = append(n.dense, 0)
	}
	n.dense[number] = int32(index) + 1
}

// find is the column's index, -1 for a number that no column has.
func (n *numbers) find(number protowire.Number) int {
	if int(number) < len(n.dense) {
		return int(n.dense[number]) - 1
	}
	return int(n.sparse[number]) - 1
}

// missing settles for a request which columns take the table's default where a row has no value.
func (n *node) missing(q Request) {
	for i := range n.columns {
		c := &n.columns[i]
		if c.standard == nil {
			continue
		}
		policy := q.Missing
		for name, override := range q.Columns {
			if strings.EqualFold(name, c.name) {
				policy = override
			}
		}
		// A column that the descriptor leaves out takes its default whatever the request says (official client suites).
		c.useStandard = c.absent || policy == MissingDefault
		c.standard.evaluate(q.Now)
	}
}

// decode reads one message and appends one value to each column's vector.
func (n *node) decode(b []byte) error {
	n.epoch++
	if err := n.walk(b); err != nil {
		return err
	}
	for i := range n.columns {
		c := &n.columns[i]
		if c.list != nil {
			if err := c.endList(); err != nil {
				return err
			}
			continue
		}
		if s := &n.slots[i]; s.epoch == n.epoch {
			if err := c.put(s.raw); err != nil {
				return err
			}
			continue
		}
		if err := c.missing(); err != nil {
			return err
		}
	}
	return nil
}

func (c *column) known(bits uint64) bool {
	_, ok := c.enum[int32(bits)]
	return ok
}

// missing fills the place of a value that the row does not carry.
func (c *column) missing() error {
	switch {
	case c.hasFallback:
		return c.put(c.fallback)
	case c.useStandard:
		return c.standard.append()
	case c.required:
		return fmt.Errorf("Field value of %s cannot be empty.", c.path)
	}
	c.vector.null()
	return nil
}

// endList closes the list of the row at hand; an empty one takes the table's default where that is asked for.
func (c *column) endList() error {
	l := c.list
	empty := len(l.ends) == 0 && l.open == 0 || len(l.ends) > 0 && l.ends[len(l.ends)-1] == l.open
	if empty && c.useStandard {
		if err := c.standard.append(); err != nil {
			return err
		}
	}
	l.end()
	return nil
}

var errWire = errors.New("The row could not be parsed: the bytes are not a valid protocol buffer message.")

// walk notes the last value of each singular column and appends the elements of repeated ones. Fields that no column has,
// and values of a wire type that the field cannot have, are passed over.
func (n *node) walk(b []byte) error {
	for len(b) > 0 {
		number, wire, size := consumeTag(b)
		if size < 0 {
			return errWire
		}
		b = b[size:]
		i := n.numbers.find(number)
		if i < 0 || !n.columns[i].takes(wire) {
			if size = protowire.ConsumeFieldValue(number, wire, b); size < 0 {
				return errWire
			}
			b = b[size:]
			continue
		}
		value, size := consume(number, wire, b)
		if size < 0 {
			return errWire
		}
		b = b[size:]
		if err := n.note(i, wire, value); err != nil {
			return err
		}
	}
	return nil
}

// takes reports whether the field can arrive with that wire type; a list of numbers comes packed or not.
func (c *column) takes(wire protowire.Type) bool {
	return wire == c.wire || c.packable && wire == protowire.BytesType
}

func (n *node) note(i int, wire protowire.Type, value raw) error {
	c := &n.columns[i]
	switch {
	case c.enum != nil && wire == c.wire && !c.known(value.bits): // proto2 enums are closed: it is an unknown field
		return nil
	case c.list == nil:
		s := &n.slots[i]
		if c.message && s.epoch == n.epoch {
			return s.merge(value.data)
		}
		s.raw, s.epoch, s.merged = value, n.epoch, false
		return nil
	case wire != c.wire:
		return c.unpack(value.data)
	default:
		return c.element(value)
	}
}

// merge adds another occurrence of a message: messages merge, and so do their bytes, as long as each is a message by itself.
func (s *slot) merge(more []byte) error {
	if !s.merged {
		if !complete(s.data) {
			return errWire
		}
		s.data, s.merged = slices.Clone(s.data), true // it was part of the row; from now on it grows
	}
	if !complete(more) {
		return errWire
	}
	s.data = append(s.data, more...)
	return nil
}

// complete reports whether b is whole fields.
func complete(b []byte) bool {
	for len(b) > 0 {
		number, wire, size := consumeTag(b)
		if size < 0 {
			return false
		}
		value := protowire.ConsumeFieldValue(number, wire, b[size:])
		if value < 0 {
			return false
		}
		b = b[size+value:]
	}
	return true
}

func (c *column) element(value raw) error {
	if err := c.put(value); err != nil {
		return err
	}
	c.list.open++
	return nil
}

func (c *column) unpack(b []byte) error {
	for len(b) > 0 {
		value, size := consume(c.number, c.wire, b)
		if size < 0 {
			return errWire
		}
		b = b[size:]
		if c.enum != nil && !c.known(value.bits) {
			continue
		}
		if err := c.element(value); err != nil {
			return err
		}
	}
	return nil
}

// consumeTag reads a tag. A number that no field can have is an error, as it is to the protobuf libraries.
func consumeTag(b []byte) (protowire.Number, protowire.Type, int) {
	number, wire, size := protowire.ConsumeTag(b)
	if number > protowire.MaxValidNumber {
		return 0, 0, -1
	}
	return number, wire, size
}

// consume reads one value behind its tag.
func consume(number protowire.Number, wire protowire.Type, b []byte) (raw, int) {
	switch wire {
	case protowire.VarintType:
		v, size := protowire.ConsumeVarint(b)
		return raw{bits: v}, size
	case protowire.Fixed32Type:
		v, size := protowire.ConsumeFixed32(b)
		return raw{bits: uint64(v)}, size
	case protowire.Fixed64Type:
		v, size := protowire.ConsumeFixed64(b)
		return raw{bits: v}, size
	case protowire.BytesType:
		v, size := protowire.ConsumeBytes(b)
		return raw{data: v}, size
	default:
		v, size := protowire.ConsumeGroup(number, b)
		return raw{data: v}, size
	}
}
