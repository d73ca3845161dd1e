package decode

import (
	"encoding/binary"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/millrace-dev/millrace/localbq/internal/arrowipc"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/value"
)

// arrowScalar is what feeds a column that is no struct from an Arrow field that is none; nil says that it cannot.
func arrowScalar(f *arrowipc.Field, target *schema.Field, path string, v vector) func(*arrowipc.Column, int) error {
	switch f.Kind {
	case arrowipc.Decimal:
		return arrowDecimal(f, target, path, v)
	case arrowipc.Date:
		if target.Type != schema.Date {
			return nil
		}
	case arrowipc.Time:
		if target.Type != schema.Time {
			return nil
		}
		return arrowCivil(path, "Time", v.(*fixed[int64]), 0, value.MaxTime)
	case arrowipc.Timestamp:
		switch {
		case target.Type == schema.DateTime && f.Zone == "":
			return arrowCivil(path, "Datetime", v.(*fixed[int64]), value.MinTimestamp, value.MaxTimestamp)
		case target.Type != schema.Timestamp || f.Zone != "UTC":
			return nil
		}
	case arrowipc.YearMonth, arrowipc.DayTime, arrowipc.MonthDayNano:
		if target.Type != schema.Interval {
			return nil
		}
		return arrowInterval(f.Kind, path, v.(*span))
	}
	return arrowAsProto(f, target, path, v)
}

// arrowAsProto feeds a column as a field of the like kind of protocol buffers would.
func arrowAsProto(f *arrowipc.Field, target *schema.Field, path string, v vector) func(*arrowipc.Column, int) error {
	kind := likeKind(f)
	if kind == 0 {
		return nil
	}
	p := scalar(&protoField{kind: kind}, target, path, v)
	switch {
	case p == nil:
		return nil
	case kind == protoreflect.StringKind || kind == protoreflect.BytesKind:
		return func(c *arrowipc.Column, i int) error { return p(raw{data: c.Bytes(i)}) }
	}
	return func(c *arrowipc.Column, i int) error { return p(raw{bits: c.Bits(i)}) }
}

// likeKind is the kind of protocol buffers that carries what an Arrow type does; 0 for none. The integers that protocol
// buffers lack stand for one that no column of time takes.
func likeKind(f *arrowipc.Field) protoreflect.Kind {
	switch f.Kind {
	case arrowipc.Int:
		return likeInt(f)
	case arrowipc.Float:
		if f.Bits == 32 {
			return protoreflect.FloatKind
		}
		return protoreflect.DoubleKind
	case arrowipc.Bool:
		return protoreflect.BoolKind
	case arrowipc.Utf8:
		return protoreflect.StringKind
	case arrowipc.Binary:
		return protoreflect.BytesKind
	case arrowipc.Date:
		return protoreflect.Int32Kind
	case arrowipc.Timestamp:
		return protoreflect.Int64Kind
	}
	return 0
}

func likeInt(f *arrowipc.Field) protoreflect.Kind {
	switch {
	case f.Bits < 32:
		return protoreflect.Sfixed32Kind
	case f.Bits == 32 && f.Signed:
		return protoreflect.Int32Kind
	case f.Bits == 32:
		return protoreflect.Uint32Kind
	case f.Signed:
		return protoreflect.Int64Kind
	}
	return protoreflect.Uint64Kind
}

// arrowCivil is for TIME and DATETIME in microseconds.
func arrowCivil(path, what string, v *fixed[int64], low, high int64) func(*arrowipc.Column, int) error {
	return func(c *arrowipc.Column, i int) error {
		micros := int64(c.Bits(i))
		if micros < low || micros > high {
			return onField(path, "%s field value is out of range: %d", what, micros)
		}
		v.append(micros)
		return nil
	}
}

// arrowDecimal takes 128 bits for NUMERIC and 256 for BIGNUMERIC, of a precision and scale that the type can hold.
func arrowDecimal(f *arrowipc.Field, target *schema.Field, path string, v vector) func(*arrowipc.Column, int) error {
	d := &value.Decimal{
		Big: target.Type == schema.BigNumeric, Precision: target.Precision, Scale: target.Scale,
		HalfEven: target.RoundingMode == "ROUND_HALF_EVEN",
	}
	fits := func(bits int, scale, whole int32) bool {
		return f.Bits == bits && f.Scale >= 0 && f.Scale <= scale && f.Precision > 0 && f.Precision-f.Scale <= whole
	}
	var store func(*arrowipc.Column, int) error
	switch {
	case target.Type == schema.Numeric && fits(128, 9, 29):
		store = func(c *arrowipc.Column, i int) error {
			n, err := d.Scaled(c.Unscaled(i), int64(f.Scale))
			if err == nil {
				v.(*fixed[decimal128.Num]).append(value.Num128(n))
			}
			return err
		}
	case target.Type == schema.BigNumeric && fits(256, 38, 39):
		store = func(c *arrowipc.Column, i int) error {
			n, err := d.Scaled(c.Unscaled(i), int64(f.Scale))
			if err == nil {
				v.(*fixed[decimal256.Num]).append(value.Num256(n))
			}
			return err
		}
	default:
		return nil
	}
	return func(c *arrowipc.Column, i int) error {
		if err := store(c, i); err != nil {
			return onField(path, "%v", err)
		}
		return nil
	}
}

// arrowInterval takes the three units of Arrow's intervals; nanoseconds are cut off to microseconds.
func arrowInterval(kind arrowipc.Kind, path string, v *span) func(*arrowipc.Column, int) error {
	return func(c *arrowipc.Column, i int) error {
		b := c.Raw(i)
		part := func(at int) int32 { return int32(binary.LittleEndian.Uint32(b[at:])) }
		var s value.Span
		switch kind {
		case arrowipc.YearMonth:
			s.Months = part(0)
		case arrowipc.DayTime:
			s.Days, s.Micros = part(0), int64(part(4))*1000
		default:
			s.Months, s.Days, s.Micros = part(0), part(4), int64(binary.LittleEndian.Uint64(b[8:]))/1000
		}
		if err := s.Check(); err != nil {
			return onField(path, "%v", err)
		}
		v.append(s)
		return nil
	}
}

// arrowRange takes a struct of start and end, of the very type of the range's elements; NULL is unbounded.
func arrowRange(f *arrowipc.Field, target *schema.Field, path string, v *group) func(*arrowipc.Column, int) error {
	if len(f.Fields) != 2 {
		return nil
	}
	var puts [2]func(*arrowipc.Column, int) error
	var at [2]int
	for i, m := range f.Fields {
		end := 0
		switch {
		case strings.EqualFold(m.Name, "end"):
			end = 1
		case !strings.EqualFold(m.Name, "start"):
			return nil
		}
		natural := m.Kind == arrowipc.Timestamp || m.Kind == arrowipc.Date
		if puts[end] != nil || !natural {
			return nil
		}
		at[end] = i
		puts[end] = arrowScalar(m, &schema.Field{Name: target.Name, Type: target.RangeElement}, path+"."+strings.ToLower(m.Name), v.members[end])
	}
	if puts[0] == nil || puts[1] == nil {
		return nil
	}
	return func(c *arrowipc.Column, i int) error {
		bounded := 0
		for end, put := range puts {
			if m := c.Fields[at[end]]; m.Null(i) {
				v.members[end].null()
			} else if err := put(m, i); err != nil {
				return err
			} else {
				bounded++
			}
		}
		if bounded == 2 && !before(v.members[0], v.members[1]) {
			return onField(path, "Range start must be less than range end")
		}
		v.valid()
		return nil
	}
}
