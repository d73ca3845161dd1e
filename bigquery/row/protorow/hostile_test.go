package protorow_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/millrace-dev/millrace/bigquery/row/protorow"
	"github.com/millrace-dev/millrace/bigquery/row/protorow/internal/testpb"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func TestDescriptorSetsThatCannotBeUsed(t *testing.T) {
	whole := setOf(t, testpb.File_modern_proto)
	alone, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(testpb.File_modern_proto)}})
	if err != nil {
		t.Fatal(err)
	}
	named := func(name string) []byte {
		b, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{Name: proto.String("m.proto"),
			MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String(name)}}}}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	cyclic, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{
		{Name: proto.String("a.proto"), Dependency: []string{"b.proto"}}, {Name: proto.String("b.proto"), Dependency: []string{"a.proto"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		set     []byte
		message string
		says    string
	}{
		{"no bytes", nil, "M", "no \"M\""},
		{"other bytes", []byte("syntax = \"proto3\";"), "M", "no descriptor set"},
		{"cut", whole[:len(whole)-1], "millrace.test.Modern", "no descriptor set"},
		{"without imports", alone, "millrace.test.Modern", "--include_imports"},
		{"an import that is not there", alone, "millrace.test.Modern", `lacks 7 files, among them "google/protobuf/`},
		{"who imports it", alone, "millrace.test.Modern", `(imported by "modern.proto")`},
		{"files that import each other", cyclic, "M", "cannot be used"},
		{"no such message", whole, "Modern", "with its package; did you mean millrace.test.Modern?"},
		{"a mistyped name", whole, "millrace.test.Modren", "; did you mean millrace.test.Modern?"},
		{"a name far from all", whole, "x", "of them, among them millrace.test."},
		{"an enum", whole, "millrace.test.Color", "no message"},
		{"no name", whole, "", "no \"\""},
		{"a hostile name to look for", whole, "a\x00`'\"\n../b", `"a\x00` + "`" + `'\"\n../b"`},
		{"a hostile name inside", named("a\x00`\n"), "a", "cannot be used"},
		{"a name that is not UTF-8", named("a\xff"), "a\xff", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := protorow.MessageOf(c.set, c.message)
			if err == nil || faultsOf(err) != "C-ROOT" || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\x00") {
				t.Errorf("error %v, want C-ROOT that says %q", err, c.says)
			}
		})
	}
}

// bushy is a type of some levels, each with as many fields of the next level's type: hundreds of billions of columns.
func bushy(t *testing.T) protoreflect.MessageDescriptor {
	var text strings.Builder
	const levels, fields = 12, 10
	for i := range levels {
		fmt.Fprintf(&text, "message L%d {", i)
		for f := range fields {
			if i+1 < levels {
				fmt.Fprintf(&text, "L%d f%d = %d; ", i+1, f, f+1)
			} else {
				fmt.Fprintf(&text, "map<string, string> f%d = %d; ", f, f+1)
			}
		}
		text.WriteString("}\n")
	}
	return compiled(t, map[string]string{"m.proto": source(proto3, "L0 a = 1; ---"+text.String())})
}

func TestTypesTooLargeAreRefusedAtOnce(t *testing.T) {
	md := bushy(t)
	if got := schemaOf(t, md, protorow.Options{}); !strings.HasPrefix(got, "C-SCHEMA a") {
		t.Errorf("%s, want C-SCHEMA", got[:min(len(got), 200)])
	}
	// A marker that nothing was found for is not told: half of the fields were not looked at.
	if got := schemaOf(t, md, jsonPaths("a.f9.f9")); strings.Contains(got, "C-PATH") {
		t.Errorf("%s, want no C-PATH", got[:min(len(got), 200)])
	}
	// Marked, nothing of it is gone through.
	if got := schemaOf(t, md, jsonPaths("a")); got != "a JSON" {
		t.Errorf("%s, want a JSON column", got)
	}
}

func TestFieldNumbersOfAnySize(t *testing.T) {
	md := compiled(t, map[string]string{"m.proto": source(proto3, "int64 a = 536870911; int64 b = 4095; int64 c = 4096; int64 d = 18999; int64 e = 20000;")})
	if got, want := rowOf(t, md, protorow.Options{}, message(t, md, "a: 1 b: 2 c: 3 d: 4 e: 5")), "a: 1, b: 2, c: 3, d: 4, e: 5"; got != want {
		t.Errorf("row %s, want %s", got, want)
	}
}

// wireOnly is a serializer of messages in wire form.
func wireOnly(t testing.TB, fields string, o protorow.Options) *protorow.WireSerializer[[]byte] {
	t.Helper()
	s, err := protorow.Wire(compiled(t, map[string]string{"m.proto": source(proto2, fields)}), func(b []byte) []byte { return b }, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWireFormOfAnyShape(t *testing.T) {
	const fields = "optional I i = 1; repeated I r = 2; optional int64 n = 3; repeated sint32 p = 4; optional google.protobuf.Timestamp t = 5; map<string, int64> m = 6; optional google.protobuf.Int64Value w = 7;" +
		" optional string s = 8; optional group G = 9 { optional int64 n = 1; } oneof o { I x = 10; int64 y = 11; } --- message I { optional int64 a = 1; optional int64 b = 2; }"
	s := wireOnly(t, fields, protorow.Options{})
	schema, err := s.Schema(nowhere)
	if err != nil {
		t.Fatal(err)
	}
	const nothing = "i: NULL, r: [], n: NULL, p: [], t: NULL, m: [], w: NULL, s: NULL, g: NULL, x: NULL, y: NULL"
	but := func(from, to string) string { return strings.Replace(nothing, from, to, 1) }
	for _, c := range []struct{ name, wire, want string }{
		{"nothing", "", nothing},
		{"a message in pieces", "\x0a\x02\x08\x01\x0a\x02\x10\x02", but("i: NULL", "i: {a: 1, b: 2}")},
		{"a timestamp in pieces", "\x2a\x02\x08\x01\x2a\x03\x10\xe8\x07", but("t: NULL", "t: 1000001")},
		{"a wrapper in pieces", "\x3a\x02\x08\x01\x3a\x00", but("w: NULL", "w: 1")},
		{"a group in pieces", "\x4b\x08\x01\x4c\x4b\x08\x02\x4c", but("g: NULL", "g: {n: 2}")},
		{"the last number", "\x18\x01\x18\x02", but("n: NULL", "n: 2")},
		{"a list with something between", "\x12\x02\x08\x01\x18\x05\x12\x02\x08\x02", but("r: [], n: NULL", "r: [{a: 1, b: NULL}, {a: 2, b: NULL}], n: 5")},
		{"a list packed and not", "\x20\x02\x22\x02\x04\x06\x20\x08\x22\x00", but("p: []", "p: [1, 2, 3, 4]")},
		{"another wire type", "\x19\x01\x00\x00\x00\x00\x00\x00\x00\x1a\x01x\x0d\x01\x00\x00\x00", nothing},
		{"another wire type of a list", "\x25\x01\x00\x00\x00\x20\x02\x25\x01\x00\x00\x00", but("p: []", "p: [1]")},
		{"unknown fields", "\x98\x06\x01\xfa\xff\xff\xff\x0f\x01x\xa3\x06\xa4\x06", nothing},
		{"a key twice, last", "\x32\x05\x0a\x01a\x10\x01\x32\x05\x0a\x01a\x10\x02", but("m: []", `m: [{key: "a", value: 2}]`)},
		{"an entry backwards, and one of nothing", "\x32\x05\x10\x01\x0a\x01b\x32\x00", but("m: []", `m: [{key: "", value: 0}, {key: "b", value: 1}]`)},
		{"members of a oneof, last", "\x52\x02\x08\x01\x58\x05", but("y: NULL", "y: 5")},
		{"a member again", "\x52\x02\x08\x01\x58\x05\x52\x02\x10\x07", but("x: NULL", "x: {a: NULL, b: 7}")},
		{"long varints", "\x98\x80\x80\x00\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00", but("n: NULL", "n: 1")},
		{"text that holds fields", "\x42\x02\x18\x05", but("s: NULL", `s: "\x18\x05"`)},
		{"cut in a number", "\x18\x80", "R-TYPE"},
		{"cut in a length", "\x42\x05x", "R-TYPE"},
		{"a length beyond all", "\x42\xff\xff\xff\xff\xff\xff\xff\xff\x7fx", "R-TYPE"},
		{"a tag that is cut", "\x80", "R-TYPE"},
		{"field number zero", "\x00\x01", "R-TYPE"},
		{"a field number too large", "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01\x01", "R-TYPE"},
		{"a group that ends", "\x4c", "R-TYPE"},
		{"a group that does not", "\x4b\x08\x01", "R-TYPE"},
		{"another group's end", "\x4b\x08\x01\x54", "R-TYPE"},
		{"wire type 6", "\x1e", "R-TYPE"},
		{"cut inside", "\x0a\x01\x08", "R-TYPE i"},
		{"cut inside a list", "\x12\x00\x12\x01\x08", "R-TYPE r[1]"},
		{"cut inside a packed list", "\x22\x02\x02\x80", "R-TYPE p[1]"},
		{"cut inside an entry", "\x32\x02\x0a\x05", "R-TYPE m"},
		{"cut inside a timestamp", "\x2a\x01\x08", "R-TYPE t"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := s.AppendRow(nil, nowhere, []byte(c.wire))
			if err != nil {
				if faultsOf(err) != c.want {
					t.Errorf("%v, want %s", err, c.want)
				}
				return
			}
			if text := decoded(t, schema, got); text != c.want {
				t.Errorf("row %s, want %s", text, c.want)
			}
		})
	}
}

// Time and memory follow the size of a record, whatever it is made of.
func TestLargeRecords(t *testing.T) {
	const size = 2 << 20
	s := wireOnly(t, "optional I i = 1; repeated I r = 2; map<int32, int32> m = 3; optional google.protobuf.Struct j = 4; --- message I { repeated int64 a = 1 [packed = true]; }", protorow.Options{})
	fill := func(piece []byte) []byte { return bytes.Repeat(piece, size/len(piece)) }
	var entries []byte
	for i := range 100_000 {
		entry := protowire.AppendVarint([]byte{0x08}, uint64(1_000_000-i))
		entries = protowire.AppendBytes(append(entries, 0x1a), entry)
	}
	nested := &structpb.Value{}
	for range 4000 {
		nested = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{nested}})
	}
	deep := wireForm(t, &structpb.Struct{Fields: map[string]*structpb.Value{"d": nested}})
	for name, wire := range map[string][]byte{
		"a message in a million pieces": fill([]byte("\x0a\x02\x08\x01")),
		"a million empty messages":      fill([]byte("\x12\x00")),
		"one key a million times":       fill([]byte("\x1a\x02\x08\x01")),
		"keys the wrong way round":      entries,
		"unknown groups":                fill([]byte("\xa3\x06\xa4\x06")),
		"open groups":                   fill([]byte("\xa3\x06")),
		"JSON, deep":                    protowire.AppendBytes([]byte{0x22}, deep),
	} {
		t.Run(name, func(t *testing.T) {
			buf := make([]byte, 0, 4*size)
			if _, err := s.AppendRow(buf, nowhere, wire); err != nil && !strings.HasPrefix(faultsOf(err), "R-") {
				t.Errorf("%v, want a row or a kind", err)
			}
		})
	}
}

// Messages in one another have the limit of the protobuf library, 10,000, whether it prints them or we do.
func TestDeepMessagesArePrintedToALimit(t *testing.T) {
	within := func(levels int, tag byte) (b []byte) {
		for range levels {
			b = append(protowire.AppendVarint([]byte{tag}, uint64(len(b))), b...)
		}
		return b
	}
	list := func(levels int) []byte { // a Value holds a list of one Value
		b := []byte{0x08, 0x00}
		for range levels {
			b = append(protowire.AppendVarint([]byte{0x0a}, uint64(len(b))), b...)
			b = append(protowire.AppendVarint([]byte{0x32}, uint64(len(b))), b...)
		}
		return append(protowire.AppendVarint([]byte{0x12}, uint64(len(b))), b...)
	}
	s := wireOnly(t, "optional M m = 1; optional google.protobuf.Value v = 2;", jsonPaths("m"))
	for _, c := range []struct {
		name string
		wire []byte
		want string
	}{
		{"itself", within(9000, 0x0a), ""},
		{"itself, too deep", within(11_000, 0x0a), "R-PRINT m"},
		{"lists", list(4900), ""},
		{"lists, too deep", list(5100), "R-PRINT v"},
	} {
		got := ""
		if _, err := s.AppendRow(nil, nowhere, c.wire); err != nil {
			got = faultsOf(err)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Errors quote nothing of what a record holds.
func TestErrorsQuoteNothing(t *testing.T) {
	const secret = "hunter2"
	md := compiled(t, map[string]string{"m.proto": source(proto2, "optional string s = 1; map<string, string> m = 2; optional google.protobuf.Any a = 3; optional google.protobuf.FieldMask f = 4; optional uint64 u = 5;")})
	s, err := protorow.Of[proto.Message](md, jsonPaths("a", "f"))
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range []string{
		`s: "` + secret + `\xff"`,
		`m { key: "` + secret + `" value: "\xff" }`,
		`a { type_url: "https://` + secret + `.example.com/ ` + secret + `" value: "x" }`,
		`f { paths: "` + secret + `__X" }`,
		`u: 17293822569102704640`,
	} {
		_, err := s.AppendRow(nil, table.Destination{}, message(t, md, record))
		if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "1729") {
			t.Errorf("%s: error %v, want one that does not quote", record, err)
		}
	}
}
