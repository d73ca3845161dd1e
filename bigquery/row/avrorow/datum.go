package avrorow

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/internal/avro"
)

func badType(msg string) *row.ValueError { return &row.ValueError{Kind: row.KindType, Msg: msg} }

var (
	errCut      = badType("the datum ends inside this value, or its bytes are of another schema")
	errBranch   = badType("the datum ends here, or its bytes are of another schema: no branch of the union has this number")
	errNumber   = badType("the datum ends inside this number, or its bytes are of another schema")
	errNarrow   = badType("a number of more than 32 bits where the schema says int")
	errBool     = badType("expected a boolean, one byte of 0 or 1: the bytes are of another schema")
	errLength   = badType("a length that is negative, or goes beyond the end of the datum: its bytes are of another schema")
	errCount    = badType("more elements than the datum has bytes: its bytes are of another schema")
	errSymbol   = badType("no symbol of the enum has this number")
	errUnknown  = badType("a symbol that the job's schema lacks, and its enum has no default")
	errLeft     = badType("bytes are left behind the datum: they are of another schema, or there are two datums")
	errUTF8     = &row.ValueError{Kind: row.KindText, Msg: "the text is not valid UTF-8"}
	errRequired = &row.ValueError{Kind: row.KindRequired, Msg: "no value, expected one: the column is REQUIRED"}
	errNullElem = &row.ValueError{Kind: row.KindNullElem, Msg: "null within an array: a REPEATED column holds no NULL"}
)

// decoding is the state of a datum that becomes a row. It is used again for the next one.
type decoding struct {
	err     *row.Error // what is wrong, with the path so far
	entries []entry    // of the maps being read, the innermost last
	scratch []byte
}

// entry is an entry of a map: where its key is in the datum, and where it is in the row.
type entry struct{ key, keyEnd, start, end int }

// datum appends the row of a datum that is all of b.
func (d *decoding) datum(buf, b []byte, p *plan) ([]byte, *row.Error) {
	d.err = nil
	d.entries = d.entries[:0]
	out, i := d.record(buf, b, 0, p)
	if i >= 0 && i != len(b) {
		d.fail(i, errLeft)
	}
	return out, d.err
}

// The functions below read at b[i:] and return the index behind what they read, or avro.Failed.

func (d *decoding) fail(i int, why *row.ValueError) int {
	d.err = row.At(why, "", int64(i))
	return avro.Failed
}

func (d *decoding) record(buf, b []byte, i int, p *plan) ([]byte, int) {
	for k := range p.steps {
		s := &p.steps[k]
		if s.skip != nil {
			at := i
			if i = s.skip.Skip(b, i); i < 0 {
				d.fail(at, errCut)
			}
		} else {
			buf, i = d.field(buf, b, i, s)
		}
		if i < 0 {
			d.err.Within(s.name)
			return buf, avro.Failed
		}
	}
	return append(buf, p.constant...), i
}

// field reads a column: nothing, a value, or a list.
func (d *decoding) field(buf, b []byte, i int, s *step) ([]byte, int) {
	if s.branches != nil {
		at := i
		var v *step
		if v, i = s.branch(b, i); v == nil {
			return buf, d.fail(at, errBranch)
		}
		s, v = v, s
		if s.op == opNull && v.required {
			return buf, d.fail(at, errRequired)
		}
	}
	switch s.op {
	case opNull:
		if s.required {
			return buf, d.fail(i, errRequired)
		}
		return buf, i
	case opArray:
		return d.array(buf, b, i, s)
	case opMap:
		return d.mapping(buf, b, i, s)
	}
	return d.value(append(buf, s.tag...), b, i, s)
}

// branch finds the step of a union's branch; nil where there is none.
func (s *step) branch(b []byte, i int) (*step, int) {
	var u uint64
	next := i + 1
	if i < len(b) && b[i] < 0x80 {
		u = uint64(b[i])
	} else if u, next = avro.Varint(b, i); next < 0 {
		return nil, next
	}
	if n := avro.Zigzag(u); n >= 0 && n < int64(len(s.branches)) {
		return &s.branches[n], next
	}
	return nil, next
}

// value reads a value that is there, and no list.
func (d *decoding) value(buf, b []byte, i int, s *step) ([]byte, int) {
	switch s.op {
	case opText, opUUID:
		n, at := avro.Length(b, i)
		if at < 0 {
			return buf, d.fail(i, errLength)
		}
		text := b[at : at+n]
		if !utf8.Valid(text) {
			return buf, d.fail(at, errUTF8)
		}
		return row.AppendText(buf, text), at + n
	case opBytes:
		n, at := avro.Length(b, i)
		if at < 0 {
			return buf, d.fail(i, errLength)
		}
		return row.AppendText(buf, b[at:at+n]), at + n
	case opDouble:
		if len(b)-i < 8 {
			return buf, d.fail(i, errCut)
		}
		return append(buf, b[i:i+8]...), i + 8
	case opFloat:
		if len(b)-i < 4 {
			return buf, d.fail(i, errCut)
		}
		return row.AppendFloat(buf, float64(math.Float32frombits(binary.LittleEndian.Uint32(b[i:])))), i + 4
	case opBool:
		if i >= len(b) || b[i] > 1 {
			return buf, d.fail(i, errBool)
		}
		return append(buf, b[i]), i + 1
	case opStruct:
		buf, start := row.BeginLength(buf)
		if buf, i = d.record(buf, b, i, s.plan); i < 0 {
			return buf, i
		}
		return row.EndLength(buf, start), i
	case opDecimal, opFixed, opFixedDecimal, opDateTimeText:
		return d.sized(buf, b, i, s)
	case opRefused:
		return buf, d.fail(i, badType(s.why))
	}
	return d.number(buf, b, i, s)
}

// number reads what is written as a varint.
func (d *decoding) number(buf, b []byte, i int, s *step) ([]byte, int) {
	var u uint64
	next := i + 1
	if i < len(b) && b[i] < 0x80 {
		u = uint64(b[i])
	} else if u, next = avro.Varint(b, i); next < 0 {
		return buf, d.fail(i, errNumber)
	}
	n := avro.Zigzag(u)
	if s.narrow && int64(int32(n)) != n {
		return buf, d.fail(i, errNarrow)
	}
	switch s.op {
	case opInt:
		return row.AppendInt(buf, n), next
	case opEnum:
		return d.symbol(buf, i, next, n, s)
	}
	out, why := appendNumber(buf, n, s.op)
	if why != nil {
		d.err = row.At(why, "", int64(i))
		return buf, avro.Failed
	}
	return out, next
}

func (d *decoding) symbol(buf []byte, i, next int, n int64, s *step) ([]byte, int) {
	if n < 0 || n >= int64(len(s.symbols)) {
		return buf, d.fail(i, errSymbol)
	}
	if s.symbols[n] == "" {
		return buf, d.fail(i, errUnknown)
	}
	return append(buf, s.symbols[n]...), next
}

// appendNumber appends the value that a number means.
func appendNumber(buf []byte, n int64, o op) ([]byte, error) {
	switch o {
	case opInt:
		return row.AppendInt(buf, n), nil
	case opDate:
		return row.AppendInt(buf, n), row.CheckDays(n)
	case opTimeMillis, opTimeMicros:
		n = micros(n, o == opTimeMillis)
		return row.AppendInt(buf, row.PackTime(n)), row.CheckTime(n)
	case opTimestampMillis, opTimestampMicros:
		n = micros(n, o == opTimestampMillis)
		return row.AppendInt(buf, n), row.CheckMicros(n)
	case opDateTimeMillis, opDateTimeMicros:
		n = micros(n, o == opDateTimeMillis)
		if err := row.CheckDateTime(n); err != nil {
			return buf, err
		}
		return row.AppendInt(buf, row.PackDateTime(n)), nil
	case opIntAsFloat:
		return row.AppendFloat(buf, float64(float32(n))), nil
	}
	return row.AppendFloat(buf, float64(n)), nil // opIntAsDouble
}

// micros turns milliseconds into microseconds. What would overflow is out of every column's range, and stays so.
func micros(n int64, millis bool) int64 {
	switch {
	case !millis:
		return n
	case n > math.MaxInt64/1000:
		return math.MaxInt64
	case n < math.MinInt64/1000:
		return math.MinInt64
	}
	return n * 1000
}

// sized reads bytes that mean something.
func (d *decoding) sized(buf, b []byte, i int, s *step) ([]byte, int) {
	n, at := s.size, i
	if s.op == opDecimal || s.op == opDateTimeText {
		if n, at = avro.Length(b, i); at < 0 {
			return buf, d.fail(i, errLength)
		}
	} else if n > len(b)-i {
		return buf, d.fail(i, errCut)
	}
	content := b[at : at+n]
	var err error
	switch s.op {
	case opFixed:
		return row.AppendText(buf, content), at + n
	case opDateTimeText:
		var v int64
		if v, err = row.ParseDateTime(content); err == nil {
			buf = row.AppendInt(buf, row.PackDateTime(v))
		}
	default:
		var v row.Scaled
		if v, err = s.unscaled(content); err == nil {
			buf = row.AppendScaled(buf, v)
		}
	}
	if err != nil {
		d.err = row.At(err, "", int64(i))
		return buf, avro.Failed
	}
	return buf, at + n
}

var errDecimalRange = &row.ValueError{Kind: row.KindRange, Msg: "expected a number within the column's range"}

// unscaled reads a decimal: two's complement, most significant byte first. No byte at all is 0.
func (s *step) unscaled(b []byte) (row.Scaled, error) {
	v, err := row.ScaledFromBigEndian(b)
	if err != nil {
		return v, errDecimalRange // more bytes than any column has digits
	}
	if s.scale != s.decimal.FractionDigits() {
		var text [96]byte
		return row.ParseDecimal(s.decimal, v.AppendText(text[:0], s.scale))
	}
	return s.decimal.FromUnscaled(v)
}

// array reads the elements of all blocks of an array.
func (d *decoding) array(buf, b []byte, i int, s *step) ([]byte, int) {
	start, index := -1, 0
	for {
		n, next := d.count(b, i)
		if next < 0 {
			return buf, next
		}
		if i = next; n == 0 {
			break
		}
		if start < 0 && s.packed {
			buf, start = row.BeginLength(append(buf, s.tag...))
		}
		for ; n > 0; n-- {
			if buf, i = d.element(buf, b, i, s.elem); i < 0 {
				d.err.Element(index)
				return buf, i
			}
			index++
		}
	}
	if start >= 0 {
		buf = row.EndLength(buf, start)
	}
	return buf, i
}

func (d *decoding) element(buf, b []byte, i int, s *step) ([]byte, int) {
	if s.branches != nil {
		at := i
		if s, i = s.branch(b, i); s == nil {
			return buf, d.fail(at, errBranch)
		}
	}
	if s.op == opNull {
		return buf, d.fail(i, errNullElem)
	}
	return d.value(append(buf, s.tag...), b, i, s)
}

// count reads how many elements come next. Every one takes a byte at least.
func (d *decoding) count(b []byte, i int) (n int64, next int) {
	n, _, next = avro.Count(b, i)
	if next < 0 {
		return 0, d.fail(i, errNumber)
	}
	if n > int64(len(b)-next) {
		return 0, d.fail(i, errCount)
	}
	return n, next
}

// mapping reads the entries of a map and puts them in the order of their keys. Of a key that is there twice the last one counts.
func (d *decoding) mapping(buf, b []byte, i int, s *step) ([]byte, int) {
	first := len(d.entries)
	for {
		n, next := d.count(b, i)
		if next < 0 {
			return buf, next
		}
		if i = next; n == 0 {
			break
		}
		for ; n > 0; n-- {
			if buf, i = d.entry(buf, b, i, s); i < 0 {
				return buf, i
			}
		}
	}
	buf = d.sort(buf, b, d.entries[first:])
	d.entries = d.entries[:first]
	return buf, i
}

func (d *decoding) entry(buf, b []byte, i int, s *step) ([]byte, int) {
	n, at := avro.Length(b, i)
	if at < 0 {
		d.fail(i, errLength)
		d.err.Within("key")
		return buf, avro.Failed
	}
	e := entry{key: at, keyEnd: at + n, start: len(buf)}
	if !utf8.Valid(b[at : at+n]) {
		d.fail(at, errUTF8)
		d.err.Within("key")
		return buf, avro.Failed
	}
	buf, start := row.BeginLength(append(buf, s.tag...))
	buf = row.AppendText(append(buf, s.key...), b[at:at+n])
	if buf, i = d.field(buf, b, at+n, s.elem); i < 0 {
		d.err.Within("value")
		return buf, avro.Failed
	}
	buf = row.EndLength(buf, start)
	e.end = len(buf)
	d.entries = append(d.entries, e)
	return buf, i
}

// sort puts entries, which end the row so far, in order.
func (d *decoding) sort(buf, b []byte, entries []entry) []byte {
	key := func(e *entry) []byte { return b[e.key:e.keyEnd] }
	sorted := true
	for k := 1; k < len(entries); k++ {
		if bytes.Compare(key(&entries[k-1]), key(&entries[k])) >= 0 {
			sorted = false
			break
		}
	}
	if sorted {
		return buf
	}
	start := entries[0].start
	slices.SortStableFunc(entries, func(x, y entry) int { return bytes.Compare(key(&x), key(&y)) })
	d.scratch = append(d.scratch[:0], buf[start:]...)
	buf = buf[:start]
	for k := range entries {
		e := &entries[k]
		if k+1 < len(entries) && bytes.Equal(key(e), key(&entries[k+1])) {
			continue
		}
		buf = append(buf, d.scratch[e.start-start:e.end-start]...)
	}
	return buf
}
