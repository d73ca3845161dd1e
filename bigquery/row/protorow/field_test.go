package protorow_test

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/protorow"
)

func TestAppendField(t *testing.T) {
	const fields = `string s = 1; int32 i = 2; sint64 z = 3; uint64 u = 4; bool b = 5; E e = 6; bytes x = 7; double d = 8; repeated string r = 9;
		I in = 10; optional int64 maybe = 11; oneof o { string left = 12; I right = 13; } map<string, string> m = 14; google.protobuf.StringValue w = 15;
		fixed64 f = 16; --- enum E { ZERO = 0; RED = 1; } message I { string s = 1; I deeper = 2; }`
	md := compiled(t, map[string]string{"m.proto": source(proto3, fields)})
	for _, c := range []struct{ path, message, want string }{
		{"s", `s: "tea"`, "tea"},
		{"s", `s: "a/../b\n"`, "a/../b\n"}, // whoever makes a name of it looks at it
		{"s", ``, "R-REQUIRED"},
		{"i", `i: -42`, "-42"},
		{"i", ``, "0"},
		{"z", `z: -9223372036854775808`, "-9223372036854775808"},
		{"u", `u: 18446744073709551615`, "18446744073709551615"},
		{"f", `f: 18446744073709551615`, "18446744073709551615"},
		{"b", `b: true`, "true"},
		{"b", ``, "false"},
		{"e", `e: RED`, "RED"},
		{"e", ``, "ZERO"},
		{"e", `e: 7`, "7"},
		{"in.s", `in { s: "x" }`, "x"},
		{"in.deeper.s", `in { deeper { s: "y" } }`, "y"},
		{"in.s", ``, "R-REQUIRED"},
		{"in.s", `in { }`, "R-REQUIRED"},
		{"maybe", ``, "R-REQUIRED"},
		{"maybe", `maybe: 0`, "0"},
		{"left", `left: "l"`, "l"},
		{"left", `right { s: "r" }`, "R-REQUIRED"},
		{"right.s", `right { s: "r" }`, "r"},
		{"w.value", `w { value: "v" }`, "v"},
		{"x", `x: "bytes"`, "R-TYPE"},
		{"d", `d: 1`, "R-TYPE"},
		{"r", `r: "a"`, "R-TYPE"},
		{"m.key", `m { key: "a" }`, "R-TYPE"},
		{"in", `in { }`, "R-TYPE"},
		{"s.s", `s: "a"`, "R-TYPE"},
		{"S", `s: "a"`, "R-REQUIRED"},
		{"", `s: "a"`, "R-REQUIRED"},
		{"in.", `in { }`, "R-REQUIRED"},
		{"no\x00such`", `s: "a"`, "R-REQUIRED"},
	} {
		wire, err := proto.Marshal(message(t, md, c.message))
		if err != nil {
			t.Fatal(err)
		}
		if got := fieldText(md, wire, c.path); got != c.want {
			t.Errorf("%s of %s is %s, want %s", c.path, c.message, got, c.want)
		}
	}
	for name, c := range map[string]struct{ path, wire, want string }{
		"the last of two":                  {"s", "\x0a\x01a\x0a\x01b", "b"},
		"a oneof that changed its mind":    {"left", "\x62\x01l\x6a\x00", "R-REQUIRED"},
		"and back":                         {"left", "\x6a\x00\x62\x01l", "l"},
		"a message in two pieces":          {"in.s", "\x52\x03\x0a\x01a\x52\x00", "a"},
		"and its later value":              {"in.s", "\x52\x03\x0a\x01a\x52\x03\x0a\x01b", "b"},
		"another wire type":                {"s", "\x08\x01", "R-REQUIRED"},
		"text that is not UTF-8":           {"s", "\x0a\x01\xff", "R-TEXT"},
		"bytes that are no message":        {"s", "\x0a\x09a", "R-TYPE"},
		"damage behind the field":          {"s", "\x0a\x01a\xff", "R-TYPE"},
		"a field number of half a billion": {"s", "\x0a\x01a\xf8\xff\xff\xff\x0f\x01", "a"},
	} {
		if got := fieldText(md, []byte(c.wire), c.path); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	// The message is not written to.
	pieces := append(make([]byte, 0, 64), "\x52\x03\x0a\x01a\x52\x03\x0a\x01b"...)
	before := string(pieces)
	if got := fieldText(md, pieces, "in.s"); got != "b" || string(pieces) != before || string(pieces[:12][10:12]) != "\x00\x00" {
		t.Errorf("%s, and the message became %q", got, pieces)
	}
}

func fieldText(md protoreflect.MessageDescriptor, wire []byte, path string) string {
	text, err := protorow.AppendField([]byte("> "), md, wire, path)
	if e := (*row.Error)(nil); errors.As(err, &e) {
		return string(e.Kind)
	}
	return string(text[2:])
}
