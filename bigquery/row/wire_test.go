package row

import (
	"bytes"
	"encoding/hex"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/table"
)

func TestRows(t *testing.T) {
	field := func(f table.Field) []table.Field { return []table.Field{f} }
	one := func(f table.Field) []byte { return Tag(0, &f) }
	number := func(text string) Scaled {
		v, err := ParseDecimal(decimal(table.Numeric, 0, 0), text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	id, name := table.Field{Name: "id", Type: table.Int64}, table.Field{Name: "name", Type: table.String}
	list := table.Field{Name: "l", Type: table.Int64, Mode: table.Repeated}
	packed, start := BeginLength(one(list))
	packed = EndLength(AppendInt(AppendInt(AppendInt(packed, 1), 2), 300), start)
	inner, start := BeginLength(one(table.Field{Type: table.Struct}))
	inner = EndLength(AppendInt(append(inner, one(id)...), 5), start)
	during, start := BeginLength(one(table.Field{Type: table.Range}))
	during = EndLength(AppendInt(append(during, one(table.Field{Type: table.Date})...), 20660), start)
	for _, c := range []struct {
		name   string
		fields []table.Field
		row    []byte
		want   string
	}{
		{"SER-141 number and text", []table.Field{id, name}, AppendText(append(AppendInt(one(id), -42), Tag(1, &name)...), "hi"), "08d6ffffffffffffffff0112026869"},
		{"NUMERIC", field(table.Field{Name: "n", Type: table.Numeric}), AppendScaled(one(table.Field{Type: table.Numeric}), number("1.25")), "0a04807c814a"},
		{"DATETIME", field(table.Field{Name: "d", Type: table.DateTime}), AppendInt(one(table.Field{Type: table.DateTime}), PackDateTime(1785027723456789)), "08d5f0dbc190e8a7fd01"},
		{"DATE", field(table.Field{Name: "d", Type: table.Date}), AppendInt(one(table.Field{Type: table.Date}), -1), "08ffffffffffffffffff01"},
		{"FLOAT64", field(table.Field{Name: "d", Type: table.Float64}), AppendFloat(one(table.Field{Type: table.Float64}), 1.5), "09000000000000f83f"},
		{"BOOL", field(table.Field{Name: "d", Type: table.Bool}), AppendBool(one(table.Field{Type: table.Bool}), true), "0801"},
		{"SER-142 packed", field(list), packed, "0a040102ac02"},
		{"SER-143 zero", field(id), AppendInt(one(id), 0), "0800"},
		{"SER-143 unset", field(id), nil, ""},
		{"STRUCT", field(table.Field{Name: "s", Type: table.Struct, Fields: field(id)}), inner, "0a020805"},
		{"RANGE", field(table.Field{Name: "r", Type: table.Range, Range: table.Date}), during, "0a0408b4a101"},
	} {
		if got := hex.EncodeToString(c.row); got != c.want {
			t.Errorf("%s is %s, want %s", c.name, got, c.want)
		}
		d, err := NewDecoder(&table.Schema{Fields: c.fields})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Decode(c.row); err != nil {
			t.Errorf("%s does not decode: %v", c.name, err)
		}
	}
}

func TestLengths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{0, 1, 127, 128, 129, 16383, 16384, 16385, 1 << 21}).Draw(t, "size")
		prefix := []byte("prefix")
		content := bytes.Repeat([]byte{'x'}, size)
		buf, start := BeginLength(prefix)
		buf = EndLength(append(buf, content...), start)
		if want := protowire.AppendBytes([]byte("prefix"), content); !bytes.Equal(buf, want) {
			t.Fatalf("%d bytes get the wrong length", size)
		}
		if want := AppendText([]byte("prefix"), content); !bytes.Equal(buf, want) {
			t.Fatalf("AppendText of %d bytes differs", size)
		}
	})
}

func TestAppendIntIsVarint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64().Draw(t, "v")
		if got, want := AppendInt(nil, v), protowire.AppendVarint(nil, uint64(v)); !bytes.Equal(got, want) {
			t.Fatalf("AppendInt(%d) = %x, want %x", v, got, want)
		}
	})
}

func decoderOf(t *testing.T, fields ...table.Field) *Decoder {
	t.Helper()
	d, err := NewDecoder(&table.Schema{Fields: fields})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDecode(t *testing.T) {
	unhex := func(s string) []byte {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	list := table.Field{Name: "l", Type: table.Int64, Mode: table.Repeated}
	want := []Value{{List: []Value{{Int: 1}, {Int: 2}, {Int: 300}}}}
	for name, data := range map[string]string{"packed": "0a040102ac02", "unpacked": "0801080208ac02", "mixed": "08010a0302ac02"} {
		r, err := decoderOf(t, list).Decode(unhex(data))
		if err != nil {
			t.Errorf("SER-142 %s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, r.Values); diff != "" {
			t.Errorf("SER-142 %s (-want +got):\n%s", name, diff)
		}
	}
	inner := table.Field{Name: "s", Type: table.Struct, Fields: []table.Field{{Name: "a", Type: table.Int64}, {Name: "b", Type: table.String}}}
	r, err := decoderOf(t, inner, table.Field{Name: "i", Type: table.Interval}, table.Field{Name: "f", Type: table.Float64}).
		Decode(unhex("0a020805" + "0a03120178" + "120b" + hex.EncodeToString([]byte("1-2 3 4:5:6")) + "19000000000000f83f"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Value{
		{List: []Value{{Int: 5}, {Bytes: []byte("x")}}},
		{List: []Value{{Int: 14}, {Int: 3}, {Int: 14706000000}}},
		{Int: int64(math.Float64bits(1.5))},
	}, r.Values); diff != "" {
		t.Errorf("a message in two parts, an interval and a float (-want +got):\n%s", diff)
	}
	r, err = decoderOf(t, inner, list).Decode(nil)
	if diff := cmp.Diff([]Value{{Null: true}, {}}, r.Values); err != nil || diff != "" {
		t.Errorf("an empty row: %v (-want +got):\n%s", err, diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	text := func(typ table.Type, b string) []byte { return AppendText(Tag(0, &table.Field{Type: typ}), b) }
	number := func(typ table.Type, v int64) []byte { return AppendInt(Tag(0, &table.Field{Type: typ}), v) }
	f := func(typ table.Type) table.Field { return table.Field{Name: "c", Type: typ} }
	nested := table.Field{Name: "c", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{{Name: "d", Type: table.Date}}}
	for _, c := range []struct {
		name  string
		field table.Field
		data  []byte
		kind  Kind
		path  string
	}{
		{"no protobuf", f(table.Int64), []byte{0xff}, KindDecode, ""},
		{"cut value", f(table.String), []byte{0x0a, 0x05, 'x'}, KindDecode, ""},
		{"unknown field", f(table.Int64), []byte{0x10, 0x01}, KindDecode, ""},
		{"wire type", f(table.Int64), text(table.String, "x"), KindDecode, "c"},
		{"wire type of a list", table.Field{Name: "c", Type: table.Float64, Mode: table.Repeated}, number(table.Int64, 1), KindDecode, "c"},
		{"cut list", table.Field{Name: "c", Type: table.Float64, Mode: table.Repeated}, text(table.String, "x"), KindDecode, "c"},
		{"time", f(table.Time), number(table.Time, 24<<32), KindDecode, "c"},
		{"datetime", f(table.DateTime), number(table.DateTime, 1), KindDecode, "c"},
		{"date", f(table.Date), number(table.Date, MaxDays+1), KindDecode, "c"},
		{"timestamp", f(table.Timestamp), number(table.Timestamp, MinMicros-1), KindDecode, "c"},
		{"decimal", f(table.Numeric), text(table.Bytes, string(make([]byte, 33))), KindDecode, "c"},
		{"interval", f(table.Interval), text(table.String, "soon"), KindDecode, "c"},
		{"text", f(table.String), text(table.String, "\xff"), KindDecode, "c"},
		{"nested", nested, append(text(table.Struct, ""), text(table.Struct, string(number(table.Date, MaxDays+1)))...), KindDecode, "c[1].d"},
		{"required", table.Field{Name: "c", Type: table.Int64, Mode: table.Required}, nil, KindNull, "c"},
	} {
		_, err := decoderOf(t, c.field).Decode(c.data)
		e, ok := err.(*Error)
		if !ok || e.Kind != c.kind || e.Path != c.path {
			t.Errorf("%s: %v, want %s at %q", c.name, err, c.kind, c.path)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{0x08, 0x01, 0x10, 0x02})
	d, err := NewDecoder(everyType)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := d.Decode(data)
		if err == nil && len(r.Values) != len(everyType.Fields) {
			t.Errorf("%d values, want %d", len(r.Values), len(everyType.Fields))
		}
	})
}
