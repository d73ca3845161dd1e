package protorow_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/millrace-dev/millrace/bigquery/row/protorow"
	"github.com/millrace-dev/millrace/bigquery/row/protorow/internal/testpb"
)

// FuzzWire makes rows of any bytes. Whatever the protobuf library takes for a message must become the row that the rules,
// written once more, say, or the error.
func FuzzWire(f *testing.F) {
	legacy := &testpb.Legacy{S: proto.String("s"), Pair: &testpb.Legacy_Pair{A: proto.String("a")}, Many: []*testpb.Legacy_Many{{}, {A: proto.String("b")}},
		Unpacked: []int64{1, 2}, Counts: map[string]int64{"a": 1}, Texts: []string{"x", ""}}
	f.Add(true, wireForm(f, full()))
	f.Add(true, append(wireForm(f, full()), wireForm(f, full())...))
	f.Add(false, wireForm(f, legacy))
	f.Add(false, []byte("\x1b\x0a\x01a\x1c\x1b\x10\x05\x1c\x0a\x01\xff")) // a group in two pieces, text that is not UTF-8
	serializer := func(md protoreflect.MessageDescriptor) *protorow.WireSerializer[[]byte] {
		s, err := protorow.Wire(md, func(b []byte) []byte { return b }, protorow.Options{})
		if err != nil {
			f.Fatal(err)
		}
		return s
	}
	modernType, legacyType := (&testpb.Modern{}).ProtoReflect().Descriptor(), (&testpb.Legacy{}).ProtoReflect().Descriptor()
	serializers := map[protoreflect.MessageDescriptor]*protorow.WireSerializer[[]byte]{modernType: serializer(modernType), legacyType: serializer(legacyType)}
	f.Fuzz(func(t *testing.T, modern bool, wire []byte) {
		var m proto.Message = &testpb.Legacy{}
		if modern {
			m = &testpb.Modern{}
		}
		s := serializers[m.ProtoReflect().Descriptor()]
		got, err := s.AppendRow(nil, nowhere, wire)
		if (proto.UnmarshalOptions{Resolver: new(protoregistry.Types)}).Unmarshal(wire, m) != nil {
			return // no message: any error will do, and so will a row of what there is
		}
		want := expectedRow(m.ProtoReflect())
		if err != nil {
			if kind, _, _ := strings.Cut(faultsOf(err), " "); kind != want {
				t.Fatalf("%v, want %s", err, want)
			}
			return
		}
		schema, err := s.Schema(nowhere)
		if err != nil {
			t.Fatal(err)
		}
		d, err := s.Descriptor(nowhere)
		if err != nil {
			t.Fatal(err)
		}
		if text := dynamicallyDecoded(t, d, schema, got); text != want {
			t.Fatalf("the row is\n%s, want\n%s", text, want)
		}
	})
}

// FuzzMessageOf makes serializers of any descriptor set.
func FuzzMessageOf(f *testing.F) {
	for _, file := range []protoreflect.FileDescriptor{testpb.File_modern_proto, testpb.File_legacy_proto} {
		f.Add(setOf(f, file), "millrace.test.Modern", "f_inner", []byte("\x0a\x01a"))
		f.Add(setOf(f, file), "millrace.test.Legacy", "s", []byte(nil))
	}
	f.Fuzz(func(t *testing.T, set []byte, name, path string, wire []byte) {
		md, err := protorow.MessageOf(set, name)
		if err != nil {
			if faultsOf(err) != "C-ROOT" {
				t.Fatalf("%v, want C-ROOT", err)
			}
			return
		}
		s, err := protorow.Wire(md, func(b []byte) []byte { return b }, protorow.Options{JSONPaths: []string{path}, JSONOptionNumbers: byNumber.JSONOptionNumbers})
		if err != nil {
			if faults := faultsOf(err); !strings.HasPrefix(faults, "C-") {
				t.Fatalf("%v, want kinds", err)
			}
			return
		}
		if _, err := s.AppendRow(nil, nowhere, wire); err != nil && !strings.HasPrefix(faultsOf(err), "R-") {
			t.Fatalf("%v, want a kind", err)
		}
	})
}
