package decode

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/value"
)

// wrappers are the names of messages that stand for one nullable scalar (google/protobuf/wrappers.proto).
var wrappers = []string{"DoubleValue", "FloatValue", "Int64Value", "UInt64Value", "Int32Value", "UInt32Value", "BoolValue", "StringValue", "BytesValue"}

// unwrap is the converter of a message into a column that is no struct: a wrapper, a Timestamp or a Duration.
func unwrap(m *message, target *schema.Field, path string, v vector) put {
	seconds, nanos := m.field("seconds"), m.field("nanos")
	moment := seconds != nil && nanos != nil && integer(seconds.kind) != nil && integer(nanos.kind) != nil && !seconds.repeated && !nanos.repeated
	switch {
	case moment && target.Type == schema.Timestamp:
		return putMoment(seconds, nanos, path, v)
	case moment && target.Type == schema.Interval && strings.HasSuffix(m.name, "Duration"):
		return putDuration(seconds, nanos, path, v.(*span))
	}
	inner := m.field("value")
	if inner == nil || inner.repeated || inner.message != nil || !isWrapper(m.name) {
		return nil
	}
	p := scalar(inner, target, path, v)
	if p == nil {
		return nil
	}
	return func(r raw) error {
		// An unset value is the wrapper of zero: proto3 does not write zeros.
		value, err := pick(r.data, inner)
		if err != nil {
			return err
		}
		return p(value[0])
	}
}

func isWrapper(name string) bool {
	for _, w := range wrappers {
		if strings.HasSuffix(name, w) {
			return true
		}
	}
	return false
}

// pick reads the last values of a few singular fields of a message; a field that is not there is zero.
func pick(b []byte, fields ...*protoField) (out [2]raw, err error) {
	out, _, err = pickSet(b, fields...)
	return out, err
}

// pickSet is pick, and says which fields were there.
func pickSet(b []byte, fields ...*protoField) (out [2]raw, set [2]bool, err error) {
	for len(b) > 0 {
		number, wire, size := consumeTag(b)
		if size < 0 {
			return out, set, errWire
		}
		b = b[size:]
		value, size := consume(number, wire, b)
		if wire == protowire.EndGroupType || size < 0 {
			return out, set, errWire
		}
		b = b[size:]
		for i, f := range fields {
			if f != nil && f.number == number && wireType(f.kind) == wire {
				out[i], set[i] = value, true
			}
		}
	}
	return out, set, nil
}

// putMoment reads seconds and nanoseconds since the epoch; nanoseconds are cut off to microseconds.
func putMoment(seconds, nanos *protoField, path string, v vector) put {
	readSeconds, readNanos := integer(seconds.kind), integer(nanos.kind)
	moment := func(r raw) (micros, rest int64, err error) {
		parts, err := pick(r.data, seconds, nanos)
		if err != nil {
			return 0, 0, err
		}
		s, n := readSeconds(parts[0].bits), readNanos(parts[1].bits)
		if s < value.MinTimestamp/1_000_000 || s > value.MaxTimestamp/1_000_000 || n < 0 || n > 999_999_999 {
			return 0, 0, onField(path, "Timestamp field value is out of range: %d seconds and %d nanoseconds", s, n)
		}
		return s*1_000_000 + n/1000, n % 1000, nil
	}
	if picos, ok := v.(*text); ok {
		return func(r raw) error {
			micros, rest, err := moment(r)
			if err == nil {
				picos.append([]byte(value.FormatPicos(micros, int32(rest*1000))))
			}
			return err
		}
	}
	return func(r raw) error {
		micros, _, err := moment(r)
		if err == nil {
			v.(*fixed[int64]).append(micros)
		}
		return err
	}
}

func putDuration(seconds, nanos *protoField, path string, v *span) put {
	readSeconds, readNanos := integer(seconds.kind), integer(nanos.kind)
	return func(r raw) error {
		parts, err := pick(r.data, seconds, nanos)
		if err != nil {
			return err
		}
		s, n := readSeconds(parts[0].bits), readNanos(parts[1].bits)
		// 2⁴⁰ seconds are far outside the range, and their microseconds still fit.
		if s > 1<<40 || s < -1<<40 || n > 999_999_999 || n < -999_999_999 {
			return onField(path, "Interval value is out of range: %d seconds", s)
		}
		span := value.Span{Micros: s*1_000_000 + n/1000}
		if err := span.Check(); err != nil {
			return onField(path, "%v", err)
		}
		v.append(span)
		return nil
	}
}

// rangeOf is the converter of a message with start and end into a RANGE column.
func rangeOf(f *protoField, target *schema.Field, path string, v *group) put {
	if f.message == nil {
		return nil
	}
	start, end := f.message.field("start"), f.message.field("end")
	element := &schema.Field{Name: target.Name, Type: target.RangeElement}
	from, to := v.members[0], v.members[1]
	putFrom, okFrom := bound(start, element, path+".start", from)
	putTo, okTo := bound(end, element, path+".end", to)
	others := slices.ContainsFunc(f.message.fields, func(f *protoField) bool { return f != start && f != end })
	if !okFrom || !okTo || others {
		return nil
	}
	return func(r raw) error {
		parts, set, err := pickSet(r.data, start, end)
		if err != nil {
			return err
		}
		if err := putBound(from, putFrom, parts[0], set[0]); err != nil {
			return err
		}
		if err := putBound(to, putTo, parts[1], set[1]); err != nil {
			return err
		}
		if set[0] && set[1] && !before(from, to) {
			return onField(path, "Range start must be less than range end")
		}
		v.valid()
		return nil
	}
}

// bound is the converter of one end of a range, and whether there can be one; a descriptor may leave either end out.
func bound(f *protoField, element *schema.Field, path string, v vector) (put, bool) {
	switch {
	case f == nil:
		return nil, true
	case f.repeated:
		return nil, false
	}
	p := scalar(f, element, path, v)
	if f.message != nil {
		p = unwrap(f.message, element, path, v)
	}
	return p, p != nil
}

func putBound(v vector, p put, r raw, set bool) error {
	if !set || p == nil {
		v.null()
		return nil
	}
	return p(r)
}

// before compares the last values of two vectors of one type of time.
func before(a, b vector) bool {
	switch a := a.(type) {
	case *fixed[int32]:
		b := b.(*fixed[int32])
		return a.values[len(a.values)-1] < b.values[len(b.values)-1]
	case *fixed[int64]:
		b := b.(*fixed[int64])
		return a.values[len(a.values)-1] < b.values[len(b.values)-1]
	}
	return true
}
