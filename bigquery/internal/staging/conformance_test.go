package staging_test

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// datum encodes a row of a plan, in hexadecimal.
func datum(t *testing.T, p *staging.Plan, data []byte) (string, error) {
	t.Helper()
	out, err := staging.NewAvroEncoder(p).Append(nil, data)
	return hex.EncodeToString(out), err
}

func TestAvroSchema(t *testing.T) {
	for _, c := range []struct {
		name  string
		field table.Field
		want  string
	}{
		{"SER-146 NULLABLE INT64", table.Field{Type: table.Int64}, `["null","long"],"default":null`},
		{"SER-146 REQUIRED INT64", table.Field{Type: table.Int64, Mode: table.Required}, `"long"`},
		{"SER-146 REPEATED STRING", table.Field{Type: table.String, Mode: table.Repeated}, `{"type":"array","items":"string"}`},
		{"SER-147 NUMERIC", table.Field{Type: table.Numeric, Mode: table.Required}, `{"type":"bytes","logicalType":"decimal","precision":38,"scale":9}`},
		{"SER-147 BIGNUMERIC", table.Field{Type: table.BigNumeric, Mode: table.Required}, `{"type":"bytes","logicalType":"decimal","precision":77,"scale":38}`},
		{"SER-147 NUMERIC(10,2)", table.Field{Type: table.Numeric, Precision: 10, Scale: 2, Mode: table.Required}, `{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}`},
		{"BOOL", table.Field{Type: table.Bool, Mode: table.Required}, `"boolean"`},
		{"FLOAT64", table.Field{Type: table.Float64, Mode: table.Required}, `"double"`},
		{"BYTES", table.Field{Type: table.Bytes, Mode: table.Required}, `"bytes"`},
		{"GEOGRAPHY", table.Field{Type: table.Geography, Mode: table.Required}, `"string"`},
		{"JSON", table.Field{Type: table.JSON, Mode: table.Required}, `"string"`},
		{"DATE", table.Field{Type: table.Date, Mode: table.Required}, `{"type":"int","logicalType":"date"}`},
		{"TIME", table.Field{Type: table.Time, Mode: table.Required}, `{"type":"long","logicalType":"time-micros"}`},
		{"DATETIME", table.Field{Type: table.DateTime, Mode: table.Required}, `{"type":"long","logicalType":"local-timestamp-micros"}`},
		{"TIMESTAMP", table.Field{Type: table.Timestamp, Mode: table.Required}, `{"type":"long","logicalType":"timestamp-micros"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.field.Name = "f"
			got := staging.AvroSchema(mustPlan(t, schemaOf(c.field)))
			if want := `{"type":"record","name":"Row","fields":[{"name":"f","type":` + c.want + `}]}`; got != want {
				t.Errorf("the schema is\n%s\nwant\n%s", got, want)
			}
		})
	}
	t.Run("SER-152 a STRUCT child under a and under b: two names", func(t *testing.T) {
		child := table.Field{Name: "child", Type: table.Struct, Mode: table.Required, Fields: []table.Field{{Name: "n", Type: table.Int64, Mode: table.Required}}}
		p := mustPlan(t, schemaOf(
			table.Field{Name: "a", Type: table.Struct, Mode: table.Required, Fields: []table.Field{child}},
			table.Field{Name: "b", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{child}}))
		record := func(namespace string) string {
			return `{"type":"record","name":"child","namespace":"` + namespace + `","fields":[{"name":"n","type":"long"}]}`
		}
		want := `{"type":"record","name":"Row","fields":[` +
			`{"name":"a","type":{"type":"record","name":"a","namespace":"Row","fields":[{"name":"child","type":` + record("Row.a") + `}]}},` +
			`{"name":"b","type":{"type":"array","items":{"type":"record","name":"b","namespace":"Row","fields":[{"name":"child","type":` + record("Row.b") + `}]}}}]}`
		if got := staging.AvroSchema(p); got != want {
			t.Errorf("the schema is\n%s\nwant\n%s", got, want)
		}
	})
}

func TestAvroValues(t *testing.T) {
	required := func(typ table.Type) table.Field { return table.Field{Name: "f", Type: typ, Mode: table.Required} }
	for _, c := range []struct {
		name  string
		field table.Field
		value row.Value
		want  string // of the datum
	}{
		{"SER-148 NUMERIC 123.456", required(table.Numeric), rowtest.Decimal(table.Numeric, "123.456"), "0a" + "1cbe8d1000"},
		{"SER-149 DATETIME 2024-03-05T06:07:08.000009", required(table.DateTime), row.Value{Int: 1709618828000009}, long(1709618828000009)},
		{"SER-149 TIME 06:07:08.000009", required(table.Time), row.Value{Int: 22028000009}, long(22028000009)},
		{"SER-154 unset NULLABLE", table.Field{Name: "f", Type: table.String}, rowtest.Null, "00"},
		{"SER-154 empty text", table.Field{Name: "f", Type: table.String}, rowtest.Text(""), "0200"},
		{"SER-154 zero", table.Field{Name: "f", Type: table.Int64}, row.Value{}, "0200"},
		{"SER-154 unset REPEATED", table.Field{Name: "f", Type: table.String, Mode: table.Repeated}, rowtest.List(), "00"},
		{"a list of numbers", table.Field{Name: "f", Type: table.Int64, Mode: table.Repeated}, rowtest.List(row.Value{Int: 1}, row.Value{Int: -1}), "040201" + "00"},
		{"NUMERIC 0", required(table.Numeric), rowtest.Decimal(table.Numeric, "0"), "0200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustPlan(t, schemaOf(c.field))
			got, err := datum(t, p, rowtest.Encode(p.Schema.Fields, []row.Value{c.value}))
			if err != nil || got != c.want {
				t.Errorf("the datum is %s, %v, want %s", got, err, c.want)
			}
		})
	}
	t.Run("SER-148 NUMERIC(10,2) that holds 1.234", func(t *testing.T) {
		f := table.Field{Name: "f", Type: table.Numeric, Precision: 10, Scale: 2}
		p := mustPlan(t, schemaOf(f))
		wantError(t, p, rowtest.Encode([]table.Field{{Name: "f", Type: table.Numeric}}, []row.Value{rowtest.Decimal(table.Numeric, "1.234")}), row.KindScale, "f")
	})
}

// long is a number as Avro writes it, in hexadecimal.
func long(v int64) string {
	return hex.EncodeToString(protowire.AppendVarint(nil, protowire.EncodeZigZag(v)))
}

func wantError(t *testing.T, p *staging.Plan, data []byte, kind row.Kind, path string) {
	t.Helper()
	buf := []byte("before")
	got, err := staging.NewAvroEncoder(p).Append(buf, data)
	var e *row.Error
	if !errors.As(err, &e) || e.Kind != kind || e.Path != path || string(got) != "before" {
		t.Errorf("%q, %v, want %s at %s and the buffer as it was", got, err, kind, path)
	}
}

func TestLiterals(t *testing.T) {
	dateTime, err := staging.Compile(schemaOf(table.Field{Name: "f", Type: table.DateTime, Mode: table.Required}), descriptor("f:string"))
	if err != nil {
		t.Fatal(err)
	}
	numeric, err := staging.Compile(schemaOf(table.Field{Name: "f", Type: table.Numeric, Precision: 10, Scale: 2, Mode: table.Required}), descriptor("f:string"))
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) []byte { return protowire.AppendString([]byte{10}, s) }
	for in, want := range map[string]int64{
		"2026-08-04T12:34:56.123456789": 1785846896123456, "2026-08-04": 1785801600000000, "1969-12-31T23:59:59.500000": -500000,
		"1969-12-31t23:59:59.9999999": -1, "2026-8-4 1:2": 1785805320000000,
	} {
		t.Run("SER-150 DATETIME "+in, func(t *testing.T) {
			if got, err := datum(t, dateTime, text(in)); err != nil || got != long(want) {
				t.Errorf("the datum is %s, %v, want %s", got, err, long(want))
			}
		})
	}
	for in, kind := range map[string]row.Kind{"2026-02-30": row.KindRange, "12026-08-04": row.KindType, "": row.KindType, "04/08/2026": row.KindType, "2026-08-04 24:00:00": row.KindRange,
		"0000-01-01": row.KindRange, "2026-08-04\x00": row.KindType, "\xff": row.KindType} {
		t.Run("SER-150 DATETIME refused", func(t *testing.T) { wantError(t, dateTime, text(in), kind, "f") })
	}
	for in, want := range map[string]string{"1.5": "040096", "-1": "029c", "99999999.99": "0a02540be3ff", "1e2": "042710"} {
		if got, err := datum(t, numeric, text(in)); err != nil || got != want {
			t.Errorf("NUMERIC %s is %s, %v, want %s", in, got, err, want)
		}
	}
	for in, kind := range map[string]row.Kind{"1.234": row.KindScale, "100000000": row.KindRange, "": row.KindType, "NaN": row.KindType, "1e999999999": row.KindRange} {
		wantError(t, numeric, text(in), kind, "f")
	}
}

func TestCompile(t *testing.T) {
	f := func(name string, typ table.Type) table.Field { return table.Field{Name: name, Type: typ} }
	list := table.Field{Name: "f", Type: table.Int64, Mode: table.Repeated}
	for _, c := range []struct {
		name   string
		schema *table.Schema
		d      *descriptorpb.DescriptorProto
		want   []string
	}{
		{"SER-151 TIME as text", schemaOf(f("f", table.Time)), descriptor("f:string"), []string{"C-DESC f"}},
		{"SER-151 INT64 as int32", schemaOf(f("f", table.Int64)), descriptor("f:int32"), []string{"C-DESC f"}},
		{"SER-151 a column without a field", schemaOf(f("f", table.Int64), f("g", table.Int64)), descriptor("f:int64"), []string{"C-DESC g"}},
		{"a field without a column", schemaOf(f("f", table.Int64)), descriptor("f:int64", "g:int64"), []string{"C-DESC g"}},
		{"no descriptor", schemaOf(f("f", table.Int64)), nil, []string{"C-DESC f"}},
		{"repeated field", schemaOf(f("f", table.Int64)), descriptor("f:int64*"), []string{"C-DESC f"}},
		{"single field", schemaOf(list), descriptor("f:int64"), []string{"C-DESC f"}},
		{"names ignore case", schemaOf(f("userName", table.Int64)), descriptor("USERNAME:int64"), nil},
		{"INT64 as sint64", schemaOf(f("f", table.Int64)), descriptor("f:sint64"), []string{"C-DESC f"}},
		{"INT64 as enum", schemaOf(f("f", table.Int64)), descriptor("f:enum"), []string{"C-DESC f"}},
		{"FLOAT64 as float", schemaOf(f("f", table.Float64)), descriptor("f:float"), []string{"C-DESC f"}},
		{"BOOL as int64", schemaOf(f("f", table.Bool)), descriptor("f:int64"), []string{"C-DESC f"}},
		{"BYTES as text", schemaOf(f("f", table.Bytes)), descriptor("f:string"), []string{"C-DESC f"}},
		{"DATE as int64", schemaOf(f("f", table.Date)), descriptor("f:int64"), []string{"C-DESC f"}},
		{"DATE as text", schemaOf(f("f", table.Date)), descriptor("f:string"), []string{"C-DESC f"}},
		{"TIMESTAMP as text", schemaOf(f("f", table.Timestamp)), descriptor("f:string"), []string{"C-DESC f"}},
		{"TIMESTAMP as a message", schemaOf(f("f", table.Timestamp)), descriptor("f:message"), []string{"C-DESC f"}},
		{"NUMERIC as double", schemaOf(f("f", table.Numeric)), descriptor("f:double"), []string{"C-DESC f"}},
		{"DATETIME and decimals as text", schemaOf(f("f", table.DateTime), f("g", table.Numeric), f("h", table.BigNumeric)), descriptor("f:string", "g:string", "h:string"), nil},
		{"STRUCT of no message", schemaOf(table.Field{Name: "f", Type: table.Struct, Fields: []table.Field{f("a", table.Int64)}}), descriptor("f:message"), []string{"C-DESC f"}},
		{"STRUCT as a group", schemaOf(table.Field{Name: "f", Type: table.Struct, Fields: []table.Field{f("a", table.Int64)}}), descriptor("f:group"), []string{"C-DESC f"}},
		{"SER-153 INTERVAL", schemaOf(f("f", table.Interval)), nil, []string{"C-TYPE f"}},
		{"SER-153 RANGE", schemaOf(table.Field{Name: "f", Type: table.Range, Range: table.Date}), nil, []string{"C-TYPE f"}},
		{"SER-153 1st_field", schemaOf(f("1st_field", table.Int64)), descriptor("1st_field:int64"), []string{"C-NAME 1st_field"}},
		{"everything at once", schemaOf(f("1 2", table.Interval), f("f", table.Time), f("g", table.Date)), descriptor("f:string", "x:bool"),
			[]string{"C-NAME 1 2", "C-TYPE 1 2", "C-DESC f", "C-DESC g", "C-DESC x"}},
		{"schemas that are wrong", schemaOf(), nil, []string{"C-EMPTY "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, planErrors(t, c.schema, c.d)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("SER-153 inside STRUCTs, and the error says what to do", func(t *testing.T) {
		s := schemaOf(table.Field{Name: "s", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{f("i", table.Interval), {Name: "a-b", Type: table.Int64}}})
		d, err := row.Descriptor(s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = staging.Compile(s, d)
		if diff := cmp.Diff([]string{"C-TYPE s.i", "C-NAME s.a-b"}, kinds(t, err)); diff != "" {
			t.Errorf("faults (-want +got):\n%s", diff)
		}
		if text := err.Error(); strings.Count(text, "file loads") != 2 || strings.Count(text, "another write method") != 2 {
			t.Errorf("the error does not say that another write method would do: %v", err)
		}
	})
}

// TestNestedNames finds nested messages by every form of their name, and in enclosing scopes.
func TestNestedNames(t *testing.T) {
	s := schemaOf(table.Field{Name: "s", Type: table.Struct, Fields: []table.Field{
		{Name: "a", Type: table.Int64}, {Name: "t", Type: table.Struct, Fields: []table.Field{{Name: "a", Type: table.Int64}}}}})
	for _, name := range []string{"Inner", "Mine.Inner", ".Mine.Inner", ".package.Mine.Inner"} {
		inner := descriptor("a:int64", "t:message")
		inner.Name = &[]string{"Inner"}[0]
		leaf := descriptor("a:int64")
		leaf.Name = &[]string{"Leaf"}[0]
		inner.Field[1].TypeName = &[]string{"Leaf"}[0]
		d := descriptor("s:message")
		d.Field[0].TypeName = &name
		d.NestedType = []*descriptorpb.DescriptorProto{inner, leaf}
		if faults := planErrors(t, s, d); faults != nil {
			t.Errorf("%s: %v", name, faults)
		}
	}
}

// TestRowErrors has everything that a load job would refuse as the error of its row, with its path.
func TestRowErrors(t *testing.T) {
	p := mustPlan(t, schemaOf(
		table.Field{Name: "id", Type: table.Int64, Mode: table.Required},
		table.Field{Name: "day", Type: table.Date},
		table.Field{Name: "at", Type: table.Timestamp},
		table.Field{Name: "clock", Type: table.Time},
		table.Field{Name: "local", Type: table.DateTime},
		table.Field{Name: "name", Type: table.String, MaxLength: 3},
		table.Field{Name: "raw", Type: table.Bytes, MaxLength: 2},
		table.Field{Name: "n", Type: table.Numeric},
		table.Field{Name: "b", Type: table.BigNumeric},
		table.Field{Name: "items", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{
			{Name: "key", Type: table.String, Mode: table.Required}, {Name: "days", Type: table.Date, Mode: table.Repeated}}},
		table.Field{Name: "texts", Type: table.String, Mode: table.Repeated},
	))
	id := []byte{8, 1}
	varint := func(field int, v int64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(slices.Clone(id), protowire.Number(field), protowire.VarintType), uint64(v))
	}
	content := func(field int, b string) []byte {
		return protowire.AppendString(protowire.AppendTag(slices.Clone(id), protowire.Number(field), protowire.BytesType), b)
	}
	item := string(content(10, "\x0a\x01k"))[2:]
	for _, c := range []struct {
		name string
		data []byte
		kind row.Kind
		path string
	}{
		{"REQUIRED", nil, row.KindRequired, "id"},
		{"DATE", varint(2, 2932897), row.KindRange, "day"},
		{"DATE below", varint(2, -719163), row.KindRange, "day"},
		{"TIMESTAMP", varint(3, row.MaxMicros+1), row.KindRange, "at"},
		{"TIMESTAMP below", varint(3, row.MinMicros-1), row.KindRange, "at"},
		{"TIME", varint(4, 102806536768), row.KindRange, "clock"},
		{"DATETIME", varint(5, 0), row.KindRange, "local"},
		{"text", content(6, "a\xff"), row.KindText, "name"},
		{"lone surrogate", content(6, "\xed\xa0\x80"), row.KindText, "name"},
		{"long text", content(6, "äöüß"), row.KindRange, "name"},
		{"long bytes", content(7, "abc"), row.KindRange, "raw"},
		{"NUMERIC", content(8, strings.Repeat("\xff", 15)+"\x7f"), row.KindRange, "n"},
		{"NUMERIC of many bytes", content(8, strings.Repeat("\x00", 40)), row.KindRange, "n"},
		{"BIGNUMERIC of many bytes", content(9, strings.Repeat("\xff", 33)), row.KindRange, "b"},
		{"member", content(10, ""), row.KindRequired, "items[0].key"},
		{"element of a member", append(content(10, "\x0a\x01k"), content(10, "\x0a\x01k\x12\x06\x00\xff\xff\xff\xff\x07")[2:]...), row.KindRange, "items[1].days[1]"},
		{"element", append(content(11, "ok"), content(11, "\xff")[2:]...), row.KindText, "texts[1]"},
		{"cut", []byte{8}, row.KindDecode, "id"},
		{"cut text", []byte{8, 1, 50, 5, 'a'}, row.KindDecode, "name"},
		{"cut tag", []byte{8, 1, 0xff}, row.KindDecode, ""},
		{"wrong wire type", []byte{10, 1, 'a'}, row.KindDecode, "id"},
		{"unknown field", varint(12, 1), row.KindDecode, ""},
		{"field 0", []byte{0, 0}, row.KindDecode, ""},
		{"cut inside", []byte(item + string(content(10, "\x0a\x05k"))), row.KindDecode, "items[1].key"},
		{"cut list", append(slices.Clone(id), content(10, "\x0a\x01k\x12\x01\xff")[2:]...), row.KindDecode, "items[0].days[0]"},
	} {
		t.Run(c.name, func(t *testing.T) { wantError(t, p, c.data, c.kind, c.path) })
	}
	t.Run("as long as the column lets them be", func(t *testing.T) {
		if _, err := datum(t, p, append(content(6, "äöü"), content(7, "ab")...)); err != nil {
			t.Error(err)
		}
	})
}
