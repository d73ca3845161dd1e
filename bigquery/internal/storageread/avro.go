package storageread

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/avro"
)

// Decoder turns the rows of a session's blocks into values. It holds one row, made anew by every call of Decode. It is
// used from one goroutine.
//
// Blocks are not trusted: a length or a count allocates nothing before the bytes it speaks of are there.
type Decoder struct {
	plan  *plan
	row   row.Row
	arena arena

	// What was wrong with the row decoded last.
	msg  string
	at   int      // where in the block
	path []string // names from the inside out
}

// NewDecoder compiles a session's Avro schema. With a reader's schema, rows hold its columns in its order; an error of
// kind D-SCHEMA says that the session's schema does not fit it. With nil, rows hold what the session has.
func NewDecoder(avroSchema string, reader *table.Schema) (*Decoder, error) {
	root, err := parseSchema(avroSchema)
	if err != nil {
		return nil, err
	}
	d := &Decoder{}
	if reader == nil {
		d.plan, d.row.Schema = identity(root), root.schema()
	} else if d.plan, err = resolve(root, reader.Fields, ""); err != nil {
		return nil, err
	} else {
		d.row.Schema = reader
	}
	d.plan.text(d.row.Schema.Fields)
	d.row.Values = make([]row.Value, d.plan.width)
	return d, nil
}

// Schema is the columns of the rows.
func (d *Decoder) Schema() *table.Schema { return d.row.Schema }

// Row is the row decoded last. Its bytes lie in the block.
func (d *Decoder) Row() *row.Row { return &d.row }

// Decode reads the row at the start of block and answers how many bytes it took. Any error is a *row.Error of kind
// D-TYPE or D-NULL, whose offset counts from the start of the block.
func (d *Decoder) Decode(block []byte) (int, error) {
	d.arena.reset()
	if n := d.record(block, 0, d.plan, d.row.Values); n >= 0 {
		return n, nil
	}
	return 0, d.error()
}

// The functions below read at b[i:] and return the index behind what they read, or failed.

const failed = -1

func (d *Decoder) record(b []byte, i int, p *plan, out []row.Value) int {
	for k := range p.steps {
		s := &p.steps[k]
		if s.nullable {
			switch {
			case i < len(b) && b[i] == s.some:
				i++
			case i >= len(b) || b[i] != s.null:
				return d.fail(s, i, badBranch)
			case s.refuse:
				return d.fail(s, i, null)
			default:
				i++
				if s.slot >= 0 {
					out[s.slot] = row.Value{Null: s.op != opArray}
				}
				continue
			}
		}
		if s.slot < 0 {
			i = d.skip(b, i, s)
		} else {
			i = d.value(b, i, s, &out[s.slot])
		}
		if i < 0 {
			return d.within(s)
		}
	}
	for k := range p.constants {
		out[p.constants[k].slot] = p.constants[k].value
	}
	return i
}

// value reads one value that is not null. It leaves alone what row.Value says has no meaning for the type.
func (d *Decoder) value(b []byte, i int, s *step, v *row.Value) int {
	v.Null = false
	switch s.op {
	case opLong, opInt:
		return d.integer(b, i, s, v)
	case opBytes:
		n, next := avro.Length(b, i)
		if next < 0 {
			return d.failAt(i, badLength)
		}
		v.Bytes = b[next : next+n : next+n]
		return next + n
	case opText:
		n, next := avro.Length(b, i)
		if next < 0 {
			return d.failAt(i, badLength)
		}
		if v.Bytes = b[next : next+n : next+n]; !utf8.Valid(v.Bytes) {
			return d.failAt(next, "text that is not valid UTF-8")
		}
		return next + n
	case opDouble:
		if len(b)-i < 8 {
			return d.failAt(i, short)
		}
		v.Int = int64(binary.LittleEndian.Uint64(b[i:]))
		return i + 8
	case opBool:
		if i >= len(b) || b[i] > 1 {
			return d.failAt(i, "a BOOL is one byte, 0 or 1")
		}
		v.Int = int64(b[i])
		return i + 1
	case opFloat:
		if len(b)-i < 4 {
			return d.failAt(i, short)
		}
		v.Int = int64(math.Float64bits(float64(math.Float32frombits(binary.LittleEndian.Uint32(b[i:])))))
		return i + 4
	case opDecimal:
		return d.decimal(b, i, s, v)
	case opDateTime:
		return d.dateTime(b, i, v)
	case opStruct:
		v.List = d.arena.take(s.sub.width)
		return d.record(b, i, s.sub, v.List)
	default: // opArray
		return d.array(b, i, s.elem, v)
	}
}

func (d *Decoder) integer(b []byte, i int, s *step, v *row.Value) int {
	var u uint64
	next := i + 1
	if i < len(b) && b[i] < 0x80 {
		u = uint64(b[i])
	} else if u, next = avro.Varint(b, i); next < 0 {
		return d.failAt(i, badVarint)
	}
	v.Int = avro.Zigzag(u)
	if s.op == opInt && int64(int32(v.Int)) != v.Int {
		return d.failAt(i, "a number of more than 32 bits")
	}
	if s.toFloat {
		v.Int = int64(math.Float64bits(float64(float32(v.Int))))
	} else if s.toDouble {
		v.Int = int64(math.Float64bits(float64(v.Int)))
	}
	return next
}

var zero = []byte{0}

func (d *Decoder) decimal(b []byte, i int, s *step, v *row.Value) int {
	n, next := avro.Length(b, i)
	if next < 0 {
		return d.failAt(i, badLength)
	}
	v.Int, v.Bytes = s.scale, zero // no byte at all is what the specification leaves room for
	if n > 0 {
		v.Bytes = b[next : next+n : next+n]
	}
	return next + n
}

func (d *Decoder) dateTime(b []byte, i int, v *row.Value) int {
	n, next := avro.Length(b, i)
	if next < 0 {
		return d.failAt(i, badLength)
	}
	var ok bool
	if v.Int, ok = parseDateTime(b[next : next+n]); !ok {
		return d.failAt(i, "a DATETIME is text such as 2026-08-12T12:34:56.123456")
	}
	return next + n
}

// array reads the elements of all blocks of an Avro array into one list.
func (d *Decoder) array(b []byte, i int, elem *step, v *row.Value) int {
	v.List = nil
	for {
		n, next := d.count(b, i)
		if next < 0 {
			return failed
		}
		if i = next; n == 0 {
			return i
		}
		for k := range n {
			if len(v.List) == cap(v.List) {
				v.List = d.arena.grow(v.List, n)
			}
			v.List = v.List[:len(v.List)+1]
			if i = d.value(b, i, elem, &v.List[len(v.List)-1]); i < 0 {
				return d.withinElement(k)
			}
		}
	}
}

// count reads how many elements come next: 0 ends the array, and a negative count is followed by their size in bytes.
func (d *Decoder) count(b []byte, i int) (n, next int) {
	u, next := avro.Varint(b, i)
	if next < 0 {
		return 0, d.failAt(i, badVarint)
	}
	c := avro.Zigzag(u)
	if c < 0 {
		if _, next = avro.Varint(b, next); next < 0 {
			return 0, d.failAt(i, badVarint)
		}
		c = -c
	}
	// Every element takes a byte at least.
	if c < 0 || c > int64(len(b)-next) {
		return 0, d.failAt(i, "an array has more elements than the block has bytes")
	}
	return int(c), next
}

func (d *Decoder) skip(b []byte, i int, s *step) int {
	switch s.op {
	case opLong, opInt:
		if _, next := avro.Varint(b, i); next >= 0 {
			return next
		}
		return d.failAt(i, badVarint)
	case opDouble:
		if len(b)-i < 8 {
			return d.failAt(i, short)
		}
		return i + 8
	case opBool:
		if i >= len(b) {
			return d.failAt(i, short)
		}
		return i + 1
	case opStruct:
		return d.skipRecord(b, i, s.sub)
	case opArray:
		return d.skipArray(b, i, s.elem)
	default: // opBytes, opText, opDecimal, opDateTime
		n, next := avro.Length(b, i)
		if next < 0 {
			return d.failAt(i, badLength)
		}
		return next + n
	}
}

func (d *Decoder) skipRecord(b []byte, i int, p *plan) int {
	for k := range p.steps {
		s := &p.steps[k]
		if s.nullable {
			if i >= len(b) || b[i] != s.some && b[i] != s.null {
				return d.fail(s, i, badBranch)
			}
			if i++; b[i-1] == s.null {
				continue
			}
		}
		if i = d.skip(b, i, s); i < 0 {
			return d.within(s)
		}
	}
	return i
}

func (d *Decoder) skipArray(b []byte, i int, elem *step) int {
	for {
		n, next := d.count(b, i)
		if next < 0 {
			return failed
		}
		if i = next; n == 0 {
			return i
		}
		for range n {
			if i = d.skip(b, i, elem); i < 0 {
				return failed
			}
		}
	}
}
