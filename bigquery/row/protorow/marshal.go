package protorow

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// appendMessage appends a message in wire form as the protobuf library would if it did not look at text. It is slow, and
// used for the few messages that the library refuses.
func appendMessage(b []byte, m protoreflect.Message) []byte {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsExtension():
		case fd.IsList():
			for i := range v.List().Len() {
				b = appendField(b, fd, v.List().Get(i))
			}
		case fd.IsMap():
			v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				entry := appendField(nil, fd.MapKey(), k.Value())
				entry = appendField(entry, fd.MapValue(), v)
				b = protowire.AppendBytes(protowire.AppendTag(b, fd.Number(), protowire.BytesType), entry)
				return true
			})
		default:
			b = appendField(b, fd, v)
		}
		return true
	})
	return b
}

func appendField(b []byte, fd protoreflect.FieldDescriptor, v protoreflect.Value) []byte {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		b = protowire.AppendTag(b, fd.Number(), protowire.BytesType)
		return protowire.AppendBytes(b, appendMessage(nil, v.Message()))
	case protoreflect.GroupKind:
		b = appendMessage(protowire.AppendTag(b, fd.Number(), protowire.StartGroupType), v.Message())
		return protowire.AppendTag(b, fd.Number(), protowire.EndGroupType)
	}
	_, wire, _ := scalar(fd.Kind())
	b = protowire.AppendTag(b, fd.Number(), wire)
	switch wire {
	case protowire.VarintType:
		return protowire.AppendVarint(b, varint(fd.Kind(), v))
	case protowire.Fixed32Type:
		return protowire.AppendFixed32(b, uint32(fixed(fd.Kind(), v)))
	case protowire.Fixed64Type:
		return protowire.AppendFixed64(b, fixed(fd.Kind(), v))
	}
	if fd.Kind() == protoreflect.BytesKind {
		return protowire.AppendBytes(b, v.Bytes())
	}
	return protowire.AppendString(b, v.String())
}

func varint(k protoreflect.Kind, v protoreflect.Value) uint64 {
	switch k {
	case protoreflect.BoolKind:
		return protowire.EncodeBool(v.Bool())
	case protoreflect.EnumKind:
		return uint64(v.Enum())
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		return protowire.EncodeZigZag(v.Int())
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		return v.Uint()
	}
	return uint64(v.Int())
}

func fixed(k protoreflect.Kind, v protoreflect.Value) uint64 {
	switch k {
	case protoreflect.FloatKind:
		return uint64(math.Float32bits(float32(v.Float())))
	case protoreflect.DoubleKind:
		return math.Float64bits(v.Float())
	case protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		return v.Uint()
	}
	return uint64(v.Int())
}
