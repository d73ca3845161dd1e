package decode

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

func TestRowErrors(t *testing.T) {
	d := messageOf("Row", field("foo", "string"), field("bar", "int64"))
	s := tableOf(&schema.Field{Name: "foo", Type: schema.String, MaxLength: 10}, col("bar", schema.Timestamp))
	long, early, good := `foo: "twelve chars"`, "bar: -9223372036854775808", `foo: "ok" bar: 1`
	t.Run("LBQ-52 every bad row, with its index", func(t *testing.T) {
		p := compile(t, d, s)
		bad := p.Decode(rows(t, d, long, early, long, good), Request{})
		if len(bad) != 3 || bad[0].Index != 0 || bad[1].Index != 1 || bad[2].Index != 2 {
			t.Fatalf("got %+v", bad)
		}
		p.Reset()
		if got := decoded(t, p, Request{}, rows(t, d, good)); got != `{"bar":"1970-01-01T00:00:00.000001Z","foo":"ok"}` {
			t.Errorf("LBQ-54 after a reset: %s", got)
		}
	})
	t.Run("no more than asked for", func(t *testing.T) {
		var texts []string
		for range 200 {
			texts = append(texts, long)
		}
		if bad := compile(t, d, s).Decode(rows(t, d, texts...), Request{}); len(bad) != 100 {
			t.Errorf("%d errors, want 100", len(bad))
		}
		if bad := compile(t, d, s).Decode(rows(t, d, texts...), Request{MaxErrors: 3}); len(bad) != 3 {
			t.Errorf("%d errors, want 3", len(bad))
		}
	})
	t.Run("bytes that are no message", func(t *testing.T) {
		for _, row := range [][]byte{{0x0a}, {0x0a, 5, 'x'}, {0x08}, {0xff}, {0x0c}, {0x0b, 1}, {0x00, 0x00}} {
			if bad := compile(t, d, s).Decode([][]byte{row}, Request{}); len(bad) != 1 || bad[0].Message != errWire.Error() {
				t.Errorf("% x: %+v", row, bad)
			}
		}
	})
	t.Run("text that is not UTF-8", func(t *testing.T) {
		if bad := compile(t, d, s).Decode([][]byte{{0x0a, 1, 0xff}}, Request{}); len(bad) != 1 {
			t.Errorf("got %+v", bad)
		}
	})
	t.Run("LBQ-56 fields on the wire that the descriptor lacks", func(t *testing.T) {
		row := protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1)
		row = protowire.AppendString(protowire.AppendTag(row, 1, protowire.BytesType), "x")
		row = append(row, 0x9b, 0x06, 0x9c, 0x06) // an empty group of number 99
		if got := decoded(t, compile(t, d, s), Request{}, [][]byte{row}); got != `{"bar":null,"foo":"x"}` {
			t.Errorf("got %s", got)
		}
	})
	t.Run("LBQ-63 elements packed and not, whatever the descriptor says", func(t *testing.T) {
		for name, d := range map[string]*descriptorpb.DescriptorProto{
			"unpacked": messageOf("Row", repeated(field("v", "int64"))), "packed": messageOf("Row", packed(field("v", "int64"))),
		} {
			p := compile(t, d, tableOf(many(col("v", schema.Int64))))
			got := decoded(t, p, Request{}, [][]byte{{0x0a, 4, 1, 2, 0xac, 2}, {0x08, 1, 0x08, 2, 0x08, 0xac, 2}, {0x08, 1, 0x0a, 3, 2, 0xac, 2}})
			if want := `{"v":[1,2,300]}`; got != want+"\n"+want+"\n"+want {
				t.Errorf("%s descriptor: got\n%s", name, got)
			}
		}
	})
	t.Run("enum numbers without a name are unknown fields", func(t *testing.T) {
		d := messageOf("Row", of("e", "enum", "E"), repeated(of("l", "enum", "E")), enumOf("E", "A", "B"))
		p := compile(t, d, tableOf(col("e", schema.String), many(col("l", schema.Int64))))
		row := []byte{0x08, 10, 0x08, 5, 0x10, 5, 0x10, 10, 0x12, 2, 5, 0}
		if got := decoded(t, p, Request{}, [][]byte{row, {0x08, 5}}); got != `{"e":"B","l":[10,0]}`+"\n"+`{"e":null,"l":[]}` {
			t.Errorf("got %s", got)
		}
	})
	t.Run("taking a refused batch is a bug", func(t *testing.T) {
		p := compile(t, d, s)
		p.Decode(rows(t, d, long), Request{})
		defer func() {
			if recover() == nil {
				t.Error("Take returned")
			}
		}()
		p.Take()
	})
}

// model is a table whose values can be read off a message of the protobuf library directly.
func model() (*descriptorpb.DescriptorProto, *schema.Schema) {
	inner := messageOf("S", field("n", "sint64"), repeated(field("t", "string")))
	d := messageOf("Row",
		field("i", "int64"), field("u", "fixed32"), field("f", "double"), field("s", "string"), of("e", "enum", "E"), enumOf("E", "A", "B"),
		repeated(field("many", "int64")), of("one", "message", "S"), repeated(of("list", "message", "S")), inner, field("far", "bool"))
	d.Field[8].Number = new(int32(5000))
	member := func(f *schema.Field) *schema.Field {
		f.Fields = []*schema.Field{col("n", schema.Int64), many(col("t", schema.String))}
		return f
	}
	return d, tableOf(col("i", schema.Int64), col("u", schema.Int64), col("f", schema.Float64), col("s", schema.String), col("e", schema.String),
		many(col("many", schema.Int64)), member(structOf("one")), many(member(structOf("list"))), col("far", schema.Bool))
}

// slow prints a message as the decoder should see it.
func slow(m protoreflect.Message) string {
	var out string
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		out += " " + string(f.Name()) + "="
		switch {
		case f.IsList():
			l := m.Get(f).List()
			for j := range l.Len() {
				out += slowValue(f, l.Get(j)) + ";"
			}
		case !m.Has(f):
			out += "null"
		default:
			out += slowValue(f, m.Get(f))
		}
	}
	return out
}

func slowValue(f protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch {
	case f.Message() != nil:
		return "{" + slow(v.Message()) + " }"
	case f.Enum() != nil:
		return string(f.Enum().Values().ByNumber(v.Enum()).Name())
	case f.Kind() == protoreflect.StringKind:
		return fmt.Sprintf("%q", v.String())
	}
	return fmt.Sprint(v.Interface())
}

// TestAgainstLibrary decodes messages put together at random, with fields twice, out of order, unknown, packed and not, and of
// wire types they cannot have, and compares with what the protobuf library makes of them.
func TestAgainstLibrary(t *testing.T) {
	d, s := model()
	md := official(t, d)
	p := compile(t, d, s)
	rapid.Check(t, func(t *rapid.T) {
		row := randomMessage(t, md, 3)
		want := dynamicpb.NewMessage(md)
		if err := proto.Unmarshal(row, want); err != nil {
			t.Fatalf("the library refuses % x: %v", row, err)
		}
		if bad := p.Decode([][]byte{row, row}, Request{}); bad != nil {
			t.Fatalf("% x is refused: %+v", row, bad)
		}
		b := p.Take()
		for i := range 2 {
			if got, want := fast(b, s, i), slow(want); got != want {
				t.Fatalf("row %d of % x: got\n%s, want\n%s", i, row, got, want)
			}
		}
	})
}

// randomMessage is the bytes of some fields, some of them odd.
func randomMessage(t *rapid.T, md protoreflect.MessageDescriptor, depth int) []byte {
	var b []byte
	for range rapid.IntRange(0, 6).Draw(t, "fields") {
		f := md.Fields().Get(rapid.IntRange(0, md.Fields().Len()-1).Draw(t, "field"))
		number := f.Number()
		switch rapid.IntRange(0, 9).Draw(t, "oddity") {
		case 0:
			number = 77 // unknown
		case 1: // of another wire type; none of the fields is a fixed64 but f
			if f.Kind() != protoreflect.DoubleKind {
				b = protowire.AppendFixed64(protowire.AppendTag(b, number, protowire.Fixed64Type), 7)
				continue
			}
		}
		b = appendField(t, b, f, number, depth)
	}
	return b
}

func appendField(t *rapid.T, b []byte, f protoreflect.FieldDescriptor, number protowire.Number, depth int) []byte {
	varint := func(v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), v)
	}
	bytes := func(v []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), v)
	}
	switch f.Kind() {
	case protoreflect.MessageKind:
		if depth == 0 {
			return b
		}
		return bytes(randomMessage(t, f.Message(), depth-1))
	case protoreflect.StringKind:
		return bytes([]byte(rapid.String().Draw(t, "text")))
	case protoreflect.DoubleKind:
		return protowire.AppendFixed64(protowire.AppendTag(b, number, protowire.Fixed64Type), rapid.Uint64Range(0, 1<<62).Draw(t, "double"))
	case protoreflect.Fixed32Kind:
		return protowire.AppendFixed32(protowire.AppendTag(b, number, protowire.Fixed32Type), rapid.Uint32().Draw(t, "fixed"))
	case protoreflect.EnumKind:
		return varint(uint64(rapid.SampledFrom([]int{0, 10}).Draw(t, "enum")))
	case protoreflect.BoolKind:
		return varint(uint64(rapid.IntRange(0, 1).Draw(t, "bool")))
	}
	if f.IsList() && rapid.Bool().Draw(t, "packed") {
		var packed []byte
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			packed = protowire.AppendVarint(packed, rapid.Uint64().Draw(t, "number"))
		}
		return bytes(packed)
	}
	return varint(rapid.Uint64().Draw(t, "number"))
}
