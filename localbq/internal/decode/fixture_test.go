package decode

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// field is an optional field of a scalar kind; its number is its place in the message.
func field(name, kind string) *descriptorpb.FieldDescriptorProto {
	t, ok := descriptorpb.FieldDescriptorProto_Type_value["TYPE_"+strings.ToUpper(kind)]
	if !ok {
		panic("no kind " + kind)
	}
	return &descriptorpb.FieldDescriptorProto{
		Name: &name, Type: new(descriptorpb.FieldDescriptorProto_Type(t)), Label: new(descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL),
	}
}

func repeated(f *descriptorpb.FieldDescriptorProto) *descriptorpb.FieldDescriptorProto {
	f.Label = new(descriptorpb.FieldDescriptorProto_LABEL_REPEATED)
	return f
}

func packed(f *descriptorpb.FieldDescriptorProto) *descriptorpb.FieldDescriptorProto {
	f.Options = &descriptorpb.FieldOptions{Packed: new(true)}
	return repeated(f)
}

func withDefault(f *descriptorpb.FieldDescriptorProto, value string) *descriptorpb.FieldDescriptorProto {
	f.DefaultValue = &value
	return f
}

// of is a field of a message or enum type.
func of(name, kind, typeName string) *descriptorpb.FieldDescriptorProto {
	f := field(name, kind)
	f.TypeName = &typeName
	return f
}

// message makes a message of fields, numbered in order, and nested types.
func messageOf(name string, parts ...any) *descriptorpb.DescriptorProto {
	d := &descriptorpb.DescriptorProto{Name: &name}
	for _, p := range parts {
		switch p := p.(type) {
		case *descriptorpb.FieldDescriptorProto:
			if p.Number == nil {
				p.Number = new(int32(len(d.Field) + 1))
			}
			d.Field = append(d.Field, p)
		case *descriptorpb.DescriptorProto:
			d.NestedType = append(d.NestedType, p)
		case *descriptorpb.EnumDescriptorProto:
			d.EnumType = append(d.EnumType, p)
		}
	}
	return d
}

// enumOf numbers its values 0, 10, 20, …
func enumOf(name string, values ...string) *descriptorpb.EnumDescriptorProto {
	e := &descriptorpb.EnumDescriptorProto{Name: &name}
	for i, v := range values {
		e.Value = append(e.Value, &descriptorpb.EnumValueDescriptorProto{Name: &v, Number: new(int32(10 * i))})
	}
	return e
}

// official is the message by the protobuf library, which writes the rows of the tests.
func official(t *testing.T, d *descriptorpb.DescriptorProto) protoreflect.MessageDescriptor {
	t.Helper()
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{Name: new("test.proto"), MessageType: []*descriptorpb.DescriptorProto{d}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file.Messages().Get(0)
}

// rows encodes rows written as text.
func rows(t *testing.T, d *descriptorpb.DescriptorProto, texts ...string) [][]byte {
	t.Helper()
	m := official(t, d)
	var out [][]byte
	for _, text := range texts {
		row := dynamicpb.NewMessage(m)
		if err := (prototext.UnmarshalOptions{AllowPartial: true}).Unmarshal([]byte(text), row); err != nil {
			t.Fatal(err)
		}
		b, err := proto.MarshalOptions{AllowPartial: true}.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

func col(name string, typ schema.Type) *schema.Field { return &schema.Field{Name: name, Type: typ} }

func many(f *schema.Field) *schema.Field {
	f.Mode = schema.Repeated
	return f
}

func required(f *schema.Field) *schema.Field {
	f.Mode = schema.Required
	return f
}

func structOf(name string, members ...*schema.Field) *schema.Field {
	return &schema.Field{Name: name, Type: schema.Struct, Fields: members}
}

func tableOf(fields ...*schema.Field) *schema.Schema { return &schema.Schema{Fields: fields} }

func compile(t *testing.T, d *descriptorpb.DescriptorProto, s *schema.Schema) *Plan {
	t.Helper()
	p, err := Compile(d, "t", s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// decoded is the batch that rows become, as JSON, one object a row.
func decoded(t *testing.T, p *Plan, q Request, rows [][]byte) string {
	t.Helper()
	if bad := p.Decode(rows, q); bad != nil {
		t.Fatalf("refused: %+v", bad)
	}
	b := p.Take()
	validate(t, b)
	return jsonOf(t, b)
}

func jsonOf(t *testing.T, b arrow.RecordBatch) string {
	t.Helper()
	var out strings.Builder
	if err := array.RecordToJSON(b, &out); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

// validate checks that every array is what Arrow says it must be.
func validate(t *testing.T, b arrow.RecordBatch) {
	t.Helper()
	for i, c := range b.Columns() {
		if c.Len() != int(b.NumRows()) {
			t.Fatalf("column %d has %d values in %d rows", i, c.Len(), b.NumRows())
		}
		validateArray(t, b.ColumnName(i), c)
	}
}

func validateArray(t *testing.T, name string, a arrow.Array) {
	t.Helper()
	nulls := 0
	for i := range a.Len() {
		if a.IsNull(i) {
			nulls++
		}
	}
	if nulls != a.NullN() {
		t.Fatalf("%s says it has %d nulls and has %d", name, a.NullN(), nulls)
	}
	switch a := a.(type) {
	case *array.List:
		validateArray(t, name+"[]", a.ListValues())
		if n := a.Len(); n > 0 {
			if _, end := a.ValueOffsets(n - 1); end != int64(a.ListValues().Len()) {
				t.Fatalf("%s: lists end at %d of %d elements", name, end, a.ListValues().Len())
			}
		}
	case *array.Struct:
		for i := range a.NumField() {
			if a.Field(i).Len() != a.Len() {
				t.Fatalf("%s: member %d has %d values of %d", name, i, a.Field(i).Len(), a.Len())
			}
			validateArray(t, name+"."+a.DataType().(*arrow.StructType).Field(i).Name, a.Field(i))
		}
	}
}
