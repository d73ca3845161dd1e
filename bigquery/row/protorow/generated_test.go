package protorow_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"

	"github.com/millrace-dev/millrace/bigquery/row/protorow/internal/testpb"
)

var rewrite = flag.Bool("rewrite", false, "generate the code of internal/testpb anew")

// TestGenerated holds the generated code to the .proto files beside it.
func TestGenerated(t *testing.T) {
	const folder = "internal/testpb"
	sources, err := filepath.Glob(folder + "/*.proto")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources in %s: %v", folder, err)
	}
	for i := range sources {
		sources[i] = filepath.Base(sources[i])
	}
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{folder}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), sources...)
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		request := &pluginpb.CodeGeneratorRequest{FileToGenerate: sources, Parameter: proto.String("paths=source_relative")}
		seen := map[string]bool{}
		for _, f := range files {
			request.ProtoFile = withImports(request.ProtoFile, f, seen)
		}
		generate(t, request, folder)
		t.Fatal("generated anew: run it again without -rewrite")
	}
	generated := map[string]protoreflect.FileDescriptor{"modern.proto": testpb.File_modern_proto, "legacy.proto": testpb.File_legacy_proto, "marks.proto": testpb.File_marks_proto}
	for _, f := range files {
		want, got := protodesc.ToFileDescriptorProto(f), protodesc.ToFileDescriptorProto(generated[f.Path()])
		want.SourceCodeInfo = nil
		if w, g := wireOf(t, want), wireOf(t, got); !bytes.Equal(w, g) {
			t.Errorf("the code of %s is not what the source says: go test ./bigquery/row/protorow -run TestGenerated -rewrite", f.Path())
		}
	}
}

// wireOf is a file in wire form, whatever is known of its options.
func wireOf(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func withImports(all []*descriptorpb.FileDescriptorProto, f protoreflect.FileDescriptor, seen map[string]bool) []*descriptorpb.FileDescriptorProto {
	if seen[f.Path()] {
		return all
	}
	seen[f.Path()] = true
	for i := range f.Imports().Len() {
		all = withImports(all, f.Imports().Get(i), seen)
	}
	return append(all, protodesc.ToFileDescriptorProto(f))
}

func generate(t *testing.T, request *pluginpb.CodeGeneratorRequest, folder string) {
	t.Helper()
	in := wireOf(t, request)
	plugin := exec.Command("go", "run", "google.golang.org/protobuf/cmd/protoc-gen-go")
	plugin.Stdin, plugin.Stderr = bytes.NewReader(in), os.Stderr
	out, err := plugin.Output()
	if err != nil {
		t.Fatal(err)
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil || response.Error != nil {
		t.Fatalf("the generator answered %v %q", err, response.GetError())
	}
	for _, f := range response.File {
		if err := os.WriteFile(filepath.Join(folder, f.GetName()), []byte(f.GetContent()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
