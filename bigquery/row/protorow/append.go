package protorow

import (
	"math"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/millrace-dev/millrace/bigquery/row"
)

var (
	errRequired = &row.ValueError{Kind: row.KindRequired, Msg: "no value, expected one: the column is REQUIRED"}
	errUnsigned = &row.ValueError{Kind: row.KindRange, Msg: "expected a number up to 9223372036854775807"}
	errUTF8     = &row.ValueError{Kind: row.KindText, Msg: "the text is not valid UTF-8"}
	errDuration = &row.ValueError{Kind: row.KindRange,
		Msg: "expected seconds up to 315576000000 and nanos up to 999999999, in both directions and of one sign"}
	errTimestamp = &row.ValueError{Kind: row.KindRange,
		Msg: "expected an instant in the years 1 to 9999, UTC, and nanos from 0 to 999999999"}
)

// malformed is the error of bytes that are no message.
func malformed(err error) *row.Error {
	return &row.Error{Kind: row.KindType, Offset: -1, Msg: "the bytes are no protobuf message: " + err.Error()}
}

// message appends the columns of a message.
func (s *scratch) message(buf []byte, m *message, data []byte) ([]byte, *row.Error) {
	base := s.push(m)
	if err := s.scan(m, data, base); err != nil {
		return buf, malformed(err)
	}
	for i := range m.columns {
		c := &m.columns[i]
		sl := s.slots[base+i] // its place moves when members need more
		var e *row.Error
		switch {
		case sl.seen && c.list:
			buf, e = s.list(buf, c, sl.data)
		case sl.seen || c.asEmpty:
			if c.dropText && len(sl.data) == 0 {
				continue
			}
			buf, e = s.value(append(buf, c.tag...), c, sl.num, sl.data)
		case c.required:
			e = row.At(errRequired, "", -1)
		default:
			buf = append(buf, c.absent...)
		}
		if e != nil {
			return buf, e.Within(c.name)
		}
	}
	s.pop(base)
	return buf, nil
}

// list appends the elements of a repeated field, which are somewhere in data.
func (s *scratch) list(buf []byte, c *column, data []byte) ([]byte, *row.Error) {
	if c.op == opMap {
		return s.entryList(buf, c, data)
	}
	var start, count int
	if c.packed {
		buf, start = row.BeginLength(append(buf, c.tag...))
	}
	var e *row.Error
	for len(data) > 0 {
		number, typ, n := tag(data)
		num, content, size := value(data[n:], number, typ)
		data = data[n+size:]
		switch {
		case number != uint64(c.number):
		case typ == c.wire:
			if buf, e = s.element(buf, c, num, content, count); e != nil {
				return buf, e
			}
			count++
		case typ == protowire.BytesType && c.inPacked:
			if buf, count, e = s.packedElements(buf, c, content, count); e != nil {
				return buf, e
			}
		}
	}
	if c.packed {
		buf = row.EndLength(buf, start)
	}
	return buf, nil
}

func (s *scratch) element(buf []byte, c *column, num uint64, content []byte, i int) ([]byte, *row.Error) {
	if !c.packed {
		buf = append(buf, c.tag...)
	}
	buf, e := s.value(buf, c, num, content)
	if e != nil {
		e = e.Element(i)
	}
	return buf, e
}

func (s *scratch) packedElements(buf []byte, c *column, content []byte, count int) ([]byte, int, *row.Error) {
	for len(content) > 0 {
		num, _, n := value(content, uint64(c.number), c.wire)
		if n < 0 {
			return buf, count, malformed(errCut).Element(count)
		}
		content = content[n:]
		var e *row.Error
		if buf, e = s.element(buf, c, num, nil, count); e != nil {
			return buf, count, e
		}
		count++
	}
	return buf, count, nil
}

// value appends one value behind its tag.
func (s *scratch) value(buf []byte, c *column, num uint64, data []byte) ([]byte, *row.Error) {
	switch c.op {
	case opString:
		if !utf8.Valid(data) {
			return buf, row.At(errUTF8, "", -1)
		}
		return row.AppendText(buf, data), nil
	case opBytes:
		return row.AppendText(buf, data), nil
	case opDouble:
		return row.AppendFloat(buf, math.Float64frombits(num)), nil
	case opFloat:
		return row.AppendFloat(buf, float64(math.Float32frombits(uint32(num)))), nil
	case opUint64:
		if num > math.MaxInt64 {
			return buf, row.At(errUnsigned, "", -1)
		}
		return row.AppendInt(buf, int64(num)), nil
	case opBool:
		return row.AppendBool(buf, num != 0), nil
	case opEnum:
		return c.enum.append(buf, int32(num)), nil
	case opStruct:
		buf, start := row.BeginLength(buf)
		buf, e := s.message(buf, c.members, data)
		if e != nil {
			return buf, e
		}
		return row.EndLength(buf, start), nil
	case opJSON:
		return c.print.append(buf, data)
	case opStructJSON, opValueJSON, opListJSON:
		return s.json(buf, c.op, data)
	case opTimestamp, opDuration, opFieldMask, opWrapper:
		return s.wellKnown(buf, c, data)
	}
	return row.AppendInt(buf, c.integer(num)), nil
}

// integer is a signed or unsigned number as the wire has it.
func (c *column) integer(num uint64) int64 {
	switch c.op {
	case opInt32:
		return int64(int32(num))
	case opSint32:
		return int64(int32(protowire.DecodeZigZag(num & math.MaxUint32)))
	case opSint64:
		return protowire.DecodeZigZag(num)
	case opUint32:
		return int64(uint32(num))
	}
	return int64(num)
}

func (e *enum) append(buf []byte, n int32) []byte {
	if name := e.name(n); name != "" {
		return row.AppendText(buf, name)
	}
	buf, start := row.BeginLength(buf)
	buf = append(buf, "UNKNOWN_ENUM_VALUE_"...)
	buf = append(buf, e.short...)
	buf = append(buf, '_')
	return row.EndLength(strconv.AppendInt(buf, int64(n), 10), start)
}

// wellKnown appends the value that a message of protobuf's own stands for.
func (s *scratch) wellKnown(buf []byte, c *column, data []byte) ([]byte, *row.Error) {
	base := s.push(c.members)
	if err := s.scan(c.members, data, base); err != nil {
		return buf, malformed(err)
	}
	fields := c.members.columns
	first := s.slots[base]
	var e *row.Error
	switch c.op {
	case opWrapper:
		buf, e = s.value(buf, &fields[0], first.num, first.data)
	case opFieldMask:
		buf, e = appendPaths(buf, &fields[0], first.data)
	default:
		seconds, nanos := fields[0].integer(first.num), fields[1].integer(s.slots[base+1].num)
		convert := timestamp
		if c.op == opDuration {
			convert = duration
		}
		micros, err := convert(seconds, nanos)
		if err != nil {
			return buf, row.At(err, "", -1)
		}
		buf = row.AppendInt(buf, micros)
	}
	s.pop(base)
	return buf, e
}

const nanosPerSecond = 1_000_000_000

// timestamp is an instant in microseconds, cut towards the past.
func timestamp(seconds, nanos int64) (int64, error) {
	if nanos < 0 || nanos >= nanosPerSecond || seconds < row.MinMicros/1_000_000 || seconds > row.MaxMicros/1_000_000 {
		return 0, errTimestamp
	}
	return seconds*1_000_000 + nanos/1000, nil
}

// duration is a duration in microseconds, cut towards zero (duration.proto has the bounds).
func duration(seconds, nanos int64) (int64, error) {
	const most = 315_576_000_000
	if seconds < -most || seconds > most || nanos <= -nanosPerSecond || nanos >= nanosPerSecond ||
		seconds > 0 && nanos < 0 || seconds < 0 && nanos > 0 {
		return 0, errDuration
	}
	return seconds*1_000_000 + nanos/1000, nil
}

// appendPaths appends the paths of a FieldMask, with commas. Empty ones are left out.
func appendPaths(buf []byte, c *column, data []byte) ([]byte, *row.Error) {
	buf, start := row.BeginLength(buf)
	for len(data) > 0 {
		number, typ, n := tag(data)
		_, path, size := value(data[n:], number, typ)
		data = data[n+size:]
		if number != uint64(c.number) || typ != c.wire || len(path) == 0 {
			continue
		}
		if !utf8.Valid(path) {
			return buf, row.At(errUTF8, "", -1)
		}
		if len(buf) > start {
			buf = append(buf, ',')
		}
		buf = append(buf, path...)
	}
	return row.EndLength(buf, start), nil
}
