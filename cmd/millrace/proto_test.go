package main

import (
	"bytes"
	"context"
	"os"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/rogpeppe/go-internal/testscript"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// protoSet does what protoc --descriptor_set_out does: protoset [-alone] SET FILE.proto. With -alone it leaves imports out.
func protoSet(ts *testscript.TestScript, _ bool, args []string) {
	alone := args[0] == "-alone"
	if alone {
		args = args[1:]
	}
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{ts.MkAbs(".")}})}
	files, err := compiler.Compile(context.Background(), args[1])
	ts.Check(err)
	set := &descriptorpb.FileDescriptorSet{}
	seen := map[string]bool{}
	var add func(f protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			if !alone {
				add(f.Imports().Get(i))
			}
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	}
	add(files[0])
	text, err := proto.Marshal(set)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), text, 0o600))
}

// delimit writes messages with their lengths before them, of a file with one message in text form a line:
// delimit SET MESSAGE TEXT FILE.
func delimit(ts *testscript.TestScript, _ bool, args []string) {
	var set descriptorpb.FileDescriptorSet
	ts.Check(proto.Unmarshal([]byte(ts.ReadFile(args[0])), &set))
	files, err := protodesc.NewFiles(&set)
	ts.Check(err)
	d, err := files.FindDescriptorByName(protoreflect.FullName(args[1]))
	ts.Check(err)
	var out bytes.Buffer
	for line := range strings.Lines(ts.ReadFile(args[2])) {
		m := dynamicpb.NewMessage(d.(protoreflect.MessageDescriptor))
		ts.Check(prototext.Unmarshal([]byte(line), m))
		_, err := protodelim.MarshalOptions{MarshalOptions: proto.MarshalOptions{Deterministic: true}}.MarshalTo(&out, m)
		ts.Check(err)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[3]), out.Bytes(), 0o600))
}
