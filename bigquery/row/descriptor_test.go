package row

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// everyType has a column of every type, in every mode, and flexible names.
var everyType = &table.Schema{Fields: []table.Field{
	{Name: "Flag", Type: table.Bool},
	{Name: "id", Type: table.Int64, Mode: table.Required},
	{Name: "f", Type: table.Float64},
	{Name: "n", Type: table.Numeric},
	{Name: "bn", Type: table.BigNumeric},
	{Name: "s", Type: table.String},
	{Name: "b", Type: table.Bytes},
	{Name: "d", Type: table.Date},
	{Name: "t", Type: table.Time},
	{Name: "dt", Type: table.DateTime},
	{Name: "ts", Type: table.Timestamp},
	{Name: "i", Type: table.Interval},
	{Name: "g", Type: table.Geography},
	{Name: "j", Type: table.JSON},
	{Name: "r", Type: table.Range, Range: table.Date},
	{Name: "st", Type: table.Struct, Fields: []table.Field{
		{Name: "x", Type: table.Int64},
		{Name: "deep", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{{Name: "y", Type: table.Timestamp, Mode: table.Repeated}}},
	}},
	{Name: "ints", Type: table.Int64, Mode: table.Repeated},
	{Name: "dates", Type: table.Date, Mode: table.Repeated},
	{Name: "texts", Type: table.String, Mode: table.Repeated},
	{Name: "ranges", Type: table.Range, Range: table.Timestamp, Mode: table.Repeated},
	{Name: "1st-name", Type: table.String},
	{Name: "größe", Type: table.Struct, Fields: []table.Field{{Name: "a b", Type: table.Int64}}},
	{Name: "_Under_9", Type: table.String},
}}

func mustDescriptor(tb testing.TB, s *table.Schema) *descriptorpb.DescriptorProto {
	tb.Helper()
	d, err := Descriptor(s)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// messageOf builds the message alone, as the service does.
func messageOf(tb testing.TB, d *descriptorpb.DescriptorProto) protoreflect.MessageDescriptor {
	tb.Helper()
	f, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("row.proto"), Syntax: proto.String("proto2"), MessageType: []*descriptorpb.DescriptorProto{d},
	}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return f.Messages().Get(0)
}

// The golden file is written anew with REWRITE=1.
func TestDescriptorGolden(t *testing.T) {
	d := mustDescriptor(t, everyType)
	// Text of a descriptor without spaces that differ from build to build.
	got := prototext.MarshalOptions{Multiline: true, Indent: " ", EmitUnknown: true}.Format(d)
	got = strings.ReplaceAll(got, ":  ", ": ")
	golden := filepath.Join("testdata", "descriptor.txtpb")
	if os.Getenv("REWRITE") != "" {
		if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("descriptor differs from %s:\n%s", golden, got)
	}
	messageOf(t, d)
}

func TestDescriptor(t *testing.T) {
	d := mustDescriptor(t, everyType)
	columnNameType, linked := linkedOption(t)
	field := map[string]*descriptorpb.FieldDescriptorProto{}
	for i, f := range d.Field {
		if f.GetNumber() != int32(i+1) {
			t.Errorf("column %d is field %d", i, f.GetNumber())
		}
		field[ColumnName(f)] = f
	}
	if f := field["flag"]; f.GetName() != "flag" {
		t.Errorf("column Flag is field %q, want lower case", f.GetName())
	}
	if f := field["i"]; f.GetType() != descriptorpb.FieldDescriptorProto_TYPE_STRING || f.GetLabel() != descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL {
		t.Errorf("SER-145: INTERVAL of no mode is %v %v, want an optional string", f.GetLabel(), f.GetType())
	}
	for _, name := range []string{"1st-name", "größe"} {
		f := field[name]
		if f == nil || !protoreflect.Name(f.GetName()).IsValid() {
			t.Fatalf("SER-144: column %q is field %v, want a valid identifier and its name in the option", name, f)
		}
		// A program that links the client reads the option as its extension.
		b, err := proto.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		again := &descriptorpb.FieldDescriptorProto{}
		if err := (proto.UnmarshalOptions{Resolver: linked}).Unmarshal(b, again); err != nil {
			t.Fatal(err)
		}
		if got := proto.GetExtension(again.GetOptions(), columnNameType); got != name {
			t.Errorf("SER-144: the client reads column_name %q, want %q", got, name)
		}
		if got := ColumnName(again); got != name {
			t.Errorf("ColumnName of the resolved option is %q, want %q", got, name)
		}
	}
	for name, want := range map[string]bool{"ints": true, "dates": true, "texts": false, "ranges": false} {
		if got := field[name].GetOptions().GetPacked(); got != want {
			t.Errorf("column %s is packed: %v, want %v", name, got, want)
		}
	}
}

// linkedOption declares the option as google/cloud/bigquery/storage/v1/annotations.proto does, for a program that links it.
func linkedOption(t *testing.T) (protoreflect.ExtensionType, *protoregistry.Types) {
	t.Helper()
	f, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("annotations.proto"), Package: proto.String("google.cloud.bigquery.storage.v1"), Syntax: proto.String("proto2"),
		Dependency: []string{"google/protobuf/descriptor.proto"},
		Extension: []*descriptorpb.FieldDescriptorProto{{
			Name: proto.String("column_name"), Number: proto.Int32(454943157), Extendee: proto.String(".google.protobuf.FieldOptions"),
			Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}},
	}, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	option, types := dynamicpb.NewExtensionType(f.Extensions().Get(0)), new(protoregistry.Types)
	if err := types.RegisterExtension(option); err != nil {
		t.Fatal(err)
	}
	return option, types
}

func TestPlaceholdersGiveWay(t *testing.T) {
	d := mustDescriptor(t, &table.Schema{Fields: []table.Field{{Name: "1", Type: table.Int64}, {Name: "COL_31", Type: table.Int64}}})
	if a, b := d.Field[0].GetName(), d.Field[1].GetName(); a == b || b != "col_31" {
		t.Errorf("columns 1 and COL_31 are fields %q and %q, want two names, the second its own", a, b)
	}
	messageOf(t, d)
}

func TestDescriptorRefuses(t *testing.T) {
	_, err := Descriptor(&table.Schema{Fields: []table.Field{{Name: "count", Type: table.Int64}, {Name: "COUNT", Type: table.Range}}})
	var e *Error
	if !errors.As(err, &e) || e.Kind != KindCase || e.Path != "COUNT" {
		t.Errorf("SER-124: %v, want the first fault as a *row.Error of kind %s at COUNT", err, KindCase)
	}
	if !strings.Contains(err.Error(), string(KindColType)) {
		t.Errorf("%v lacks the second fault, %s", err, KindColType)
	}
	if _, err := Descriptor(&table.Schema{}); !errors.As(err, &e) || e.Kind != KindEmpty {
		t.Errorf("SER-124: no columns give %v, want %s", err, KindEmpty)
	}
}

func TestColumnNameOfOddOptions(t *testing.T) {
	f := &descriptorpb.FieldDescriptorProto{Name: proto.String("a"), Options: &descriptorpb.FieldOptions{}}
	f.Options.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, columnNameOption, protowire.VarintType), 5))
	if got := ColumnName(f); got != "a" {
		t.Errorf("an option of another type names the column %q, want the field's name", got)
	}
}
