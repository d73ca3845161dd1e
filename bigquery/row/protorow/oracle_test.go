package protorow_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// expected is the row of a message as text, as members writes it: the rules once more, by reflection, slow and plain. It
// panics with a kind where there is no row.
func expected(m protoreflect.Message) string {
	var out []string
	fds := m.Descriptor().Fields()
	for i := range fds.Len() {
		fd := fds.Get(i)
		out = append(out, string(fd.Name())+": "+expectedField(m, fd))
	}
	return "{" + strings.Join(out, ", ") + "}"
}

func expectedField(m protoreflect.Message, fd protoreflect.FieldDescriptor) string {
	var list []string
	switch {
	case fd.IsMap():
		for _, k := range sortedKeys(m.Get(fd).Map(), fd.MapKey().Kind()) {
			list = append(list, "{key: "+expectedValue(fd.MapKey(), k.Value())+", value: "+expectedValue(fd.MapValue(), m.Get(fd).Map().Get(k))+"}")
		}
		return "[" + strings.Join(list, ", ") + "]"
	case fd.IsList():
		for i := range m.Get(fd).List().Len() {
			list = append(list, expectedValue(fd, m.Get(fd).List().Get(i)))
		}
		return "[" + strings.Join(list, ", ") + "]"
	case fd.HasPresence() && !m.Has(fd):
		return "NULL"
	}
	return expectedValue(fd, m.Get(fd))
}

func sortedKeys(m protoreflect.Map, kind protoreflect.Kind) (keys []protoreflect.MapKey) {
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int {
		switch a.Interface().(type) {
		case bool:
			return strings.Compare(fmt.Sprint(a.Bool()), fmt.Sprint(b.Bool()))
		case string:
			return strings.Compare(a.String(), b.String())
		case uint32, uint64:
			return cmp.Compare(a.Uint(), b.Uint())
		}
		return cmp.Compare(a.Int(), b.Int())
	})
	return keys
}

func expectedValue(fd protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch x := v.Interface().(type) {
	case protoreflect.EnumNumber:
		if d := fd.Enum().Values().ByNumber(x); d != nil {
			return fmt.Sprintf("%q", d.Name())
		}
		return fmt.Sprintf("%q", fmt.Sprintf("UNKNOWN_ENUM_VALUE_%s_%d", fd.Enum().Name(), x))
	case protoreflect.Message:
		return expectedMessage(x)
	case float32:
		return fmt.Sprint(float64(x))
	case string:
		if !utf8.ValidString(x) {
			panic("R-TEXT")
		}
		return fmt.Sprintf("%q", x)
	case []byte:
		return fmt.Sprintf("%q", x)
	case uint64:
		if x > math.MaxInt64 {
			panic("R-RANGE")
		}
	}
	return fmt.Sprint(v.Interface())
}

func expectedMessage(m protoreflect.Message) string {
	field := func(name protoreflect.Name) protoreflect.Value {
		return m.Get(m.Descriptor().Fields().ByName(name))
	}
	switch name := m.Descriptor().FullName(); name {
	case "google.protobuf.Timestamp", "google.protobuf.Duration":
		s, n := field("seconds").Int(), field("nanos").Int()
		if name == "google.protobuf.Timestamp" && (s < -62135596800 || s > 253402300799 || n < 0 || n > 999999999) ||
			name == "google.protobuf.Duration" && (s < -315576000000 || s > 315576000000 || n < -999999999 || n > 999999999 || s > 0 && n < 0 || s < 0 && n > 0) {
			panic("R-RANGE")
		}
		return fmt.Sprint(s*1e6 + n/1e3)
	case "google.protobuf.FieldMask":
		var paths []string
		for i := range field("paths").List().Len() {
			if p := field("paths").List().Get(i).String(); p != "" {
				paths = append(paths, p)
			}
		}
		return fmt.Sprintf("%q", strings.Join(paths, ","))
	case "google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue":
		text, err := (protojson.MarshalOptions{Resolver: new(protoregistry.Types)}).Marshal(m.Interface())
		if err != nil {
			panic("R-PRINT")
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, text); err != nil {
			panic(err)
		}
		return "`" + compact.String() + "`"
	}
	if fds := m.Descriptor().Fields(); strings.HasPrefix(string(m.Descriptor().FullName()), "google.protobuf.") && fds.Len() == 1 && fds.Get(0).Name() == "value" {
		return expectedValue(fds.Get(0), field("value"))
	}
	return expected(m)
}

// expectedRow is what expected answers, or the kind it panics with.
func expectedRow(m protoreflect.Message) (text string) {
	defer func() {
		if kind, ok := recover().(string); ok {
			text = kind
		}
	}()
	return expected(m)
}

// dynamicallyDecoded reads a row by its descriptor, with the protobuf library alone.
func dynamicallyDecoded(t testing.TB, d *descriptorpb.DescriptorProto, schema *table.Schema, data []byte) string {
	t.Helper()
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{Name: proto.String("row.proto"), Syntax: proto.String("proto2"),
		MessageType: []*descriptorpb.DescriptorProto{d}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := dynamicpb.NewMessage(file.Messages().Get(0))
	if err := proto.Unmarshal(data, m); err != nil || len(m.GetUnknown()) > 0 {
		t.Fatalf("%x is no row: %v, unknown %x", data, err, m.GetUnknown())
	}
	return dynamicMembers(schema.Fields, m)
}

func dynamicMembers(columns []table.Field, m protoreflect.Message) string {
	var out []string
	for i := range columns {
		f, fd := &columns[i], m.Descriptor().Fields().Get(i)
		var text string
		switch {
		case fd.IsList():
			var list []string
			for k := range m.Get(fd).List().Len() {
				list = append(list, dynamicValue(f, m.Get(fd).List().Get(k)))
			}
			text = "[" + strings.Join(list, ", ") + "]"
		case m.Has(fd):
			text = dynamicValue(f, m.Get(fd))
		default:
			text = "NULL"
		}
		out = append(out, f.Name+": "+text)
	}
	return "{" + strings.Join(out, ", ") + "}"
}

func dynamicValue(f *table.Field, v protoreflect.Value) string {
	switch f.Type {
	case table.Struct:
		return dynamicMembers(f.Fields, v.Message())
	case table.String, table.Bytes:
		return fmt.Sprintf("%q", v.Interface())
	case table.JSON:
		return "`" + v.String() + "`"
	}
	return fmt.Sprint(v.Interface())
}
