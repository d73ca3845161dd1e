package protorow_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/protorow"
	"github.com/millrace-dev/millrace/bigquery/row/protorow/internal/testpb"
)

func jsonPaths(paths ...string) protorow.Options { return protorow.Options{JSONPaths: paths} }
func geoPaths(paths ...string) protorow.Options  { return protorow.Options{GeographyPaths: paths} }

func TestMarkedPaths(t *testing.T) {
	for _, c := range markerCases() {
		t.Run(c.name, c.run)
	}
}

func markerCases() []conform {
	const nested = "string f_string = 1; I f_nested = 2; map<string, string> labels = 3; int32 n = 4; bytes b = 5; C c = 6; google.protobuf.Struct w_struct = 7; google.protobuf.StringValue w = 8; repeated string l = 9;" +
		" --- message I { string s = 1; int64 n = 2; } enum C { Z = 0; }"
	return []conform{
		{name: "SER-47 string", fields: "string f_string = 1;", options: jsonPaths("f_string", "f_string"), record: "f_string: 'not json at all'", schema: "f_string JSON", row: "f_string: `not json at all`", refused: true},
		{name: "SER-47 JSON text", fields: "string f_string = 1;", options: jsonPaths("f_string"), record: "f_string: '[1,2]'", row: "f_string: `[1,2]`"},
		{name: "SER-48 message", fields: "I i = 1; --- message I { string s = 1; int64 n = 2; bytes some_bytes = 3; E e = 4; } enum E { Z = 0; ONE = 1; }", options: jsonPaths("i"), record: "i { s: 'x' n: 9 some_bytes: '\\001' e: ONE }", schema: "i JSON",
			row: "i: `{\"s\":\"x\",\"n\":\"9\",\"someBytes\":\"AQ==\",\"e\":\"ONE\"}`", stored: "i: `{\"e\":\"ONE\",\"n\":\"9\",\"s\":\"x\",\"someBytes\":\"AQ==\"}`"},
		{name: "SER-49 nested", fields: "I f_nested = 1; --- message I { string s = 1; int64 n = 2; }", options: jsonPaths("f_nested.s"), record: "f_nested { s: '{}' }", schema: "f_nested STRUCT<s JSON, n INT64>", row: "f_nested: {s: `{}`, n: 0}"},
		{name: "SER-50 what cannot carry it", fields: nested, options: jsonPaths("n", "labels", "b", "c", "f_nested.n"), schema: "C-MARK f_nested.n, C-MARK labels, C-MARK n, C-MARK b, C-MARK c"},
		{name: "SER-50 values of a map", fields: "map<string, string> labels = 1;", options: jsonPaths("labels.value"), record: "labels { key: 'a' value: '{}' } labels { key: 'b' }", schema: "labels REPEATED STRUCT<key STRING, value JSON>", row: "labels: [{key: \"a\", value: `{}`}, {key: \"b\", value: NULL}]"},
		{name: "SER-50 keys of a map", fields: nested, options: jsonPaths("labels.key"), schema: "C-MARK labels.key"},
		{name: "SER-51 no such field", fields: nested, options: jsonPaths("f_jsonn"), schema: "C-PATH f_jsonn"},
		{name: "SER-51 inside a JSON column", fields: nested, options: jsonPaths("w_struct.fields"), schema: "C-PATH w_struct.fields"},
		{name: "SER-51 inside a marked one", fields: nested, options: jsonPaths("f_nested", "f_nested.s"), schema: "C-PATH f_nested.s"},
		{name: "SER-51 hostile paths", fields: "string a = 1;", options: jsonPaths("", ".", "a.", "A", "a\x00"), schema: "C-PATH, C-PATH ., C-PATH A, C-PATH a\x00, C-PATH a."},
		{name: "SER-52 GEOGRAPHY", fields: "string g = 1; repeated string h = 2;", options: geoPaths("g", "h"), record: "g: 'POINT(1 2)' h: ['x', '']", schema: "g GEOGRAPHY, h REPEATED GEOGRAPHY", row: "g: `POINT(1 2)`, h: [`x`, ``]", refused: true},
		{name: "SER-52 what cannot carry it", fields: nested, options: geoPaths("f_nested", "w", "w_struct", "labels", "n", "labels.key"), schema: "C-MARK f_nested, C-MARK labels, C-MARK labels.key, C-MARK n, C-MARK w_struct, C-MARK w"},
		{name: "SER-52 a point", fields: "string g = 1; repeated string h = 2;", options: geoPaths("g", "h"), record: "g: 'POINT(1 2)' h: ['POINT(3 4)']", row: "g: `POINT(1 2)`, h: [`POINT(3 4)`]"},
		{name: "SER-53 both", fields: nested, options: protorow.Options{JSONPaths: []string{"f_string"}, GeographyPaths: []string{"f_string"}}, schema: "C-BOTH f_string"},
		{name: "SER-54 empty text", fields: "string a = 1; optional string b = 2; repeated string c = 3; oneof o { string d = 4; }", options: jsonPaths("a", "b", "c", "d"), record: "a: '' b: '' c: ['', '{}'] d: ''", row: "a: NULL, b: ``, c: [``, `{}`], d: ``", refused: true},
		{name: "SER-55 well-known types", fields: "google.protobuf.Int64Value i = 1; google.protobuf.Timestamp t = 2; google.protobuf.Duration d = 3; google.protobuf.FieldMask m = 4; google.protobuf.Empty e = 5; google.protobuf.BoolValue b = 6;",
			options: jsonPaths("i", "t", "d", "m", "e", "b"), record: "i { value: 5 } t { seconds: 1767323045 } d { seconds: 1 nanos: 500000000 } m { paths: ['a_b', 'c'] } e {}", schema: "i JSON, t JSON, d JSON, m JSON, e JSON, b JSON",
			row: "i: `\"5\"`, t: `\"2026-01-02T03:04:05Z\"`, d: `\"1.500s\"`, m: `\"aB,c\"`, e: `{}`, b: NULL"},
		{name: "SER-55 a time without a JSON form", fields: "google.protobuf.Timestamp t = 1;", options: jsonPaths("t"), record: "t { seconds: 253402300800 }", row: "R-PRINT t"},
		{name: "SER-56 option numbers that no field carries", fields: "string s = 1;", options: protorow.Options{JSONOptionNumbers: []protowire.Number{50000}}, schema: "s STRING"},
		{name: "SER-68 Any of an unknown type", fields: "google.protobuf.Any a = 1;", options: jsonPaths("a"), record: `a { type_url: "type.googleapis.com/millrace.test.Inner" }`, schema: "a JSON", row: "R-PRINT a"},
		{name: "SER-68 unset", fields: "google.protobuf.Any a = 1; google.protobuf.Any b = 2;", options: jsonPaths("a", "b"), record: "b {}", row: "a: NULL, b: `{}`"},
	}
}

// anyOf is a resolver of one type.
func anyOf(t *testing.T, m proto.Message) *protoregistry.Types {
	t.Helper()
	var types protoregistry.Types
	if err := types.RegisterMessage(m.ProtoReflect().Type()); err != nil {
		t.Fatal(err)
	}
	return &types
}

func TestAnyIsPrintedByItsResolverAlone(t *testing.T) {
	md := compiled(t, map[string]string{"m.proto": source(proto3, "google.protobuf.Any a = 1;")})
	inner, err := anypb.New(&testpb.Inner{S: "x", N: 9})
	if err != nil {
		t.Fatal(err)
	}
	rec := message(t, md, "")
	rec.Set(md.Fields().Get(0), protoreflect.ValueOfMessage(inner.ProtoReflect()))
	o := jsonPaths("a")
	for _, c := range []struct {
		name     string
		resolver protorow.AnyResolver
		want     string
	}{
		{"SER-68 by default", nil, "R-PRINT a"},
		{"SER-68 another type", anyOf(t, &testpb.Node{}), "R-PRINT a"},
		{"SER-68 found", anyOf(t, &testpb.Inner{}), "a: `{\"@type\":\"type.googleapis.com/millrace.test.Inner\",\"s\":\"x\",\"n\":\"9\"}`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o.AnyResolver = c.resolver
			if got := rowOf(t, md, o, rec); got != c.want {
				t.Errorf("row %s, want %s", got, c.want)
			}
		})
	}
	s, err := protorow.Of[proto.Message](md, jsonPaths("a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendRow(nil, nowhere, rec); err == nil || !strings.Contains(err.Error(), "millrace.test.Inner") {
		t.Errorf("error %v, want one that names the type", err)
	}
}

func TestOptionNumbers(t *testing.T) {
	md := (&testpb.Inner{}).ProtoReflect().Descriptor()
	of := func(n ...protowire.Number) protorow.Options { return protorow.Options{JSONOptionNumbers: n} }
	for _, n := range []protowire.Number{0, -1, 999, 19000, 19999, 536870912} {
		if got := schemaOf(t, md, of(n)); got != "C-OPTNUM" {
			t.Errorf("SER-58 %d: %s, want C-OPTNUM", n, got)
		}
	}
	for _, n := range []protowire.Number{1000, 18999, 20000, 536870911} {
		if got := schemaOf(t, md, of(n, n)); got != "s STRING, n INT64" {
			t.Errorf("SER-58 %d: %s, want a schema", n, got)
		}
	}
	for name, c := range map[string]struct {
		o    protorow.Options
		want string
	}{
		"SER-59 one number, two meanings":    {protorow.Options{JSONOptionNumbers: []protowire.Number{50000}, GeographyOptionNumbers: []protowire.Number{50000}}, "C-OPTNUM"},
		"SER-59 a name and a number":         {protorow.Options{JSONOptionNumbers: []protowire.Number{50001}, GeographyOptions: []protoreflect.ExtensionType{testpb.E_Geography}}, "C-OPTNUM"},
		"SER-64 an option that is no bool":   {protorow.Options{JSONOptions: []protoreflect.ExtensionType{testpb.E_Number}}, "C-OPTTYPE"},
		"SER-64 an option that is a list":    {protorow.Options{JSONOptions: []protoreflect.ExtensionType{testpb.E_List}}, "C-OPTTYPE"},
		"SER-64 an option of something else": {protorow.Options{JSONOptions: []protoreflect.ExtensionType{testpb.E_Extra}}, "C-OPTTYPE"},
		"SER-64 no option":                   {protorow.Options{JSONOptions: []protoreflect.ExtensionType{nil}}, "C-OPTTYPE"},
		"SER-58 every fault is told":         {of(0, 999), "C-OPTNUM, C-OPTNUM"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := schemaOf(t, md, c.o); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

var (
	byName   = protorow.Options{JSONOptions: []protoreflect.ExtensionType{testpb.E_Json}, GeographyOptions: []protoreflect.ExtensionType{testpb.E_Geography}}
	byNumber = protorow.Options{JSONOptionNumbers: []protowire.Number{50000}, GeographyOptionNumbers: []protowire.Number{50001}}
)

// Options of generated code are resolved; those of a descriptor set are bytes.
func TestMarkedByOption(t *testing.T) {
	const marked = "plain STRING, doc JSON, no_doc STRING, maybe JSON, list REPEATED JSON, message JSON, place GEOGRAPHY, deep STRUCT<doc JSON>"
	md := (&testpb.Marked{}).ProtoReflect().Descriptor()
	fromSet, err := protorow.MessageOf(setOf(t, md.ParentFile()), "millrace.test.Marked")
	if err != nil {
		t.Fatal(err)
	}
	both := protorow.Options{JSONOptions: byName.JSONOptions, JSONOptionNumbers: byNumber.JSONOptionNumbers, GeographyOptions: byName.GeographyOptions}
	for name, o := range map[string]protorow.Options{"SER-57 by name": byName, "SER-57 by number": byNumber, "SER-60 by both": both} {
		t.Run(name, func(t *testing.T) {
			for kind, md := range map[string]protoreflect.MessageDescriptor{"generated": md, "from a set": fromSet} {
				if got := schemaOf(t, md, o); got != marked {
					t.Errorf("%s: schema %s, want %s", kind, got, marked)
				}
			}
		})
	}
	t.Run("SER-57 by a name in a set", func(t *testing.T) {
		set, err := protorow.ParseSet(setOf(t, md.ParentFile()))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := set.FieldOption("millrace.test.json")
		if err != nil {
			t.Fatal(err)
		}
		place, err := set.FieldOption("millrace.test.geography")
		if err != nil {
			t.Fatal(err)
		}
		o := protorow.Options{JSONOptions: []protoreflect.ExtensionType{doc}, GeographyOptions: []protoreflect.ExtensionType{place}}
		for kind, md := range map[string]protoreflect.MessageDescriptor{"generated": md, "from a set": fromSet} {
			if got := schemaOf(t, md, o); got != marked {
				t.Errorf("%s: schema %s, want %s", kind, got, marked)
			}
		}
		for name, says := range map[string]string{"json": "did you mean millrace.test.json?", "millrace.test.jsno": "did you mean millrace.test.json?",
			"millrace.test.Marked": "no field option", "": `no field option ""`, "a\x00`\n": "`\\n\""} {
			if _, err := set.FieldOption(name); err == nil || faultsOf(err) != "C-OPTTYPE" || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\x00") {
				t.Errorf("%q: %v, want C-OPTTYPE that says %s", name, err, says)
			}
		}
	})
	t.Run("SER-53 an option and a path", func(t *testing.T) {
		o := byName
		o.GeographyPaths = []string{"doc"}
		if got := schemaOf(t, md, o); got != "C-BOTH doc" {
			t.Errorf("%s, want C-BOTH doc", got)
		}
	})
	t.Run("SER-61 a rival that is resolved", func(t *testing.T) {
		set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{
			protodesc.ToFileDescriptorProto(descriptorpb.File_google_protobuf_descriptor_proto), declares("other", "json", descriptorpb.FieldDescriptorProto_TYPE_BOOL, false)}}
		files, err := protodesc.NewFiles(set)
		if err != nil {
			t.Fatal(err)
		}
		d, err := files.FindDescriptorByName("other.json")
		if err != nil {
			t.Fatal(err)
		}
		rival := dynamicpb.NewExtensionType(d.(protoreflect.ExtensionDescriptor))
		for _, c := range []struct {
			types []protoreflect.ExtensionType
			want  string
		}{
			{[]protoreflect.ExtensionType{rival}, "doc STRING"},
			{[]protoreflect.ExtensionType{rival, testpb.E_Json}, "doc JSON"},
			{[]protoreflect.ExtensionType{testpb.E_Json, rival}, "doc STRING"},
		} {
			if got := schemaOf(t, md.Messages().ByName("Deep"), protorow.Options{JSONOptions: c.types}); got != c.want {
				t.Errorf("%v: %s, want %s", c.types, got, c.want)
			}
		}
	})
	t.Run("SER-67 on an int64", func(t *testing.T) {
		if got := schemaOf(t, (&testpb.MarkedNumber{}).ProtoReflect().Descriptor(), byName); got != "C-MARK n" {
			t.Errorf("%s, want C-MARK n", got)
		}
	})
}

// setOf is a descriptor set of a file and all it imports.
func setOf(t testing.TB, f protoreflect.FileDescriptor) []byte {
	t.Helper()
	set := &descriptorpb.FileDescriptorSet{File: withImports(nil, f, map[string]bool{})}
	b, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// optioned is a message whose field f has options of these bytes, in a pool with the files given. files are in the order of
// imports; the first is imported first.
func optioned(t *testing.T, options []byte, files ...*descriptorpb.FileDescriptorProto) protoreflect.MessageDescriptor {
	t.Helper()
	opts := &descriptorpb.FieldOptions{}
	opts.ProtoReflect().SetUnknown(options)
	m := &descriptorpb.FileDescriptorProto{Name: proto.String("m.proto"), Package: proto.String("t"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("M"), Field: []*descriptorpb.FieldDescriptorProto{{
			Name: proto.String("f"), Number: proto.Int32(1), Options: opts,
			Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}}}}}
	set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(descriptorpb.File_google_protobuf_descriptor_proto)}}
	for _, f := range files {
		m.Dependency = append(m.Dependency, f.GetName())
		set.File = append(set.File, f)
	}
	set.File = append(set.File, m)
	b, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	md, err := protorow.MessageOf(b, "t.M")
	if err != nil {
		t.Fatal(err)
	}
	return md
}

// declares is a file with an extension of FieldOptions that is called name and has the number 50000.
func declares(pkg, name string, typ descriptorpb.FieldDescriptorProto_Type, within bool) *descriptorpb.FileDescriptorProto {
	x := &descriptorpb.FieldDescriptorProto{Name: proto.String(name), Number: proto.Int32(50000), Type: typ.Enum(),
		Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), Extendee: proto.String(".google.protobuf.FieldOptions")}
	f := &descriptorpb.FileDescriptorProto{Name: proto.String(pkg + ".proto"), Package: proto.String(pkg), Syntax: proto.String("proto2"),
		Dependency: []string{"google/protobuf/descriptor.proto"}}
	if within {
		f.MessageType = []*descriptorpb.DescriptorProto{{Name: proto.String("Outer"), NestedType: []*descriptorpb.DescriptorProto{{
			Name: proto.String("Scope"), Extension: []*descriptorpb.FieldDescriptorProto{x}}}}}
		return f
	}
	f.Extension = []*descriptorpb.FieldDescriptorProto{x}
	return f
}

func TestOptionsThatAreBytes(t *testing.T) {
	const isBool, isInt = descriptorpb.FieldDescriptorProto_TYPE_BOOL, descriptorpb.FieldDescriptorProto_TYPE_INT64
	varints := func(values ...uint64) (b []byte) {
		for _, v := range values {
			b = protowire.AppendVarint(protowire.AppendTag(b, 50000, protowire.VarintType), v)
		}
		return b
	}
	text := protowire.AppendString(protowire.AppendTag(nil, 50000, protowire.BytesType), "x")
	own, rival := declares("millrace.test", "json", isBool, false), declares("other", "json", isBool, false)
	files := func(f ...*descriptorpb.FileDescriptorProto) []*descriptorpb.FileDescriptorProto { return f }
	number := protorow.Options{JSONOptionNumbers: []protowire.Number{50000}}
	name := protorow.Options{JSONOptions: []protoreflect.ExtensionType{testpb.E_Json}}
	both := protorow.Options{JSONOptions: name.JSONOptions, JSONOptionNumbers: number.JSONOptionNumbers}
	for _, c := range []struct {
		name    string
		options []byte
		files   []*descriptorpb.FileDescriptorProto
		o       protorow.Options
		want    string
	}{
		{"SER-61 a rival, by extension", varints(1), files(rival), name, "f STRING"},
		{"SER-61 a rival, by number", varints(1), files(rival), number, "f JSON"},
		{"SER-60 a rival, by extension and number", varints(1), files(rival), both, "f STRING"},
		{"SER-60 own and rival, by extension and number", varints(1), files(rival, own), both, "f JSON"},
		{"SER-62 own and rival", varints(1), files(rival, own), name, "f JSON"},
		{"SER-62 rival behind", varints(1), files(own, rival), name, "f JSON"},
		{"SER-63 bare, true", varints(1), nil, number, "f JSON"},
		{"SER-63 bare, false", varints(0), nil, number, "f STRING"},
		{"SER-63 bare, by extension", varints(1), nil, name, "f JSON"},
		{"SER-63 seven", varints(7), nil, number, "C-OPTTYPE f"},
		{"SER-63 text", text, nil, number, "C-OPTTYPE f"},
		{"SER-63 twice", varints(1, 1), nil, number, "C-OPTTYPE f"},
		{"SER-64 declared as int64", varints(1), files(declares("other", "count", isInt, false)), number, "C-OPTTYPE f"},
		{"SER-64 another's int64, by extension", varints(1), files(declares("other", "count", isInt, false)), name, "f STRING"},
		{"SER-65 last wins", varints(0, 1), files(own), name, "f JSON"},
		{"SER-65 last wins, false", varints(1, 0), files(own), number, "f STRING"},
		{"SER-65 any number but zero", varints(7), files(own), number, "f JSON"},
		{"SER-65 declared and no varint", text, files(own), number, "C-OPTTYPE f"},
		{"SER-66 in a message", varints(1), files(declares("scoped", "json", isBool, true)), number, "f JSON"},
		{"SER-66 in a message, another's", varints(1), files(declares("scoped", "json", isBool, true)), name, "f STRING"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := schemaOf(t, optioned(t, c.options, c.files...), c.o); got != c.want {
				t.Errorf("schema %s, want %s", got, c.want)
			}
		})
	}
	t.Run("SER-64 the message names the option that is at fault", func(t *testing.T) {
		md := optioned(t, varints(1), declares("other", "count", isInt, false))
		_, err := protorow.Of[proto.Message](md, protorow.Options{GeographyOptionNumbers: []protowire.Number{50000}})
		e, ok := errors.AsType[*row.Error](err)
		if !ok || strings.Contains(e.Msg, "JSON") || !strings.Contains(e.Msg, "other.count") || !strings.Contains(e.Msg, "GEOGRAPHY") {
			t.Errorf("error %v, want one about GEOGRAPHY and other.count", err)
		}
	})
}
