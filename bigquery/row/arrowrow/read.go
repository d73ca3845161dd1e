package arrowrow

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Reader makes rows as deserializers take them, to structs or to JSON, of the rows of batches: the way back, of what the
// Storage Read API answers in Arrow. It belongs to one goroutine.
type Reader struct {
	plan  *plan
	row   row.Row
	lists []row.Value // arena of inner values
	bytes []byte      // arena of decimals
}

// NewReader makes the Reader of batches of an Arrow schema. The columns are those that SchemaOf derives.
func NewReader(s *arrow.Schema) (*Reader, error) {
	t, err := SchemaOf(s, Options{DeriveRequired: true})
	if err != nil {
		return nil, err
	}
	p, err := compile(s, t, false)
	if err != nil {
		return nil, err
	}
	return &Reader{plan: p, row: row.Row{Schema: t, Values: make([]row.Value, len(t.Fields))}}, nil
}

// Schema is the columns of the rows.
func (r *Reader) Schema() *table.Schema { return r.plan.schema }

// Read reads a row of a batch of the Reader's schema. It is valid until the next call and while the batch is: texts and bytes
// are the batch's own. Errors are *row.Error values of the D kinds with the path of the column.
func (r *Reader) Read(rec Row) (*row.Row, error) {
	if rec.Batch == nil || uint(rec.Index) >= uint(rec.Batch.rows) {
		return nil, errNoRow
	}
	if !sameColumns(rec.Batch.Schema(), r.plan.arrow) {
		return nil, &row.Error{Kind: row.KindDecode, Offset: -1, Msg: "the batch has another Arrow schema than those before"}
	}
	r.lists, r.bytes = r.lists[:0], r.bytes[:0]
	if e := r.columns(r.row.Values, r.plan.columns, rec.Batch.columns, rec.Index); e != nil {
		return nil, e
	}
	return &r.row, nil
}

// room is a piece of the arena for n values. Pieces that were handed out before stay where they are.
func (r *Reader) room(n int) []row.Value {
	if len(r.lists)+n > cap(r.lists) {
		r.lists = make([]row.Value, 0, max(2*cap(r.lists), n, 64))
	}
	from := len(r.lists)
	r.lists = r.lists[:from+n]
	out := r.lists[from : from+n : from+n]
	clear(out)
	return out
}

func (r *Reader) columns(out []row.Value, columns []column, arrays []vector, i int) *row.Error {
	for k := range columns {
		c := &columns[k]
		out[k] = row.Value{}
		if e := r.column(&out[k], c, &arrays[c.at], i); e != nil {
			return e.Within(c.name)
		}
	}
	return nil
}

func (r *Reader) column(out *row.Value, c *column, v *vector, i int) *row.Error {
	if c.list == listNone {
		v, i = v.resolve(c.dict, i)
		if !v.null(i) {
			return r.value(out, &c.value, v, i)
		}
		if c.required {
			return &row.Error{Kind: row.KindNull, Offset: -1, Msg: "null in a column that is never null"}
		}
		out.Null = true
		return nil
	}
	if v.null(i) {
		return nil // an empty list
	}
	from, to := c.elements(v, i)
	out.List = r.room(to - from)
	for k := range out.List {
		e, at := v.children[0].resolve(c.dict, from+k)
		if e.null(at) {
			return (&row.Error{Kind: row.KindNull, Offset: -1, Msg: "null within a list"}).Element(k)
		}
		if fault := r.value(&out.List[k], &c.value, e, at); fault != nil {
			return fault.Element(k)
		}
	}
	return nil
}

// resolve is where value i really is: in a dictionary, if there is one.
func (v *vector) resolve(dict bool, i int) (*vector, int) {
	if !dict || v.null(i) {
		return v, i
	}
	n, _ := v.integer(v.index, i) // checked by NewBatch
	return v.dict, int(n)
}

// value reads value i, which is not null.
func (r *Reader) value(out *row.Value, p *value, v *vector, i int) (e *row.Error) {
	var err error
	switch p.typ {
	case table.Int64:
		out.Int, err = v.integer(p.load, i)
		if err == nil && (p.num != 1 || p.den != 1) {
			out.Int, err = p.micros(out.Int, true)
		}
	case table.Float64:
		var f float64
		f, err = v.float(p.load, i)
		out.Int = int64(math.Float64bits(f))
	case table.Bool:
		at := v.offset + i
		out.Int = int64(v.data[at>>3] >> (at & 7) & 1)
	case table.String, table.JSON, table.Geography:
		if out.Bytes = v.text(p, i); !utf8.Valid(out.Bytes) {
			err = errUTF8
		}
	case table.Bytes:
		out.Bytes = v.text(p, i)
	case table.Struct, table.Range:
		out.List = r.room(len(p.members))
		return r.columns(out.List, p.members, v.children, v.offset+i)
	case table.Numeric, table.BigNumeric:
		err = r.number(out, p, v, i)
	case table.Interval:
		months, days, micros := v.span(p.load, i)
		out.List = r.room(3)
		out.List[0].Int, out.List[1].Int, out.List[2].Int = months, days, micros
		err = row.CheckInterval(months, days, micros)
	default:
		out.Int, err = v.integer(p.load, i)
		if err == nil {
			out.Int, err = p.civil(out.Int)
		}
	}
	if err != nil {
		e = row.At(err, "", -1)
		e.Kind = row.KindDecode
	}
	return e
}

// number reads a decimal, as it is unless its scale is below zero.
func (r *Reader) number(out *row.Value, p *value, v *vector, i int) (err error) {
	s, scale := v.unscaled(p.width, i), p.scale
	if scale < 0 {
		if s, err = p.decimal.Rescale(s, scale); err != nil {
			return err
		}
		scale = p.decimal.Scale()
	}
	from := len(r.bytes)
	if from+32 > cap(r.bytes) {
		r.bytes, from = make([]byte, 0, max(2*cap(r.bytes), 256)), 0
	}
	r.bytes = s.AppendBigEndian(r.bytes)
	out.Bytes, out.Int = r.bytes[from:len(r.bytes):len(r.bytes)], int64(scale)
	return nil
}

// span is an INTERVAL. Nanoseconds are cut off to microseconds, towards zero.
func (v *vector) span(l load, i int) (months, days, micros int64) {
	i += v.offset
	part := func(at int) int64 { return int64(int32(binary.LittleEndian.Uint32(v.data[at:]))) }
	switch l {
	case loadMonths:
		return part(i * 4), 0, 0
	case loadDayTime:
		return 0, part(i * 8), part(i*8+4) * 1000
	}
	return part(i * 16), part(i*16 + 4), int64(binary.LittleEndian.Uint64(v.data[i*16+8:])) / 1000
}
