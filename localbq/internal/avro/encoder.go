package avro

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/text"
)

// Encoder writes rows of one schema. Safe for concurrent use.
type Encoder struct {
	text    string
	fields  []*schema.Field
	options Options
}

// New makes an encoder; it refuses columns whose names Avro cannot hold.
func New(s *schema.Schema, o Options) (*Encoder, error) {
	text, err := describe(s, o)
	if err != nil {
		return nil, err
	}
	return &Encoder{text, s.Fields, o}, nil
}

// Schema is the session's Avro schema as JSON.
func (e *Encoder) Schema() string { return e.text }

// Rows binds a batch, which has the encoder's columns in the layout of the store.
func (e *Encoder) Rows(b arrow.RecordBatch) *Rows {
	r := &Rows{columns: make([]column, len(e.fields))}
	for i, f := range e.fields {
		r.columns[i] = e.bind(f, b.Column(i))
	}
	return r
}

// Rows are the rows of one batch. Nothing changes them: any number of goroutines may append from them.
type Rows struct{ columns []column }

// Append writes row i.
func (r *Rows) Append(dst []byte, i int) []byte {
	for k := range r.columns {
		dst = r.columns[k].append(dst, i)
	}
	return dst
}

// kind is how a value is written.
type kind uint8

const (
	boolean kind = iota
	long
	integer
	double
	bytes
	decimal128
	decimal256
	dateTime
	nanos
	members // of a struct, a range or an interval
	list
)

// column is one bound column. Which of the slices is set depends on the kind; they begin at the array's own row 0.
type column struct {
	kind     kind
	nullable bool   // is a union with null
	nulls    []byte // validity bitmap; nil where every value is there
	offset   int    // of row 0 in the bitmap

	longs   []int64
	ints    []int32
	doubles []float64
	bools   *arrowarray.Boolean
	starts  []int32 // of bytes and lists: one more than rows
	data    []byte
	d128    *arrowarray.Decimal128
	d256    *arrowarray.Decimal256
	below   []column // members; or the element of a list
}

func (e *Encoder) bind(f *schema.Field, a arrow.Array) column {
	if l, ok := a.(*arrowarray.List); ok {
		c := column{kind: list, below: []column{e.value(f, l.ListValues())}}
		c.starts = offsets(l.Len(), func() []int32 { return l.Offsets()[l.Data().Offset():] })
		c.setNulls(a)
		return c
	}
	c := e.value(f, a)
	c.nullable = f.Mode == schema.Nullable
	return c
}

func (c *column) setNulls(a arrow.Array) {
	if a.NullN() > 0 {
		c.nulls, c.offset = a.NullBitmapBytes(), a.Data().Offset()
	}
}

func (c *column) null(i int) bool {
	if c.nulls == nil {
		return false
	}
	i += c.offset
	return c.nulls[i>>3]&(1<<(i&7)) == 0
}

// value binds the values of a column, without regard to its mode.
func (e *Encoder) value(f *schema.Field, a arrow.Array) (c column) {
	switch v := a.(type) {
	case *arrowarray.Boolean:
		c = column{kind: boolean, bools: v}
	case *arrowarray.Int64:
		c = column{kind: long, longs: v.Int64Values()}
	case *arrowarray.Int32:
		c = column{kind: integer, ints: v.Int32Values()}
	case *arrowarray.Float64:
		c = column{kind: double, doubles: v.Float64Values()}
	case *arrowarray.Decimal128:
		c = column{kind: decimal128, d128: v}
	case *arrowarray.Decimal256:
		c = column{kind: decimal256, d256: v}
	case *arrowarray.Date32:
		c = column{kind: integer, ints: arrow.Int32Traits.CastFromBytes(arrow.Date32Traits.CastToBytes(v.Date32Values()))}
	case *arrowarray.Time64:
		c = column{kind: long, longs: arrow.Int64Traits.CastFromBytes(arrow.Time64Traits.CastToBytes(v.Time64Values()))}
	case *arrowarray.Timestamp:
		c = column{kind: long, longs: arrow.Int64Traits.CastFromBytes(arrow.TimestampTraits.CastToBytes(v.TimestampValues()))}
		if f.Type == schema.DateTime {
			c.kind = dateTime
		}
	case *arrowarray.Binary:
		c = column{kind: bytes, starts: offsets(v.Len(), v.ValueOffsets), data: buffer(v)}
	case *arrowarray.String:
		c = e.texts(f, v)
	case *arrowarray.Struct:
		c = e.structs(f, v)
	default:
		panic(fmt.Sprintf("avro: column %s of type %s is held as %s", f.Name, f.Type, a.DataType()))
	}
	c.setNulls(a)
	return c
}

// offsets are those of an array that has rows; one without may have no offsets at all.
func offsets(rows int, of func() []int32) []int32 {
	if rows == 0 {
		return nil
	}
	return of()
}

// buffer is the heap of a text or bytes array, which its offsets count from.
func buffer(a arrow.Array) []byte {
	if b := a.Data().Buffers()[2]; b != nil {
		return b.Bytes()
	}
	return nil
}

func (e *Encoder) texts(f *schema.Field, a *arrowarray.String) column {
	if f.Type != schema.Timestamp || e.options.Picos == PicosAsText {
		return column{kind: bytes, starts: offsets(a.Len(), a.ValueOffsets), data: buffer(a)}
	}
	c := column{kind: long, longs: make([]int64, a.Len())}
	for i := range c.longs {
		if a.IsNull(i) {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, a.Value(i)[:len("2006-01-02T15:04:05.000000000")]+"Z")
		if err != nil {
			panic(fmt.Sprintf("avro: a TIMESTAMP of picoseconds is held as %q", a.Value(i))) // the store has one form for them
		}
		c.longs[i] = at.UnixMicro()
		if e.options.Picos == PicosAsNanos {
			c.longs[i] = at.UnixNano()
		}
	}
	return c
}

func (e *Encoder) structs(f *schema.Field, a *arrowarray.Struct) column {
	c := column{kind: members, below: make([]column, a.NumField())}
	for i := range c.below {
		switch f.Type {
		case schema.Struct:
			c.below[i] = e.bind(f.Fields[i], a.Field(i))
		case schema.Range:
			c.below[i] = e.bind(&schema.Field{Name: f.Name, Type: f.RangeElement}, a.Field(i))
		default:
			c.below[i] = e.value(f, a.Field(i))
		}
	}
	return c
}

func (c *column) append(dst []byte, i int) []byte {
	if c.nullable {
		if c.null(i) {
			return append(dst, 0)
		}
		dst = append(dst, 2)
	}
	switch c.kind {
	case long:
		return binary.AppendVarint(dst, c.longs[i])
	case bytes:
		b := c.data[c.starts[i]:c.starts[i+1]]
		return append(binary.AppendVarint(dst, int64(len(b))), b...)
	case integer:
		return binary.AppendVarint(dst, int64(c.ints[i]))
	case double:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(c.doubles[i]))
	case boolean:
		if c.bools.Value(i) {
			return append(dst, 1)
		}
		return append(dst, 0)
	case members:
		for k := range c.below {
			dst = c.below[k].append(dst, i)
		}
		return dst
	case list:
		return c.appendList(dst, i)
	case dateTime:
		return appendDateTime(dst, c.longs[i])
	case decimal128:
		n := c.d128.Value(i)
		if low := int64(n.LowBits()); n.HighBits() == low>>63 {
			return appendMinimal64(dst, low)
		}
		return appendMinimal(dst, n.BigInt())
	default:
		return appendMinimal(dst, c.d256.Value(i).BigInt())
	}
}

// appendList writes one block of elements and the empty block at its end. A NULL array reads as an empty one.
func (c *column) appendList(dst []byte, i int) []byte {
	from, to := c.starts[i], c.starts[i+1]
	if from == to || c.null(i) {
		return append(dst, 0)
	}
	dst = binary.AppendVarint(dst, int64(to-from))
	for k := from; k < to; k++ {
		dst = c.below[0].append(dst, int(k))
	}
	return append(dst, 0)
}

func appendDateTime(dst []byte, micros int64) []byte {
	var form [32]byte
	b := text.AppendDateTime(form[:0], micros, 'T')
	return append(binary.AppendVarint(dst, int64(len(b))), b...)
}

// appendMinimal64 writes a number as length and big-endian two's complement of as few bytes as hold it.
func appendMinimal64(dst []byte, v int64) []byte {
	n := 1
	for shifted := v >> 7; shifted != 0 && shifted != -1; shifted >>= 8 {
		n++
	}
	dst = append(dst, byte(n<<1))
	for n--; n >= 0; n-- {
		dst = append(dst, byte(v>>(8*n)))
	}
	return dst
}

func appendMinimal(dst []byte, v *big.Int) []byte {
	n := v.BitLen()/8 + 1
	if v.Sign() < 0 {
		// -128 takes as many bits as 127.
		n = new(big.Int).Not(v).BitLen()/8 + 1
		v = new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	dst = append(dst, byte(n<<1))
	at := len(dst)
	dst = append(dst, make([]byte, n)...)
	v.FillBytes(dst[at:])
	return dst
}
