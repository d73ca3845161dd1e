package decode

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/value"
)

// converter makes what feeds one value of a field into the vector of a column; nil says that the field cannot feed it.
func (c *compiler) converter(f *protoField, target *schema.Field, path string, above []*message, v vector) (put, error) {
	switch {
	case target.Type == schema.Struct:
		return c.structure(f, target, path, above, v.(*group))
	case target.Type == schema.Range:
		return rangeOf(f, target, path, v.(*group)), nil
	case f.message != nil:
		return unwrap(f.message, target, path, v), nil
	}
	return scalar(f, target, path, v), nil
}

// scalar is converter for a field that is no message and a column that is no struct.
func scalar(f *protoField, target *schema.Field, path string, v vector) put {
	switch target.Type {
	case schema.Int64:
		return putInt64(f, v.(*fixed[int64]))
	case schema.Float64:
		return putFloat64(f, v.(*fixed[float64]))
	case schema.Bool:
		return putBool(f, v.(*bools))
	case schema.String:
		return putString(f, target, path, v.(*text))
	case schema.Bytes:
		return putBytes(f, target, path, v.(*text))
	case schema.Numeric, schema.BigNumeric:
		return putDecimal(f, target, path, v)
	case schema.Date:
		return putDate(f, path, v.(*fixed[int32]))
	case schema.Time:
		return putCivil(f, path, v.(*fixed[int64]), value.PackedTime, value.Time)
	case schema.DateTime:
		return putCivil(f, path, v.(*fixed[int64]), value.PackedDateTime, value.DateTime)
	case schema.Timestamp:
		if target.Picos() {
			return putPicos(f, path, v.(*text))
		}
		return putTimestamp(f, path, v.(*fixed[int64]))
	case schema.JSON:
		return putJSON(f, path, v.(*text))
	case schema.Geography:
		return putGeography(f, path, v.(*text))
	case schema.Interval:
		return putInterval(f, path, v.(*span))
	}
	return nil
}

// wireType is how the wire carries a kind.
func wireType(k protoreflect.Kind) protowire.Type {
	switch k {
	case protoreflect.DoubleKind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return protowire.Fixed64Type
	case protoreflect.FloatKind, protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
		return protowire.Fixed32Type
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		return protowire.BytesType
	case protoreflect.GroupKind:
		return protowire.StartGroupType
	}
	return protowire.VarintType
}

// integer is how a kind of integer that fits int64 is read; nil for other kinds.
func integer(k protoreflect.Kind) func(uint64) int64 {
	switch k {
	case protoreflect.Int32Kind, protoreflect.Sfixed32Kind, protoreflect.EnumKind:
		return func(bits uint64) int64 { return int64(int32(bits)) }
	case protoreflect.Sint32Kind:
		return func(bits uint64) int64 { return int64(int32(protowire.DecodeZigZag(bits & math.MaxUint32))) }
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return func(bits uint64) int64 { return int64(uint32(bits)) }
	case protoreflect.Int64Kind, protoreflect.Sfixed64Kind:
		return func(bits uint64) int64 { return int64(bits) }
	case protoreflect.Sint64Kind:
		return protowire.DecodeZigZag
	}
	return nil
}

func unsigned(k protoreflect.Kind) bool {
	return k == protoreflect.Uint64Kind || k == protoreflect.Fixed64Kind
}

// floating is how a kind of floating point number is read; nil for other kinds.
func floating(k protoreflect.Kind) func(uint64) float64 {
	switch k {
	case protoreflect.DoubleKind:
		return math.Float64frombits
	case protoreflect.FloatKind:
		return func(bits uint64) float64 { return float64(math.Float32frombits(uint32(bits))) }
	}
	return nil
}

// isString and isText say which kinds carry text.
func isString(f *protoField) bool { return f.kind == protoreflect.StringKind }
func isText(f *protoField) bool   { return isString(f) || f.kind == protoreflect.BytesKind }

func onField(path string, format string, args ...any) error {
	return fmt.Errorf("%s on field %s.", fmt.Sprintf(format, args...), path)
}

// structure is converter for STRUCT columns.
func (c *compiler) structure(f *protoField, target *schema.Field, path string, above []*message, v *group) (put, error) {
	if f.message == nil {
		return nil, nil
	}
	n, err := c.node(f.message, target.Fields, v.members, path, above)
	if err != nil {
		return nil, err
	}
	return func(r raw) error {
		v.valid()
		return n.decode(r.data)
	}, nil
}

// newVectors are the vectors of columns.
func newVectors(fields []*schema.Field) []vector {
	out := make([]vector, len(fields))
	for i, f := range fields {
		out[i] = newVector(f)
	}
	return out
}

func newVector(f *schema.Field) vector {
	v := newElement(f)
	if f.Mode == schema.Repeated {
		return &list{element: v}
	}
	return v
}

func newElement(f *schema.Field) vector {
	switch f.Type {
	case schema.Int64, schema.Time, schema.DateTime:
		return newInt64()
	case schema.Float64:
		return newFloat64()
	case schema.Bool:
		return &bools{}
	case schema.Date:
		return newInt32()
	case schema.Timestamp:
		if f.Picos() {
			return &text{}
		}
		return newInt64()
	case schema.Numeric:
		return newDecimal128()
	case schema.BigNumeric:
		return newDecimal256()
	case schema.Interval:
		return newSpan()
	case schema.Range:
		element := &schema.Field{Type: f.RangeElement}
		return &group{members: []vector{newElement(element), newElement(element)}}
	case schema.Struct:
		return &group{members: newVectors(f.Fields)}
	}
	return &text{}
}
