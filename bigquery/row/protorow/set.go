package protorow

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// MessageOf finds a message, by its full name, in the contents of a descriptor set file:
//
//	protoc --include_imports --descriptor_set_out=shop.pb shop.proto
//
// The error is a *row.Error of kind C-ROOT. Options in the file stay as they are, whatever is linked into the program.
func MessageOf(set []byte, name string) (protoreflect.MessageDescriptor, error) {
	var files descriptorpb.FileDescriptorSet
	if err := (proto.UnmarshalOptions{Resolver: nothing}).Unmarshal(set, &files); err != nil {
		return nil, noType("the bytes are no descriptor set: expected what protoc --descriptor_set_out writes")
	}
	all, err := protodesc.NewFiles(&files)
	if err != nil {
		return nil, noType(fmt.Sprintf("the descriptor set cannot be used: %v; protoc writes imports with --include_imports", err))
	}
	d, err := all.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil, noType(fmt.Sprintf("the descriptor set has no %q: expected the full name of a message, with its package", name))
	}
	md, ok := d.(protoreflect.MessageDescriptor)
	if !ok {
		return nil, noType(fmt.Sprintf("%q is no message in the descriptor set", name))
	}
	return md, nil
}
