package protorow_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/millrace-dev/millrace/bigquery/row/protorow"
)

// conform is one case: fields of a message, one message, and its row.
type conform struct {
	name    string
	syntax  string // "" is proto3
	fields  string
	options protorow.Options
	record  string
	schema  string // "" is not looked at
	says    string // what the error about the type says, too
	row     string // or kind and path of the error

	others  map[string]string // more files, which m.proto imports
	stored  string            // the row as BigQuery keeps it: members of JSON objects are sorted; "" is row
	refused bool              // BigQuery does not take the row: what is no JSON is looked at there
}

func (c *conform) run(t *testing.T) {
	md := c.compiled(t)
	if _, err := protorow.Of[proto.Message](md, c.options); c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
		t.Errorf("error %v, want one that says %q", err, c.says)
	}
	if got := schemaOf(t, md, c.options); c.schema != "" && got != c.schema {
		t.Errorf("schema %s, want %s", got, c.schema)
	}
	if got := rowOf(t, md, c.options, message(t, md, c.record)); c.row != "" && got != c.row {
		t.Errorf("row %s, want %s", got, c.row)
	}
}

func (c *conform) compiled(t *testing.T) protoreflect.MessageDescriptor {
	t.Helper()
	sources := map[string]string{"m.proto": source(cmp.Or(c.syntax, proto3), c.fields)}
	if c.others != nil {
		sources["m.proto"] = cmp.Or(c.syntax, proto3) + "; package t;"
		for name, text := range c.others {
			sources["m.proto"] += ` import "` + name + `";`
			sources[name] = text
		}
		sources["m.proto"] += " message M { " + c.fields + " }"
	}
	return compiled(t, sources)
}

func TestValues(t *testing.T) {
	for _, c := range valueCases() {
		t.Run(c.name, c.run)
	}
}

func valueCases() []conform {
	const times = "google.protobuf.Timestamp t = 1; google.protobuf.Duration d = 2;"
	return []conform{
		{name: "SER-7 int32", fields: "int32 f = 1;", record: "f: -42", schema: "f INT64", row: "f: -42"},
		{name: "SER-7 sint, sfixed", fields: "sint32 a = 1; sint64 b = 2; sfixed32 c = 3; sfixed64 d = 4; int64 e = 5;",
			record: "a: -2147483648 b: -9223372036854775808 c: -1 d: -2 e: -3",
			row:    "a: -2147483648, b: -9223372036854775808, c: -1, d: -2, e: -3"},
		{name: "SER-8 uint32", fields: "uint32 f = 1; fixed32 g = 2;", record: "f: 3000000000 g: 4294967295", schema: "f INT64, g INT64", row: "f: 3000000000, g: 4294967295"},
		{name: "SER-9 uint64", fields: "uint64 f = 1; fixed64 g = 2;", record: "f: 9223372036854775807 g: 9223372036854775807", row: "f: 9223372036854775807, g: 9223372036854775807"},
		{name: "SER-9 uint64 too large", fields: "M2 m = 1; --- message M2 { uint64 f = 1; }", record: "m { f: 17293822569102704640 }", row: "R-RANGE m.f"},
		{name: "SER-9 fixed64 too large", fields: "repeated fixed64 f = 1;", record: "f: [1, 9223372036854775808]", row: "R-RANGE f[1]"},
		{name: "SER-10 floats", fields: "float f = 1; double d = 2; float i = 3; double z = 4;", record: "f: 1.1 d: nan i: -inf z: -0", schema: "f FLOAT64, d FLOAT64, i FLOAT64, z FLOAT64",
			row: "f: 1.100000023841858, d: NaN, i: -Inf, z: -0"},
		{name: "SER-11 zeros are written", fields: "string s = 1; bool b = 2; int64 i = 3; bytes y = 4; double d = 5;", schema: "s STRING, b BOOL, i INT64, y BYTES, d FLOAT64", row: `s: "", b: false, i: 0, y: "", d: 0`},
		{name: "SER-12 text that is not UTF-8", syntax: proto2, fields: "optional string s = 1;", record: `s: "a\xff"`, row: "R-TEXT s"},
		{name: "SER-12 deep inside", syntax: proto2, fields: "repeated M2 m = 1; --- message M2 { map<string, string> v = 1; }", record: `m {} m { v { key: "a" value: "b" } v { key: "k" value: "\xff" } }`, row: "R-TEXT m[1].v[1].value"},
		{name: "SER-13 enums", fields: "C a = 1; C b = 2; C c = 3; --- enum C { ZERO = 0; RED = 1; }", record: "a: RED c: 7", schema: "a STRING, b STRING, c STRING", row: `a: "RED", b: "ZERO", c: "UNKNOWN_ENUM_VALUE_C_7"`},
		{name: "SER-13 nested, negative", fields: "enum Color { Z = 0; LOW = -5; HIGH = 2000000000; } repeated Color c = 1;", record: "c: [LOW, HIGH, -2147483648, 1]",
			row: `c: ["LOW", "HIGH", "UNKNOWN_ENUM_VALUE_Color_-2147483648", "UNKNOWN_ENUM_VALUE_Color_1"]`},
		{name: "SER-14 alias", fields: "C c = 1; --- enum C { option allow_alias = true; Z = 0; A = 1; B = 1; }", record: "c: B", row: `c: "A"`},
		{name: "SER-15 Timestamp", fields: times, record: "t { seconds: 1767323045 nanos: 123456789 }", schema: "t TIMESTAMP, d INT64", row: "t: 1767323045123456, d: NULL"},
		{name: "SER-16 before 1970", fields: times, record: "t { seconds: -1 nanos: 999999999 }", row: "t: -1, d: NULL"},
		{name: "SER-16 first and last", fields: "repeated google.protobuf.Timestamp t = 1;", record: "t { seconds: -62135596800 } t { seconds: 253402300799 nanos: 999999999 }", row: "t: [-62135596800000000, 253402300799999999]"},
		{name: "SER-16 after 9999", fields: times, record: "t { seconds: 253402300800 }", row: "R-RANGE t"},
		{name: "SER-16 before year 1", fields: times, record: "t { seconds: -62135596801 nanos: 999999999 }", row: "R-RANGE t"},
		{name: "SER-16 nanos", fields: times, record: "t { nanos: 1000000000 }", row: "R-RANGE t"},
		{name: "SER-16 negative nanos", fields: times, record: "t { seconds: 1 nanos: -1 }", row: "R-RANGE t"},
		{name: "SER-17 Duration", fields: "repeated google.protobuf.Duration d = 1;", record: "d { seconds: 1 nanos: 500000000 } d { nanos: -1500 } d { nanos: 1500 } d { seconds: -315576000000 nanos: -999999999 }",
			schema: "d REPEATED INT64", row: "d: [1500000, -1, 1, -315576000000999999]"},
		{name: "SER-18 seconds", fields: "M2 m = 1; --- message M2 { google.protobuf.Duration d = 1; }", record: "m { d { seconds: 9223372036854775807 } }", row: "R-RANGE m.d"},
		{name: "SER-18 signs", fields: times, record: "d { seconds: 1 nanos: -1 }", row: "R-RANGE d"},
		{name: "SER-18 other signs", fields: times, record: "d { seconds: -1 nanos: 1 }", row: "R-RANGE d"},
		{name: "SER-18 nanos", fields: times, record: "d { nanos: 1000000000 }", row: "R-RANGE d"},
		{name: "SER-19 FieldMask", fields: "google.protobuf.FieldMask a = 1; google.protobuf.FieldMask b = 2; google.protobuf.FieldMask c = 3;",
			record: `a { paths: ["user.display_name", "", "photo"] } b {}`, schema: "a STRING, b STRING, c STRING", row: `a: "user.display_name,photo", b: "", c: NULL`},
		{name: "SER-20 wrappers", fields: "google.protobuf.Int64Value a = 1; google.protobuf.Int64Value b = 2; google.protobuf.StringValue c = 3; google.protobuf.BoolValue d = 4; google.protobuf.FloatValue e = 5;" +
			"google.protobuf.BytesValue f = 6; google.protobuf.UInt32Value g = 7; google.protobuf.Int32Value h = 8; google.protobuf.DoubleValue i = 9;",
			record: "b {} c {} d {} e { value: 1.1 } f { value: 'x' } g { value: 4294967295 } h { value: -1 }", schema: "a INT64, b INT64, c STRING, d BOOL, e FLOAT64, f BYTES, g INT64, h INT64, i FLOAT64",
			row: `a: NULL, b: 0, c: "", d: false, e: 1.100000023841858, f: "x", g: 4294967295, h: -1, i: NULL`},
		{name: "SER-20 repeated", fields: "repeated google.protobuf.Int64Value a = 1;", record: "a { value: 5 } a {}", schema: "a REPEATED INT64", row: "a: [5, 0]"},
		{name: "SER-21 UInt64Value", fields: "repeated google.protobuf.UInt64Value a = 1;", record: "a { value: 1 } a { value: 9223372036854775808 }", row: "R-RANGE a[1]"},
		{name: "SER-22 Struct", fields: "google.protobuf.Struct s = 1;", record: "s { fields { key: 'k' value { number_value: 1 } } }", schema: "s JSON", row: "s: `{\"k\":1}`"},
		{name: "SER-22 Struct, sorted and nested", fields: "google.protobuf.Struct s = 1;", record: "s { fields { key: 'b' value { struct_value { fields { key: 'x y' value { string_value: ' \" \\\\ ' } } } } } fields { key: 'a' value { bool_value: false } } }",
			row: "s: `{\"a\":false,\"b\":{\"x y\":\" \\\" \\\\ \"}}`"},
		{name: "SER-23 Value", fields: "google.protobuf.Value a = 1; google.protobuf.Value b = 2; google.protobuf.Value c = 3;", record: "a { string_value: 'abc' } b { null_value: NULL_VALUE }", schema: "a JSON, b JSON, c JSON", row: "a: `\"abc\"`, b: `null`, c: NULL"},
		{name: "SER-24 ListValue", fields: "google.protobuf.ListValue l = 1;", record: "l { values { number_value: 1 } values { bool_value: true } values { null_value: NULL_VALUE } }", schema: "l JSON", row: "l: `[1,true,null]`"},
		{name: "SER-25 repeated Struct", fields: "repeated google.protobuf.Struct s = 1;", record: "s {} s { fields { key: 'k' value { string_value: 'v' } } }", schema: "s REPEATED JSON", row: "s: [`{}`, `{\"k\":\"v\"}`]"},
		{name: "SER-26 Value without a kind", fields: "google.protobuf.Value v = 1;", record: "v {}", row: "R-PRINT v"},
		{name: "SER-26 NaN", fields: "google.protobuf.ListValue v = 1;", record: "v { values { number_value: nan } }", row: "R-PRINT v"},
		{name: "SER-27 Any", fields: "google.protobuf.Any a = 1; google.protobuf.Any b = 2;", record: `a { type_url: "x.Y" value: "p\xff" }`, schema: "a STRUCT<type_url STRING, value BYTES>, b STRUCT<type_url STRING, value BYTES>", row: `a: {type_url: "x.Y", value: "p\xff"}, b: NULL`},
		{name: "SER-33 map", fields: "map<string, int64> m = 1;", record: "m { key: 'b' value: 2 } m { key: 'a' value: 1 }", schema: "m REPEATED STRUCT<key STRING, value INT64>", row: `m: [{key: "a", value: 1}, {key: "b", value: 2}]`},
		{name: "SER-33 maps by number and bool", fields: "map<sint32, string> i = 1; map<fixed64, bool> u = 2; map<bool, M> b = 3;", options: protorow.Options{JSONPaths: []string{"b.value"}},
			record: "i { key: 2 value: 'b' } i { key: -1 value: 'a' } i { key: 10 } u { key: 9223372036854775807 } u { key: 3 value: true } b { key: true value {} } b { key: false value { i { key: 1 } } }",
			row:    "i: [{key: -1, value: \"a\"}, {key: 2, value: \"b\"}, {key: 10, value: \"\"}], u: [{key: 3, value: true}, {key: 9223372036854775807, value: false}], b: [{key: false, value: `{\"i\":{\"1\":\"\"}}`}, {key: true, value: `{}`}]"},
		{name: "SER-34 oneof", fields: "oneof o { int64 a = 1; int64 b = 2; string c = 3; }", record: "b: 7", schema: "a INT64, b INT64, c STRING", row: "a: NULL, b: 7, c: NULL"},
		{name: "SER-34 oneof of a zero", fields: "oneof o { int64 a = 1; string c = 3; }", record: "c: ''", row: `a: NULL, c: ""`},
		{name: "SER-35 declared default", syntax: proto2, fields: "optional int32 f = 1 [default = 5];", row: "f: NULL"},
		{name: "SER-36 fooBar", fields: "int32 fooBar = 1;", record: "fooBar: 3", schema: "fooBar INT64", row: "fooBar: 3"},
		{name: "SER-37 set and empty", fields: "I a = 1; I b = 2; --- message I { string s = 1; int64 n = 2; I2 i = 3; } message I2 { bool b = 1; }", record: "a {}", row: `a: {s: "", n: 0, i: NULL}, b: NULL`},
		{name: "groups", syntax: proto2, fields: "optional group G = 1 { optional int64 n = 1; repeated group H = 2 { optional string s = 3; } }", record: "G { n: 1 H { s: 'x' } H {} }",
			schema: "g STRUCT<n INT64, h REPEATED STRUCT<s STRING>>", row: `g: {n: 1, h: [{s: "x"}, {s: NULL}]}`},
		{name: "delimited messages", syntax: newest, fields: "I i = 1 [features.message_encoding = DELIMITED]; int32 n = 2 [features.field_presence = IMPLICIT]; int32 o = 3; --- message I { string s = 1; }",
			record: "i { s: 'x' }", row: `i: {s: "x"}, n: 0, o: NULL`},
		{name: "lists that are not packed", syntax: proto2, fields: "repeated sint32 a = 1; repeated float b = 2; repeated bool c = 3 [packed = true]; repeated string d = 4;", record: "a: [-1, 1] b: [1.5] c: [true, false] d: ['', 'x']",
			row: `a: [-1, 1], b: [1.5], c: [true, false], d: ["", "x"]`},
		{name: "unknown number of a closed enum", syntax: proto2, fields: "optional C c = 1; --- enum C { RED = 1; }", row: "c: NULL"},
		{name: "nothing at all", syntax: proto2, fields: "optional int64 a = 1; repeated string b = 2;", row: "a: NULL, b: []"},
	}
}

// Declarations among other files: names of protobuf's own with other fields, and messages that are not protobuf's own.
func TestNamesakes(t *testing.T) {
	for _, c := range namesakeCases() {
		t.Run(c.name, c.run)
	}
}

func namesakeCases() (cases []conform) {
	for _, c := range []struct{ name, file, text, field, record, schema, row string }{
		{"SER-32 Duration", "mine.proto", "package google.protobuf; message Duration { int64 millis = 1; }", "google.protobuf.Duration f = 1;", "f { millis: 5 }", "f STRUCT<millis INT64>", "f: {millis: 5}"},
		{"SER-32 Timestamp", "mine.proto", "package google.protobuf; message Timestamp { string seconds = 1; int32 nanos = 2; }", "google.protobuf.Timestamp f = 1;", "f { seconds: 'x' }", "f STRUCT<seconds STRING, nanos INT64>", `f: {seconds: "x", nanos: 0}`},
		{"SER-32 FieldMask", "mine.proto", "package google.protobuf; message FieldMask { string paths = 1; }", "google.protobuf.FieldMask f = 1;", "f { paths: 'x' }", "f STRUCT<paths STRING>", `f: {paths: "x"}`},
		{"SER-32 wrapper", "mine.proto", "package google.protobuf; message Int64Value { repeated int64 value = 1; }", "google.protobuf.Int64Value f = 1;", "f { value: 5 }", "f STRUCT<value REPEATED INT64>", "f: {value: [5]}"},
		{"SER-32 Struct", "mine.proto", "package google.protobuf; message Struct { string fields = 1; }", "google.protobuf.Struct f = 1;", "f { fields: 'x' }", "f STRUCT<fields STRING>", `f: {fields: "x"}`},
		{"SER-32 the fields under other numbers", "mine.proto", "package google.protobuf; message Timestamp { sfixed32 nanos = 7; sint64 seconds = 3000000; }", "google.protobuf.Timestamp f = 1;", "f { seconds: -1 nanos: 2000 }", "f TIMESTAMP", "f: -999998"},
		{"SER-38 google.type.Date", "google/type/date.proto", "package google.type; message Date { int32 year = 1; int32 month = 2; int32 day = 3; }", "google.type.Date f = 1;", "f { year: 2026 month: 11 }",
			"f STRUCT<year INT64, month INT64, day INT64>", "f: {year: 2026, month: 11, day: 0}"},
	} {
		cases = append(cases, conform{name: c.name, fields: c.field, others: map[string]string{c.file: proto3 + "; " + c.text}, record: c.record, schema: c.schema, row: c.row})
	}
	return cases
}

func TestRejections(t *testing.T) {
	for _, c := range rejectionCases() {
		t.Run(c.name, c.run)
	}
}

func rejectionCases() []conform {
	nested := func(levels int) string {
		text := "L1 a = 1; ---\n"
		for i := 1; i < levels; i++ {
			text += fmt.Sprintf("message L%d { L%d a = 1; }\n", i, i+1)
		}
		return text + fmt.Sprintf("message L%d { int64 a = 1; }", levels)
	}
	deep := strings.Repeat("a.", 15) + "a"
	record := strings.Repeat("a { ", 15) + "a: 7" + strings.Repeat(" }", 15)
	return []conform{
		{name: "SER-28 Empty", fields: "M2 m = 1; --- message M2 { google.protobuf.Empty e = 1; }", schema: "C-EMPTY m.e", says: "google.protobuf.Empty"},
		{name: "SER-28 root", fields: "", schema: "C-EMPTY"},
		{name: "SER-29 itself", fields: "Node n = 1; --- message Node { Node child = 1; }", schema: "C-RECURSIVE n.child"},
		{name: "SER-29 itself as a list, a map, and by way of another", fields: "repeated M a = 1; map<string, M> b = 2; N c = 3; --- message N { M m = 1; }", schema: "C-RECURSIVE a, C-RECURSIVE b.value, C-RECURSIVE c.m"},
		{name: "SER-29 marked", fields: "string n = 1; M child = 2;", options: protorow.Options{JSONPaths: []string{"child"}}, record: "child { n: 'x' child {} }", schema: "n STRING, child JSON", row: "n: \"\", child: `{\"n\":\"x\",\"child\":{}}`", stored: "n: \"\", child: `{\"child\":{},\"n\":\"x\"}`"},
		{name: "SER-30 used by siblings", fields: "I a = 1; I b = 2; repeated I c = 3; --- message I { int64 n = 1; }", record: "a { n: 1 } c { n: 3 } c {}",
			schema: "a STRUCT<n INT64>, b STRUCT<n INT64>, c REPEATED STRUCT<n INT64>", row: "a: {n: 1}, b: NULL, c: [{n: 3}, {n: 0}]"},
		{name: "SER-31 id and ID", fields: "int64 id = 1; int64 ID = 2;", schema: "C-CASE ID", says: "t.M has id and ID (at <root>)"},
		{name: "SER-31 nested, in a map", fields: "map<string, I> m = 1; I i = 2; --- message I { int64 fooBar = 1; int64 foobar = 2; }", schema: "C-CASE m.value.foobar, C-CASE i.foobar", says: "t.I has fooBar and foobar (at m.value)"},
		{name: "SER-39 16 levels", fields: nested(16), schema: "C-DEPTH " + deep},
		{name: "SER-39 15 levels", fields: nested(15), record: record, schema: strings.Repeat("a STRUCT<", 15) + "a INT64" + strings.Repeat(">", 15),
			row: strings.Repeat("a: {", 15) + "a: 7" + strings.Repeat("}", 15)},
		{name: "SER-39 a map counts", fields: strings.Replace(nested(15), "int64 a = 1", "map<string, string> a = 1", 1), schema: "C-DEPTH " + deep},
		{name: "reserved name", fields: "int64 _PARTITIONTIME = 1;", schema: "C-NAME _PARTITIONTIME"},
	}
}

func TestModes(t *testing.T) {
	for _, c := range modeCases() {
		t.Run(c.name, c.run)
	}
}

func modeCases() []conform {
	required := protorow.Options{DeriveRequired: true}
	const every = "int64 a = 1; optional int64 b = 2; E c = 3; I d = 4; google.protobuf.Int64Value e = 5; google.protobuf.Timestamp f = 6; oneof o { string g = 7; } repeated int64 h = 8; map<string, int64> i = 9; google.protobuf.Struct j = 10;" +
		" --- enum E { Z = 0; } message I { string s = 1; }"
	const legacy = "required google.protobuf.Int64Value a = 1; optional google.protobuf.Int64Value b = 2; required string c = 3; optional string d = 4; required I e = 5; --- message I { optional int64 n = 1; }"
	return []conform{
		{name: "SER-40 no options", fields: every, schema: "a INT64, b INT64, c STRING, d STRUCT<s STRING>, e INT64, f TIMESTAMP, g STRING, h REPEATED INT64, i REPEATED STRUCT<key STRING, value INT64>, j JSON"},
		{name: "SER-41 proto3", fields: every, options: required, schema: "a REQUIRED INT64, b INT64, c REQUIRED STRING, d STRUCT<s REQUIRED STRING>, e INT64, f TIMESTAMP, g STRING, h REPEATED INT64, " +
			"i REPEATED STRUCT<key REQUIRED STRING, value REQUIRED INT64>, j JSON"},
		{name: "SER-42 proto2", syntax: proto2, fields: legacy, options: required, schema: "a REQUIRED INT64, b INT64, c REQUIRED STRING, d STRING, e REQUIRED STRUCT<n INT64>", record: "a {} c: 'x' e {}", row: `a: 0, b: NULL, c: "x", d: NULL, e: {n: NULL}`},
		{name: "SER-42 proto2 without", syntax: proto2, fields: legacy, schema: "a INT64, b INT64, c STRING, d STRING, e STRUCT<n INT64>"},
		{name: "SER-43 maps", fields: "map<string, int64> a = 1; map<string, google.protobuf.Int64Value> b = 2;", options: required, record: "a { key: 'x' } b { key: 'y' }",
			schema: "a REPEATED STRUCT<key REQUIRED STRING, value REQUIRED INT64>, b REPEATED STRUCT<key REQUIRED STRING, value INT64>", row: `a: [{key: "x", value: 0}], b: [{key: "y", value: 0}]`},
		{name: "SER-43 maps of proto2", syntax: proto2, fields: "map<string, int64> a = 1;", options: required, record: "a { key: 'x' }", schema: "a REPEATED STRUCT<key STRING, value INT64>", row: `a: [{key: "x", value: 0}]`},
		{name: "SER-44 below a NULLABLE struct", fields: "I i = 1; I j = 2; --- message I { string s = 1; }", options: required, record: "i {}", schema: "i STRUCT<s REQUIRED STRING>, j STRUCT<s REQUIRED STRING>", row: `i: {s: ""}, j: NULL`},
		{name: "SER-45 required and missing", syntax: proto2, fields: "optional I i = 1; --- message I { required int64 n = 1; }", options: required, record: "i {}", row: "R-REQUIRED i.n"},
		{name: "SER-45 missing, without", syntax: proto2, fields: "optional I i = 1; --- message I { required int64 n = 1; }", record: "i {}", row: "i: {n: NULL}"},
		{name: "SER-46 marked", fields: "string s = 1;", options: protorow.Options{DeriveRequired: true, JSONPaths: []string{"s"}}, schema: "s JSON", row: "s: NULL"},
		{name: "SER-46 marked and required", syntax: proto2, fields: "required string s = 1;", options: protorow.Options{DeriveRequired: true, JSONPaths: []string{"s"}}, record: "s: ''", schema: "s JSON", row: "s: ``", refused: true},
		{name: "editions", syntax: newest, fields: "int64 a = 1; int64 b = 2 [features.field_presence = LEGACY_REQUIRED]; int64 c = 3 [features.field_presence = IMPLICIT];", options: required, record: "b: 0", schema: "a INT64, b REQUIRED INT64, c REQUIRED INT64", row: "a: NULL, b: 0, c: 0"},
	}
}

// SER-48: the printed message is read from bytes that are anything.
func TestDamagedMessageIsNotPrinted(t *testing.T) {
	md := compiled(t, map[string]string{"m.proto": source(proto3, "I v = 1; --- message I { map<string, int64> m = 1; string s = 2; }")})
	s, err := protorow.Wire(md, func(b []byte) []byte { return b }, jsonPaths("v"))
	if err != nil {
		t.Fatal(err)
	}
	for name, wire := range map[string]string{
		"a key that is text and then a number": "\x0a\x07\x0a\x05\x0a\x01k\x08\x01",
		"a field that is cut":                  "\x0a\x02\x0a\x05",
		"text that is not UTF-8":               "\x0a\x03\x12\x01\xff",
	} {
		if _, err := s.AppendRow(nil, nowhere, []byte(wire)); err == nil || faultsOf(err) != "R-PRINT v" {
			t.Errorf("%s: %v, want R-PRINT", name, err)
		}
	}
}
