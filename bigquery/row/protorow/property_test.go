package protorow_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/protorow"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
)

// typeMaker makes message types at random.
type typeMaker struct {
	*rapid.T
	names    []string // of protobuf's own messages that may occur
	file     *descriptorpb.FileDescriptorProto
	messages int
}

// wellKnownNames ends with the messages that become JSON.
var wellKnownNames = []string{"Timestamp", "Duration", "FieldMask", "Any", "Int32Value", "UInt32Value", "Int64Value", "UInt64Value",
	"FloatValue", "DoubleValue", "BoolValue", "StringValue", "BytesValue", "Struct", "Value", "ListValue"}

// randomType is a message type of some syntax, up to five STRUCTs deep, with protobuf's own messages of these names.
func randomType(t *rapid.T, names []string) protoreflect.MessageDescriptor {
	syntax := rapid.SampledFrom([]string{"proto2", "proto3"}).Draw(t, "syntax")
	m := typeMaker{T: t, names: names, file: &descriptorpb.FileDescriptorProto{Name: proto.String("m.proto"), Package: proto.String("t"), Syntax: &syntax,
		Dependency: []string{"google/protobuf/timestamp.proto", "google/protobuf/duration.proto", "google/protobuf/field_mask.proto",
			"google/protobuf/struct.proto", "google/protobuf/any.proto", "google/protobuf/wrappers.proto"},
		EnumType: []*descriptorpb.EnumDescriptorProto{{Name: proto.String("Color"), Value: []*descriptorpb.EnumValueDescriptorProto{
			{Name: proto.String("ZERO"), Number: proto.Int32(0)}, {Name: proto.String("RED"), Number: proto.Int32(1)}, {Name: proto.String("FAR"), Number: proto.Int32(-1 << 31)}}}}}}
	name := m.message(0)
	file, err := protodesc.NewFile(m.file, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	return file.Messages().ByName(protoreflect.Name(name))
}

func (m *typeMaker) message(depth int) string {
	m.messages++
	d := &descriptorpb.DescriptorProto{Name: proto.String(fmt.Sprintf("M%d", m.messages))}
	m.file.MessageType = append(m.file.MessageType, d)
	count := rapid.IntRange(1, 5).Draw(m.T, "fields")
	numbers := rapid.SliceOfNDistinct(rapid.OneOf(rapid.Int32Range(1, 40), rapid.Int32Range(100000, 100100)), count, count, rapid.ID[int32]).Draw(m.T, "numbers")
	inOneof := rapid.Bool().Draw(m.T, "oneof")
	for i, number := range numbers {
		f := &descriptorpb.FieldDescriptorProto{Name: proto.String(fmt.Sprintf("f%dX", i)), Number: proto.Int32(number)}
		m.field(d, f, depth)
		inOneof = inOneof && (f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL || len(d.OneofDecl) == 0) // members stand together
		if inOneof && f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL {
			f.OneofIndex = proto.Int32(0)
			if len(d.OneofDecl) == 0 {
				d.OneofDecl = []*descriptorpb.OneofDescriptorProto{{Name: proto.String("choice")}}
			}
		}
		d.Field = append(d.Field, f)
	}
	return d.GetName()
}

func (m *typeMaker) field(in *descriptorpb.DescriptorProto, f *descriptorpb.FieldDescriptorProto, depth int) {
	label := rapid.SampledFrom([]descriptorpb.FieldDescriptorProto_Label{descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL, descriptorpb.FieldDescriptorProto_LABEL_REPEATED}).Draw(m.T, "label")
	f.Label = &label
	kind := rapid.IntRange(1, 21).Draw(m.T, "kind")
	switch {
	case kind == 21:
		m.mapField(in, f, depth)
		return
	case kind > 18:
		f.Type, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), proto.String(".google.protobuf."+rapid.SampledFrom(m.names).Draw(m.T, "well-known"))
		return
	}
	t := descriptorpb.FieldDescriptorProto_Type(kind)
	if t == descriptorpb.FieldDescriptorProto_TYPE_GROUP {
		t = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	}
	f.Type = &t
	switch {
	case t == descriptorpb.FieldDescriptorProto_TYPE_ENUM:
		f.TypeName = proto.String(".t.Color")
	case t == descriptorpb.FieldDescriptorProto_TYPE_MESSAGE && depth >= 5:
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_INT64.Enum()
	case t == descriptorpb.FieldDescriptorProto_TYPE_MESSAGE:
		f.TypeName = proto.String(".t." + m.message(depth+1))
	case label == descriptorpb.FieldDescriptorProto_LABEL_REPEATED && t != descriptorpb.FieldDescriptorProto_TYPE_STRING && t != descriptorpb.FieldDescriptorProto_TYPE_BYTES:
		f.Options = &descriptorpb.FieldOptions{Packed: proto.Bool(rapid.Bool().Draw(m.T, "packed"))}
	}
}

var keyTypes = []descriptorpb.FieldDescriptorProto_Type{descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_BOOL,
	descriptorpb.FieldDescriptorProto_TYPE_SINT32, descriptorpb.FieldDescriptorProto_TYPE_UINT64, descriptorpb.FieldDescriptorProto_TYPE_FIXED32, descriptorpb.FieldDescriptorProto_TYPE_SFIXED64}

func (m *typeMaker) mapField(in *descriptorpb.DescriptorProto, f *descriptorpb.FieldDescriptorProto, depth int) {
	optional := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
	key := &descriptorpb.FieldDescriptorProto{Name: proto.String("key"), Number: proto.Int32(1), Label: &optional, Type: rapid.SampledFrom(keyTypes).Draw(m.T, "key").Enum()}
	value := &descriptorpb.FieldDescriptorProto{Name: proto.String("value"), Number: proto.Int32(2)}
	for value.Type == nil || value.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REPEATED {
		value.Type, value.TypeName, value.Options = nil, nil, nil
		m.field(&descriptorpb.DescriptorProto{}, value, depth+1)
	}
	// The entry of the field f1X is called F1XEntry.
	entry := &descriptorpb.DescriptorProto{Name: proto.String("F" + f.GetName()[1:] + "Entry"), Field: []*descriptorpb.FieldDescriptorProto{key, value},
		Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)}}
	in.NestedType = append(in.NestedType, entry)
	f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	f.Type, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), proto.String(".t."+in.GetName()+"."+entry.GetName())
}

// randomMessage fills a message at random.
func randomMessage(t *rapid.T, m protoreflect.Message, depth int) {
	fds := m.Descriptor().Fields()
	for i := range fds.Len() {
		fd := fds.Get(i)
		n := rapid.IntRange(0, 3).Draw(t, "n")
		if depth > 6 {
			n = 0
		}
		switch {
		case n == 0:
		case fd.IsMap():
			for range n {
				value := m.NewField(fd).Map().NewValue()
				if fd.MapValue().Message() != nil {
					randomMessage(t, value.Message(), depth+1)
				} else {
					value = randomScalar(t, fd.MapValue())
				}
				m.Mutable(fd).Map().Set(randomScalar(t, fd.MapKey()).MapKey(), value)
			}
		case fd.IsList():
			for range n {
				if fd.Message() != nil {
					randomMessage(t, m.Mutable(fd).List().AppendMutable().Message(), depth+1)
				} else {
					m.Mutable(fd).List().Append(randomScalar(t, fd))
				}
			}
		case fd.Message() != nil:
			randomMessage(t, m.Mutable(fd).Message(), depth+1)
		default:
			m.Set(fd, randomScalar(t, fd))
		}
	}
}

func randomScalar(t *rapid.T, fd protoreflect.FieldDescriptor) protoreflect.Value {
	n := rapid.OneOf(rapid.Int64Range(-3, 3), rapid.Int64()).Draw(t, "number")
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n&1 == 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(n))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(n)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(n) & rapid.SampledFrom([]uint64{math.MaxInt64, math.MaxInt64, math.MaxUint64}).Draw(t, "mask"))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(rapid.Float32().Draw(t, "float"))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(rapid.Float64().Draw(t, "double"))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "bytes"))
	}
	return protoreflect.ValueOfString(rapid.StringN(0, 20, -1).Draw(t, "text"))
}

// TestRandomMessages compares rows of random messages of random types with what the rules, written once more, say of them.
// The rows are read by package row, and by the protobuf library from their descriptor.
func TestRandomMessages(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		md := randomType(r, wellKnownNames)
		o := protorow.Options{DeriveRequired: rapid.Bool().Draw(r, "required")}
		s, err := protorow.Wire(md, func(b []byte) []byte { return b }, o)
		if err != nil {
			r.Fatal(err)
		}
		// Two messages behind each other are one: fields of the second replace or join those of the first.
		var wire []byte
		for range rapid.IntRange(1, 2).Draw(r, "pieces") {
			m := dynamicpb.NewMessage(md)
			randomMessage(r, m, 0)
			if wire, err = (proto.MarshalOptions{}).MarshalAppend(wire, m); err != nil {
				r.Fatal(err)
			}
		}
		m := dynamicpb.NewMessage(md)
		if err := (proto.UnmarshalOptions{Resolver: new(protoregistry.Types)}).Unmarshal(wire, m); err != nil {
			r.Fatal(err)
		}
		want := expectedRow(m)
		got, err := s.AppendRow(nil, nowhere, wire)
		if err != nil {
			if kind, _, _ := strings.Cut(faultsOf(err), " "); kind != want {
				r.Fatalf("%v, want %s", err, want)
			}
			return
		}
		schema, err := s.Schema(nowhere)
		if err != nil {
			r.Fatal(err)
		}
		d, err := s.Descriptor(nowhere)
		if err != nil {
			r.Fatal(err)
		}
		if text := dynamicallyDecoded(t, d, schema, got); text != want {
			r.Fatalf("the row is\n%s, want\n%s", text, want)
		}
		decoded(t, schema, got)
	})
}

// TestDamagedMessages: a message in which bytes were changed, cut out or put in is refused, with the field where the damage is unless
// it is in none of the message, or the protobuf library takes it too and reads the same. What no reader of protobuf can tell is a
// change that leaves a message of the type: another value, an unknown field, and a field that is gone.
func TestDamagedMessages(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		md := randomType(r, wellKnownNames)
		s, err := protorow.Wire(md, func(b []byte) []byte { return b }, protorow.Options{})
		if err != nil {
			r.Fatal(err)
		}
		whole := dynamicpb.NewMessage(md)
		randomMessage(r, whole, 0)
		good, err := proto.Marshal(whole)
		if err != nil {
			r.Fatal(err)
		}
		if len(good) == 0 {
			return
		}
		schema, err1 := s.Schema(nowhere)
		d, err2 := s.Descriptor(nowhere)
		if err := errors.Join(err1, err2); err != nil {
			r.Fatal(err)
		}
		for range 10 {
			bad, _ := rowtest.Damaged(r, good)
			m := dynamicpb.NewMessage(md)
			libraryErr := libraryReads(bad, m)
			got, err := s.AppendRow(nil, nowhere, bad)
			if errors.Is(libraryErr, errPanic) {
				continue
			}
			if err != nil {
				e, ok := errors.AsType[*row.Error](err)
				if !ok || e.Path == "" && libraryErr == nil {
					r.Fatalf("%x: %v, want a field", bad, err)
				}
				if libraryErr == nil && !strings.HasPrefix(expectedRow(m), "R-") {
					r.Fatalf("%x: %v, and the protobuf library takes it", bad, err)
				}
				continue
			}
			if libraryErr != nil {
				r.Fatalf("%x is taken, and the protobuf library says %v", bad, libraryErr)
			}
			if text, want := dynamicallyDecoded(t, d, schema, got), expectedRow(m); text != want {
				r.Fatalf("%x: the row is\n%s, want\n%s", bad, text, want)
			}
		}
	})
}

var errPanic = errors.New("panic")

// libraryReads reads a message by the protobuf library, which panics at keys of maps that are there twice, the second time as another
// type.
func libraryReads(data []byte, m proto.Message) (err error) {
	defer func() {
		if recover() != nil {
			err = errPanic
		}
	}()
	return proto.UnmarshalOptions{Resolver: new(protoregistry.Types), AllowPartial: true}.Unmarshal(data, m)
}
