package protorow_test

import (
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/millrace-dev/millrace/bigquery/row/protorow"
	"github.com/millrace-dev/millrace/bigquery/row/protorow/internal/testpb"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func ExampleNew() {
	rows, err := protorow.New[*testpb.Order](protorow.Options{DeriveRequired: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	dst := table.Destination{Project: "my-project", Dataset: "shop", Table: "orders"}
	schema, _ := rows.Schema(dst)
	for _, f := range schema.Fields {
		fmt.Println(f.Name, f.Type, f.Mode)
	}
	b, err := rows.AppendRow(nil, dst, &testpb.Order{Id: 7, Customer: "ada", Placed: &timestamppb.Timestamp{Seconds: 1}})
	fmt.Printf("%x %v\n", b, err)
	// Output:
	// id INT64 REQUIRED
	// customer STRING REQUIRED
	// product STRING REQUIRED
	// quantity INT64 REQUIRED
	// price FLOAT64 REQUIRED
	// gift BOOL REQUIRED
	// placed TIMESTAMP NULLABLE
	// color STRING REQUIRED
	// 080712036164611a002000290000000000000000300038c0843d4211434f4c4f525f554e535045434946494544 <nil>
}

// Fields become JSON by their path, here a message inside a message, or by an option that they carry.
func ExampleNew_json() {
	_, err := protorow.New[*testpb.Node](protorow.Options{})
	fmt.Println(err)
	rows, err := protorow.New[*testpb.Node](protorow.Options{JSONPaths: []string{"child"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := rows.AppendRow(nil, table.Destination{}, &testpb.Node{N: "a", Child: &testpb.Node{N: "b"}})
	fmt.Printf("%q %v\n", b, err)
	// Output:
	// C-RECURSIVE: field child: the message millrace.test.Node contains itself: expected one that does not, or a marker as JSON
	// "\n\x01a\x12\t{\"n\":\"b\"}" <nil>
}

// Messages whose code is not linked into the program: their descriptors are in a file, the messages in wire form.
func ExampleWire() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "shop.pb")
	if err := writeSet(file); err != nil {
		fmt.Println(err)
		return
	}

	set, err := os.ReadFile(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	item, err := protorow.MessageOf(set, "shop.Item")
	if err != nil {
		fmt.Println(err)
		return
	}
	rows, err := protorow.Wire(item, func(rec []byte) []byte { return rec }, protorow.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := rows.AppendRow(nil, table.Destination{}, []byte("\x0a\x03tea"))
	fmt.Printf("%q %v\n", b, err)
	// Output:
	// "\n\x03tea" <nil>
}

// writeSet does what protoc --descriptor_set_out does.
func writeSet(file string) error {
	item := &descriptorpb.DescriptorProto{Name: proto.String("Item"), Field: []*descriptorpb.FieldDescriptorProto{
		protodesc.ToFieldDescriptorProto((&testpb.Order{}).ProtoReflect().Descriptor().Fields().ByName("customer"))}}
	item.Field[0].Number = proto.Int32(1)
	set, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
		Name: proto.String("shop.proto"), Package: proto.String("shop"), Syntax: proto.String("proto3"), MessageType: []*descriptorpb.DescriptorProto{item}}}})
	if err != nil {
		return err
	}
	return os.WriteFile(file, set, 0o600)
}
