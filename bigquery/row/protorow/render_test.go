package protorow_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/protorow"
	"github.com/millrace-dev/millrace/bigquery/table"
)

var nowhere table.Destination

// compiled is the descriptor of the message M in the file m.proto among some sources.
func compiled(t testing.TB, sources map[string]string) protoreflect.MessageDescriptor {
	t.Helper()
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(sources)})}
	files, err := compiler.Compile(context.Background(), "m.proto")
	if err != nil {
		t.Fatalf("%v, in %s", err, sources["m.proto"])
	}
	return files[0].Messages().ByName("M")
}

// source is a file with a message M of these fields. Declarations that need a place of their own stand behind "---".
func source(syntax, fields string) string {
	fields, rest, _ := strings.Cut(fields, "---")
	var imports string
	for _, name := range []string{"any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers"} {
		imports += `import "google/protobuf/` + name + `.proto"; `
	}
	return syntax + "; package t; " + imports + "\nmessage M {\n" + fields + "\n}\n" + rest
}

const (
	proto2 = `syntax = "proto2"`
	proto3 = `syntax = "proto3"`
	newest = `edition = "2023"`
)

// message is a dynamic message made from text.
func message(t testing.TB, md protoreflect.MessageDescriptor, text string) *dynamicpb.Message {
	t.Helper()
	m := dynamicpb.NewMessage(md)
	if err := (prototext.UnmarshalOptions{AllowPartial: true}).Unmarshal([]byte(text), m); err != nil {
		t.Fatalf("%v, in %s", err, text)
	}
	return m
}

// rowOf is the row of a message as text, or its error's kind and path. It is made from the message and from its wire form,
// which must agree.
func rowOf(t testing.TB, md protoreflect.MessageDescriptor, o protorow.Options, rec proto.Message) string {
	t.Helper()
	s, err := protorow.Of[proto.Message](md, o)
	if err != nil {
		return faultsOf(err)
	}
	w, err := protorow.Wire(md, func(b []byte) []byte { return b }, o)
	if err != nil {
		t.Fatalf("Wire: %v, and Of takes the type", err)
	}
	got, gotErr := s.AppendRow(nil, nowhere, rec)
	if wire, err := (proto.MarshalOptions{AllowPartial: true}).Marshal(rec); err == nil {
		again, againErr := w.AppendRow(nil, nowhere, wire)
		if string(got) != string(again) || fmt.Sprint(gotErr) != fmt.Sprint(againErr) {
			t.Errorf("the message gives %x, %v, its wire form %x, %v", got, gotErr, again, againErr)
		}
	}
	if gotErr != nil {
		return faultsOf(gotErr)
	}
	schema, err := s.Schema(nowhere)
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, schema, got)
}

func decoded(t testing.TB, schema *table.Schema, data []byte) string {
	t.Helper()
	d, err := row.NewDecoder(schema)
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.Decode(data)
	if err != nil {
		t.Fatalf("%x: %v", data, err)
	}
	text := members(schema.Fields, r.Values)
	return text[1 : len(text)-1]
}

// faultsOf is kinds and paths of an error: "C-CASE a.b, C-PATH c".
func faultsOf(err error) string {
	faults := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		faults = joined.Unwrap()
	}
	var out []string
	for _, f := range faults {
		e, ok := errors.AsType[*row.Error](f)
		if !ok {
			out = append(out, "no *row.Error: "+f.Error())
			continue
		}
		out = append(out, strings.TrimSpace(string(e.Kind)+" "+e.Path))
	}
	return strings.Join(out, ", ")
}

// members is values as text: {a: 1, b: NULL, c: ["x"]}.
func members(fields []table.Field, values []row.Value) string {
	var out []string
	for i := range fields {
		f := fields[i]
		if f.Mode != table.Repeated {
			out = append(out, f.Name+": "+single(&f, &values[i]))
			continue
		}
		var list []string
		for k := range values[i].List {
			list = append(list, single(&f, &values[i].List[k]))
		}
		out = append(out, f.Name+": ["+strings.Join(list, ", ")+"]")
	}
	return "{" + strings.Join(out, ", ") + "}"
}

func single(f *table.Field, v *row.Value) string {
	switch {
	case v.Null:
		return "NULL"
	case f.Type == table.Struct:
		return members(f.Fields, v.List)
	case f.Type == table.Float64:
		return fmt.Sprint(math.Float64frombits(uint64(v.Int)))
	case f.Type == table.Bool:
		return fmt.Sprint(v.Int == 1)
	case f.Type == table.String, f.Type == table.Bytes:
		return fmt.Sprintf("%q", v.Bytes)
	case f.Type == table.JSON, f.Type == table.Geography:
		return "`" + string(v.Bytes) + "`"
	}
	return fmt.Sprint(v.Int)
}

// schemaOf is the columns as text: "a INT64, b REQUIRED STRUCT<c REPEATED STRING>"; or faults.
func schemaOf(t testing.TB, md protoreflect.MessageDescriptor, o protorow.Options) string {
	t.Helper()
	s, err := protorow.Of[proto.Message](md, o)
	if err != nil {
		return faultsOf(err)
	}
	schema, err := s.Schema(nowhere)
	if err != nil {
		t.Fatal(err)
	}
	return columns(schema.Fields)
}

func columns(fields []table.Field) string {
	var out []string
	for _, f := range fields {
		text := f.Name
		if f.Mode != table.Nullable {
			text += " " + f.Mode.String()
		}
		text += " " + f.Type.String()
		if f.Type == table.Struct {
			text += "<" + columns(f.Fields) + ">"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}
