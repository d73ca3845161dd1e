package arrowrow

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/float16"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

var (
	errNull     = &row.ValueError{Kind: row.KindRequired, Msg: "null, expected a value: the column is REQUIRED"}
	errNullElem = &row.ValueError{Kind: row.KindNullElem, Msg: "null within a list: a REPEATED column holds no NULL"}
	errUnsigned = &row.ValueError{Kind: row.KindRange, Msg: "expected a number up to 9223372036854775807"}
	errInexact  = &row.ValueError{Kind: row.KindRange, Msg: "expected a whole number that FLOAT64 holds exactly"}
	errTime     = &row.ValueError{Kind: row.KindRange, Msg: "expected a time of this unit that microseconds in 64 bits hold"}
	errDay      = &row.ValueError{Kind: row.KindScale, Msg: "expected whole days"}
	errTooFine  = &row.ValueError{Kind: row.KindScale, Msg: "expected no digits below the microsecond"}
	errUTF8     = &row.ValueError{Kind: row.KindText, Msg: "the text is not valid UTF-8"}
)

// appendColumns appends row i of sibling arrays.
func appendColumns(buf []byte, columns []column, arrays []vector, i int) ([]byte, *row.Error) {
	for k := range columns {
		c := &columns[k]
		if c.at < 0 {
			continue
		}
		var e *row.Error
		if buf, e = c.append(buf, &arrays[c.at], i); e != nil {
			return buf, e.Within(c.name)
		}
	}
	return buf, nil
}

// append appends the column of row i, with its tag; nothing for NULL.
func (c *column) append(buf []byte, v *vector, i int) ([]byte, *row.Error) {
	if v.null(i) {
		return c.null(buf)
	}
	if c.list != listNone {
		return c.appendList(buf, v, i)
	}
	if c.dict {
		if v, i = v.resolve(true, i); v.null(i) {
			return c.null(buf)
		}
	}
	return c.value.append(append(buf, c.tag...), v, i)
}

func (c *column) null(buf []byte) ([]byte, *row.Error) {
	if c.required {
		return buf, row.At(errNull, "", -1)
	}
	return buf, nil
}

func (c *column) appendList(buf []byte, v *vector, i int) ([]byte, *row.Error) {
	from, to := c.elements(v, i)
	if from == to {
		return buf, nil
	}
	elements := &v.children[0]
	start := 0
	if c.packed {
		buf, start = row.BeginLength(append(buf, c.tag...))
	}
	for k := from; k < to; k++ {
		e, at := elements.resolve(c.dict, k)
		if e.null(at) {
			return buf, row.At(errNullElem, "", -1).Element(k - from)
		}
		if !c.packed {
			buf = append(buf, c.tag...)
		}
		var fault *row.Error
		if buf, fault = c.value.append(buf, e, at); fault != nil {
			return buf, fault.Element(k - from)
		}
	}
	if c.packed {
		buf = row.EndLength(buf, start)
	}
	return buf, nil
}

// elements are the elements of list i.
func (c *column) elements(v *vector, i int) (from, to int) {
	i += v.offset
	switch c.list {
	case listFixed:
		return i * c.size, (i + 1) * c.size
	case listViews:
		from = v.position(i)
		return from, from + v.sizeAt(i)
	}
	return v.position(i), v.position(i + 1)
}

// append appends value i, which is not null, without its tag.
func (p *value) append(buf []byte, v *vector, i int) ([]byte, *row.Error) {
	switch p.typ {
	case table.Int64:
		n, err := v.integer(p.load, i)
		if err == nil && (p.num != 1 || p.den != 1) {
			n, err = p.micros(n, true)
		}
		if err != nil {
			return buf, row.At(err, "", -1)
		}
		return row.AppendInt(buf, n), nil
	case table.Float64:
		f, err := v.float(p.load, i)
		if err != nil {
			return buf, row.At(err, "", -1)
		}
		return row.AppendFloat(buf, f), nil
	case table.Bool:
		i += v.offset
		return append(buf, v.data[i>>3]>>(i&7)&1), nil
	case table.String, table.JSON, table.Geography:
		s := v.text(p, i)
		if !utf8.Valid(s) {
			return buf, row.At(errUTF8, "", -1)
		}
		return row.AppendText(buf, s), nil
	case table.Bytes:
		return row.AppendText(buf, v.text(p, i)), nil
	case table.Struct, table.Range:
		return p.group(buf, v, i)
	case table.Numeric, table.BigNumeric:
		return p.number(buf, v, i)
	case table.Interval:
		return v.interval(p.load, buf, i)
	}
	return p.time(buf, v, i)
}

func (p *value) group(buf []byte, v *vector, i int) ([]byte, *row.Error) {
	buf, start := row.BeginLength(buf)
	buf, e := appendColumns(buf, p.members, v.children, v.offset+i)
	if e != nil {
		return buf, e
	}
	return row.EndLength(buf, start), nil
}

// number appends a NUMERIC or BIGNUMERIC.
func (p *value) number(buf []byte, v *vector, i int) ([]byte, *row.Error) {
	s, scale := row.Scaled{}, p.scale
	switch p.load {
	case loadDecimal:
		s = v.unscaled(p.width, i)
	case loadUint64:
		s[0] = binary.LittleEndian.Uint64(v.data[(v.offset+i)*8:])
	default:
		n, _ := v.integer(p.load, i)
		sign := uint64(n >> 63)
		s = row.Scaled{uint64(n), sign, sign, sign}
	}
	out, err := p.decimal.Rescale(s, scale)
	if err != nil {
		return buf, row.At(err, "", -1)
	}
	return row.AppendScaled(buf, out), nil
}

func (v *vector) unscaled(width, i int) (s row.Scaled) {
	b := v.data[(v.offset+i)*width:][:width]
	var sign uint64
	if b[width-1]&0x80 != 0 {
		sign = math.MaxUint64
	}
	s = row.Scaled{sign, sign, sign, sign}
	if width == 4 {
		s[0] = uint64(int64(int32(binary.LittleEndian.Uint32(b))))
		return s
	}
	for k := range width / 8 {
		s[k] = binary.LittleEndian.Uint64(b[k*8:])
	}
	return s
}

// time appends a DATE, TIME, DATETIME or TIMESTAMP.
func (p *value) time(buf []byte, v *vector, i int) ([]byte, *row.Error) {
	n, err := v.integer(p.load, i)
	if err == nil {
		n, err = p.clock(n)
	}
	if err != nil {
		return buf, row.At(err, "", -1)
	}
	return row.AppendInt(buf, n), nil
}

// clock turns a count of Arrow's units into what the wire holds.
func (p *value) clock(n int64) (int64, error) {
	n, err := p.civil(n)
	if err != nil {
		return 0, err
	}
	switch p.typ {
	case table.DateTime:
		return row.PackDateTime(n), nil
	case table.Time:
		return row.PackTime(n), nil
	}
	return n, nil
}

// civil turns a count of Arrow's units into days or microseconds that the column holds.
func (p *value) civil(n int64) (int64, error) {
	if p.typ == table.Date {
		if n%p.den != 0 {
			return 0, errDay
		}
		n /= p.den
		return n, row.CheckDays(n)
	}
	n, err := p.micros(n, p.typ == table.Timestamp)
	if err != nil {
		return 0, err
	}
	switch p.typ {
	case table.Timestamp:
		return n, row.CheckMicros(n)
	case table.DateTime:
		return n, row.CheckDateTime(n)
	}
	return n, row.CheckTime(n)
}

// micros turns a count of Arrow's units into microseconds. What is finer is refused, or cut off: towards the past for an
// instant, towards zero for a duration.
func (p *value) micros(n int64, cut bool) (int64, error) {
	if p.num != 1 {
		if n > math.MaxInt64/p.num || n < math.MinInt64/p.num {
			return 0, errTime
		}
		return n * p.num, nil
	}
	q, rest := n/p.den, n%p.den
	switch {
	case rest != 0 && !cut:
		return 0, errTooFine
	case rest < 0 && p.typ == table.Timestamp:
		q--
	}
	return q, nil
}

// integer is value i as a number.
func (v *vector) integer(l load, i int) (int64, error) {
	i += v.offset
	switch l {
	case loadInt64:
		return int64(binary.LittleEndian.Uint64(v.data[i*8:])), nil
	case loadInt32:
		return int64(int32(binary.LittleEndian.Uint32(v.data[i*4:]))), nil
	case loadInt16:
		return int64(int16(binary.LittleEndian.Uint16(v.data[i*2:]))), nil
	case loadInt8:
		return int64(int8(v.data[i])), nil
	case loadUint8:
		return int64(v.data[i]), nil
	case loadUint16:
		return int64(binary.LittleEndian.Uint16(v.data[i*2:])), nil
	case loadUint32:
		return int64(binary.LittleEndian.Uint32(v.data[i*4:])), nil
	}
	n := int64(binary.LittleEndian.Uint64(v.data[i*8:]))
	if n < 0 {
		return 0, errUnsigned
	}
	return n, nil
}

const maxExact = 1 << 53 // whole numbers up to here are all FLOAT64 values

func (v *vector) float(l load, i int) (float64, error) {
	switch l {
	case loadFloat64:
		return math.Float64frombits(binary.LittleEndian.Uint64(v.data[(v.offset+i)*8:])), nil
	case loadFloat32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(v.data[(v.offset+i)*4:]))), nil
	case loadFloat16:
		return float64(float16.FromBits(binary.LittleEndian.Uint16(v.data[(v.offset+i)*2:])).Float32()), nil
	}
	n, err := v.integer(l, i)
	if err != nil || n > maxExact || n < -maxExact {
		return 0, errInexact
	}
	return float64(n), nil
}

func (v *vector) text(p *value, i int) []byte {
	switch p.load {
	case loadView:
		return v.view(i)
	case loadFixed:
		return v.data[(v.offset+i)*p.width:][:p.width]
	}
	i += v.offset
	return v.bytes[v.position(i):v.position(i+1)]
}

// interval appends an INTERVAL.
func (v *vector) interval(l load, buf []byte, i int) ([]byte, *row.Error) {
	months, days, micros := v.span(l, i)
	if err := row.CheckInterval(months, days, micros); err != nil {
		return buf, row.At(err, "", -1)
	}
	buf, start := row.BeginLength(buf)
	return row.EndLength(row.AppendInterval(buf, months, days, micros), start), nil
}
