package protorow_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/millrace-dev/millrace/bigquery/row/protorow"
	"github.com/millrace-dev/millrace/bigquery/row/protorow/internal/testpb"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func order() *testpb.Order {
	return &testpb.Order{Id: 123456789, Customer: "ada.lovelace@example.com", Product: "tea, green, 250 g", Quantity: 3, Price: 12.5,
		Gift: true, Placed: &timestamppb.Timestamp{Seconds: 1_785_027_723, Nanos: 456_789_000}, Color: testpb.Color_GREEN}
}

// BenchmarkAppendRow makes rows of eight fields: of a generated message, of its wire form, and, to compare, by way of a
// dynamic message of the row's descriptor. The first has to reach 1.5 million rows a second.
func BenchmarkAppendRow(b *testing.B) {
	rec := order()
	wire, err := proto.Marshal(rec)
	if err != nil {
		b.Fatal(err)
	}
	generated, err := protorow.New[*testpb.Order](protorow.Options{})
	if err != nil {
		b.Fatal(err)
	}
	raw, err := protorow.Wire(rec.ProtoReflect().Descriptor(), func(rec []byte) []byte { return rec }, protorow.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("generated", func(b *testing.B) {
		run(b, func(buf []byte) ([]byte, error) { return generated.AppendRow(buf, table.Destination{}, rec) })
	})
	b.Run("wire", func(b *testing.B) {
		run(b, func(buf []byte) ([]byte, error) { return raw.AppendRow(buf, table.Destination{}, wire) })
	})
	b.Run("dynamic", func(b *testing.B) {
		d, err := generated.Descriptor(table.Destination{})
		if err != nil {
			b.Fatal(err)
		}
		to := dynamicRow(b, d)
		run(b, func(buf []byte) ([]byte, error) { return to(buf, rec) })
	})
}

func run(b *testing.B, appendRow func([]byte) ([]byte, error)) {
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		var err error
		if buf, err = appendRow(buf[:0]); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(buf)))
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// dynamicRow is the obvious alternative: a dynamic message of the row's descriptor, its fields set by reflection.
func dynamicRow(b *testing.B, d *descriptorpb.DescriptorProto) func([]byte, *testpb.Order) ([]byte, error) {
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{Name: proto.String("row.proto"), Syntax: proto.String("proto2"),
		MessageType: []*descriptorpb.DescriptorProto{d}}, nil)
	if err != nil {
		b.Fatal(err)
	}
	md := file.Messages().Get(0)
	return func(buf []byte, o *testpb.Order) ([]byte, error) {
		m := dynamicpb.NewMessage(md)
		o.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			to := md.Fields().ByName(fd.Name())
			switch x := v.Interface().(type) {
			case protoreflect.EnumNumber:
				v = protoreflect.ValueOfString(string(fd.Enum().Values().ByNumber(x).Name()))
			case protoreflect.Message:
				v = protoreflect.ValueOfInt64(x.Interface().(*timestamppb.Timestamp).AsTime().UnixMicro())
			case int32:
				v = protoreflect.ValueOfInt64(int64(x))
			}
			m.Set(to, v)
			return true
		})
		return proto.MarshalOptions{}.MarshalAppend(buf, m)
	}
}

// BenchmarkStruct makes rows of a JSON column of five members, of which one is an object.
func BenchmarkStruct(b *testing.B) {
	payload, err := structpb.NewStruct(map[string]any{"user": "ada.lovelace@example.com", "count": 12.5, "ok": true, "none": nil,
		"where": map[string]any{"path": "/orders/17", "status": 200}})
	if err != nil {
		b.Fatal(err)
	}
	wire, err := proto.Marshal(&testpb.Modern{WStruct: payload})
	if err != nil {
		b.Fatal(err)
	}
	rows, err := protorow.Wire((&testpb.Modern{}).ProtoReflect().Descriptor(), func(rec []byte) []byte { return rec }, protorow.Options{})
	if err != nil {
		b.Fatal(err)
	}
	run(b, func(buf []byte) ([]byte, error) { return rows.AppendRow(buf, table.Destination{}, wire) })
}
