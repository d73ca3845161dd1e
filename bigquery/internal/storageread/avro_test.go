package storageread

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Avro as the specification says it, one append for each form.

func avroLong(b []byte, v int64) []byte { return binary.AppendVarint(b, v) }

func avroBytes[S ~string | ~[]byte](b []byte, v S) []byte {
	return append(avroLong(b, int64(len(v))), v...)
}

func avroDouble(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

// everyType has one column of each type that a session can hold, as the service writes them.
const everyType = `{"type": "record", "name": "__root__", "fields": [
	{"name": "b", "type": ["null", "boolean"]},
	{"name": "i", "type": ["null", "long"]},
	{"name": "f", "type": ["null", "double"]},
	{"name": "s", "type": ["null", "string"]},
	{"name": "y", "type": ["null", "bytes"]},
	{"name": "n", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 9}]},
	{"name": "bn", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 77, "scale": 38}]},
	{"name": "n2", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}]},
	{"name": "bn2", "type": {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 2}},
	{"name": "d", "type": ["null", {"type": "int", "logicalType": "date"}]},
	{"name": "t", "type": ["null", {"type": "long", "logicalType": "time-micros"}]},
	{"name": "dt", "type": ["null", {"type": "string", "logicalType": "datetime"}]},
	{"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
	{"name": "g", "type": ["null", {"type": "string", "sqlType": "GEOGRAPHY"}]},
	{"name": "j", "type": ["null", {"type": "string", "sqlType": "JSON"}]},
	{"name": "iv", "type": ["null", {"type": "record", "name": "INTERVAL", "namespace": "google.sqlType", "sqlType": "INTERVAL", "fields": [
		{"name": "months", "type": "int"}, {"name": "days", "type": "int"}, {"name": "microseconds", "type": "long"}]}]},
	{"name": "r", "type": ["null", {"type": "record", "name": "google.sqlType.RANGE_DATE", "sqlType": "RANGE", "fields": [
		{"name": "start", "type": ["null", {"type": "int", "logicalType": "date"}]},
		{"name": "end", "type": ["null", {"type": "int", "logicalType": "date"}]}]}]},
	{"name": "r2", "type": "google.sqlType.RANGE_DATE"},
	{"name": "st", "type": ["null", {"type": "record", "name": "st", "fields": [
		{"name": "x", "type": "long"},
		{"name": "col_31", "displayName": "1st", "type": ["null", "string"]}]}]},
	{"name": "a", "type": {"type": "array", "items": "long"}},
	{"name": "as", "type": {"type": "array", "items": {"type": "record", "name": "as", "fields": [
		{"name": "k", "type": "string"}, {"name": "v", "type": {"type": "array", "items": "string"}}]}}}
]}`

func mustDecoder(t testing.TB, schema string, reader *table.Schema) *Decoder {
	t.Helper()
	d, err := NewDecoder(schema, reader)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestSchemaOfEveryType(t *testing.T) {
	t.Parallel()
	d := mustDecoder(t, everyType, nil)
	want := &table.Schema{Fields: []table.Field{
		{Name: "b", Type: table.Bool},
		{Name: "i", Type: table.Int64},
		{Name: "f", Type: table.Float64},
		{Name: "s", Type: table.String},
		{Name: "y", Type: table.Bytes},
		{Name: "n", Type: table.Numeric},
		{Name: "bn", Type: table.BigNumeric},
		{Name: "n2", Type: table.Numeric, Precision: 10, Scale: 2},
		{Name: "bn2", Type: table.BigNumeric, Precision: 40, Scale: 2, Mode: table.Required},
		{Name: "d", Type: table.Date},
		{Name: "t", Type: table.Time},
		{Name: "dt", Type: table.DateTime},
		{Name: "ts", Type: table.Timestamp, Mode: table.Required},
		{Name: "g", Type: table.Geography},
		{Name: "j", Type: table.JSON},
		{Name: "iv", Type: table.Interval},
		{Name: "r", Type: table.Range, Range: table.Date},
		{Name: "r2", Type: table.Range, Range: table.Date, Mode: table.Required},
		{Name: "st", Type: table.Struct, Fields: []table.Field{
			{Name: "x", Type: table.Int64, Mode: table.Required}, {Name: "1st", Type: table.String}}},
		{Name: "a", Type: table.Int64, Mode: table.Repeated},
		{Name: "as", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{
			{Name: "k", Type: table.String, Mode: table.Required}, {Name: "v", Type: table.String, Mode: table.Repeated}}},
	}}
	if diff := cmp.Diff(want, d.Schema()); diff != "" {
		t.Error(diff)
	}
}

// everyValue is a row of everyType, and what it must decode to.
func everyValue() (block []byte, want []row.Value) {
	some := func(b []byte) []byte { return append(b, 2) }
	b := append(some(nil), 1)
	b = avroLong(some(b), -42)
	b = avroDouble(some(b), 1.5)
	b = avroBytes(some(b), "hi")
	b = avroBytes(some(b), []byte{0, 255})
	b = avroBytes(some(b), unhex("1cbe8d1000"))
	b = avroBytes(some(b), []byte{})
	b = append(b, 0)
	b = avroBytes(b, []byte{0x80})
	b = avroLong(some(b), -1)
	b = avroLong(some(b), 22028000009)
	b = avroBytes(some(b), "2026-07-26T01:02:03.456789")
	b = avroLong(b, -1)
	b = avroBytes(some(b), "POINT(1 2)")
	b = avroBytes(some(b), `{"k":1}`)
	b = avroLong(avroLong(avroLong(some(b), -14), 3), math.MaxInt64)
	b = append(avroLong(some(some(b)), -1), 0) // SER-162
	b = append(b, 0, 0)
	b = append(avroLong(some(b), 5), 0)
	b = avroLong(avroLong(avroLong(avroLong(b, 2), 1), 2), 0)
	b = avroLong(b, 1)
	b = avroLong(avroBytes(avroLong(avroBytes(b, "k"), 1), "v"), 0)
	b = avroLong(b, 0)

	num := func(v int64) row.Value { return row.Value{Int: v} }
	text := func(s string) row.Value { return row.Value{Bytes: []byte(s)} }
	none := row.Value{Null: true}
	list := func(v ...row.Value) row.Value { return row.Value{List: v} }
	return b, []row.Value{
		num(1), num(-42), num(int64(math.Float64bits(1.5))), text("hi"), text("\x00\xff"),
		{Int: 9, Bytes: unhex("1cbe8d1000")}, {Int: 38, Bytes: []byte{0}}, none, {Int: 2, Bytes: []byte{0x80}},
		num(-1), num(22028000009), num(1785027723456789), num(-1), text("POINT(1 2)"), text(`{"k":1}`),
		list(num(-14), num(3), num(math.MaxInt64)),
		list(num(-1), none), list(none, none),
		list(num(5), none),
		list(num(1), num(2)),
		list(list(text("k"), list(text("v")))),
	}
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func TestDecodeEveryType(t *testing.T) {
	t.Parallel()
	d := mustDecoder(t, everyType, nil)
	block, want := everyValue()
	two := append(block[:len(block):len(block)], block...)
	for range 2 {
		n, err := d.Decode(two)
		if err != nil {
			t.Fatal(err)
		}
		if n != len(block) {
			t.Fatalf("took %d bytes of %d", n, len(block))
		}
		if diff := cmp.Diff(want, d.Row().Values); diff != "" {
			t.Fatal(diff)
		}
		two = two[n:]
	}
}

func TestEveryCutRowIsRefused(t *testing.T) {
	t.Parallel()
	d := mustDecoder(t, everyType, nil)
	block, _ := everyValue()
	for n := range block {
		_, err := d.Decode(block[:n])
		if e, ok := errors.AsType[*row.Error](err); !ok || e.Kind != row.KindDecode || e.Path == "" {
			t.Fatalf("%d of %d bytes: got %v, want D-TYPE with a field", n, len(block), err)
		}
	}
}

func TestDecodeRefusesAndNamesTheField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, typ string
		bytes     []byte
		want      string
	}{
		{"bool", `"boolean"`, []byte{2}, "field c"},
		{"branch", `["null", "long"]`, []byte{4, 0}, "field c"},
		{"date beyond 32 bits", `{"type": "int", "logicalType": "date"}`, avroLong(nil, 1<<40), "32 bits"},
		{"long of 11 bytes", `"long"`, []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "64 bits"},
		{"long above 64 bits", `"long"`, []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), "64 bits"},
		{"negative length", `"string"`, avroLong(nil, -1), "length"},
		{"length beyond the block", `"string"`, avroLong(nil, math.MaxInt64), "length"},
		{"datetime", `{"type": "string", "logicalType": "datetime"}`, avroBytes(nil, "yesterday"), "DATETIME"},
		{"text", `"string"`, avroBytes(nil, "a\xff"), "UTF-8"},
		{"text in a list", `{"type": "array", "items": {"type": "string", "sqlType": "JSON"}}`, append(avroBytes(avroLong(nil, 1), "\xc0"), 0), "field c[0]"},
		{"count beyond the block", `{"type": "array", "items": "long"}`, avroLong(nil, 1<<50), "more elements"},
		{"least count", `{"type": "array", "items": "long"}`, append(avroLong(nil, math.MinInt64), 0, 0), "more elements"},
		{"element", `{"type": "array", "items": {"type": "record", "name": "x", "fields": [{"name": "y", "type": "boolean"}]}}`,
			append(avroLong(nil, 2), 1, 7, 0), "field c[1].y"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := mustDecoder(t, `{"type":"record","name":"__root__","fields":[{"name":"c","type":`+c.typ+`}]}`, nil)
			_, err := d.Decode(c.bytes)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "D-TYPE: field c") {
				t.Errorf("got %v, want D-TYPE at c with %q", err, c.want)
			}
		})
	}
}

func TestNegativeCountsCarrySizes(t *testing.T) {
	t.Parallel()
	d := mustDecoder(t, `{"type":"record","name":"__root__","fields":[{"name":"c","type":{"type":"array","items":"long"}}]}`, nil)
	b := avroLong(avroLong(avroLong(avroLong(nil, -2), 2), 7), 8)
	b = avroLong(avroLong(avroLong(b, 1), 9), 0)
	if _, err := d.Decode(b); err != nil {
		t.Fatal(err)
	}
	want := []row.Value{{List: []row.Value{{Int: 7}, {Int: 8}, {Int: 9}}}}
	if diff := cmp.Diff(want, d.Row().Values); diff != "" {
		t.Error(diff)
	}
}

func TestSchemasThatAreNoSessions(t *testing.T) {
	t.Parallel()
	field := func(typ string) string {
		return `{"type":"record","name":"__root__","fields":[{"name":"c","type":` + typ + `}]}`
	}
	deep := strings.Repeat(`{"type":"array","items":`, 200) + `"long"` + strings.Repeat(`}`, 200)
	wide := `{"name":"c0","type":{"type":"record","name":"r0","fields":[{"name":"x","type":"long"},{"name":"y","type":"long"}]}}`
	for i := range 30 {
		wide += fmt.Sprintf(`,{"name":"c%d","type":{"type":"record","name":"r%[1]d","fields":[{"name":"x","type":"r%d"},{"name":"y","type":"r%[2]d"}]}}`, i+1, i)
	}
	for name, schema := range map[string]string{
		"empty":                   ``,
		"cut":                     `{"type":"record"`,
		"no record":               `"long"`,
		"nullable root":           `["null",` + field(`"long"`) + `]`,
		"no fields":               `{"type":"record","name":"__root__","fields":[]}`,
		"unknown type":            field(`"float"`),
		"unknown logical":         field(`{"type":"long","logicalType":"timestamp-nanos"}`),
		"map":                     field(`{"type":"map","values":"long"}`),
		"union of three":          field(`["null","long","string"]`),
		"union without null":      field(`["long","string"]`),
		"nested union":            field(`["null",["null","long"]]`),
		"array of arrays":         field(`{"type":"array","items":{"type":"array","items":"long"}}`),
		"array of nulls":          field(`{"type":"array","items":["null","long"]}`),
		"SER-167 no scale":        field(`{"type":"bytes","logicalType":"decimal","precision":38}`),
		"wide decimal":            field(`{"type":"bytes","logicalType":"decimal","precision":90,"scale":9}`),
		"recursive":               field(`{"type":"record","name":"r","fields":[{"name":"x","type":"r"}]}`),
		"twice":                   `{"type":"record","name":"r","fields":[{"name":"x","type":{"type":"record","name":"r","fields":[{"name":"x","type":"long"}]}}]}`,
		"range of longs":          field(`{"type":"record","name":"r","sqlType":"RANGE","fields":[{"name":"start","type":"long"},{"name":"end","type":"long"}]}`),
		"interval of other parts": field(`{"type":"record","name":"r","sqlType":"INTERVAL","fields":[{"name":"months","type":"long"}]}`),
		"too deep":                field(deep),
		"unfolds without end":     `{"type":"record","name":"__root__","fields":[` + wide + `]}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewDecoder(schema, nil)
			if e, ok := errors.AsType[*row.Error](err); !ok || e.Kind != row.KindDecode {
				t.Errorf("got %v, want D-TYPE", err)
			}
		})
	}
}

// SRC-90: the name of the root record means nothing, with or without hyphens.
func TestRootNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"__root__", "my-project.dataset"} {
		d := mustDecoder(t, `{"type":"record","name":"`+name+`","fields":[{"name":"c","type":"long"}]}`, nil)
		if got := d.Schema().Fields[0].Name; got != "c" {
			t.Errorf("%s: column %q", name, got)
		}
	}
}

func TestReaderSchema(t *testing.T) {
	t.Parallel()
	const session = `{"type":"record","name":"__root__","fields":[
		{"name":"id","type":"long"},
		{"name":"name","type":["null","string"]},
		{"name":"skip","type":["null",{"type":"array","items":{"type":"record","name":"s","fields":[
			{"name":"a","type":["null","string"]},{"name":"b","type":"double"},{"name":"c","type":"boolean"},
			{"name":"e","type":{"type":"bytes","logicalType":"decimal","precision":38,"scale":9}}]}}]},
		{"name":"st","type":["null",{"type":"record","name":"st","fields":[
			{"name":"x","type":"long"},{"name":"y","type":"string"}]}]},
		{"name":"at","type":{"type":"string","logicalType":"datetime"}}]}`
	block := func(name, st bool) []byte {
		b := avroLong(nil, 5)
		if name {
			b = avroBytes(append(b, 2), "n")
		} else {
			b = append(b, 0)
		}
		b = avroLong(append(b, 2), 2)
		b = avroBytes(append(avroDouble(avroBytes(append(b, 2), "a"), 1), 1), "\x01")
		b = avroBytes(append(avroDouble(append(b, 0), 1), 0), "\x01")
		b = avroLong(b, 0)
		if st {
			b = avroBytes(avroLong(append(b, 2), 6), "why")
		} else {
			b = append(b, 0)
		}
		return avroBytes(b, "2026-07-26 01:02:03")
	}
	for _, c := range []struct {
		name   string
		reader []table.Field
		block  []byte
		want   []row.Value
	}{
		{"SRC-81_SER-159 subset in its own order", []table.Field{{Name: "NAME", Type: table.String}, {Name: "id", Type: table.Int64, Mode: table.Required}},
			block(true, true), []row.Value{{Bytes: []byte("n")}, {Int: 5}}},
		{"SRC-82_SER-159 no fields", nil, block(false, false), []row.Value{}},
		{"SER-160 integer as FLOAT64", []table.Field{{Name: "id", Type: table.Float64}},
			block(false, false), []row.Value{{Int: int64(math.Float64bits(5))}}},
		{"member of a STRUCT", []table.Field{{Name: "st", Type: table.Struct, Fields: []table.Field{{Name: "y", Type: table.String, Mode: table.Required}}}},
			block(false, true), []row.Value{{List: []row.Value{{Bytes: []byte("why")}}}}},
		{"null STRUCT", []table.Field{{Name: "st", Type: table.Struct, Fields: []table.Field{{Name: "y", Type: table.String}}}},
			block(false, false), []row.Value{{Null: true}}},
		{"DATETIME as text", []table.Field{{Name: "at", Type: table.String}},
			block(false, false), []row.Value{{Bytes: []byte("2026-07-26 01:02:03")}}},
		{"SER-160 REQUIRED over a value", []table.Field{{Name: "name", Type: table.String, Mode: table.Required}},
			block(true, false), []row.Value{{Bytes: []byte("n")}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			reader := &table.Schema{Fields: c.reader}
			d := mustDecoder(t, session, reader)
			n, err := d.Decode(c.block)
			if err != nil || n != len(c.block) {
				t.Fatalf("took %d of %d bytes: %v", n, len(c.block), err)
			}
			if diff := cmp.Diff(c.want, d.Row().Values); diff != "" {
				t.Error(diff)
			}
			if d.Row().Schema != reader {
				t.Error("the row does not carry the reader's schema")
			}
		})
	}
	t.Run("SER-160 null into REQUIRED", func(t *testing.T) {
		d := mustDecoder(t, session, &table.Schema{Fields: []table.Field{{Name: "name", Type: table.String, Mode: table.Required}}})
		_, err := d.Decode(block(false, false))
		if e, ok := errors.AsType[*row.Error](err); !ok || e.Kind != row.KindNull || e.Path != "name" {
			t.Errorf("got %v, want D-NULL at name", err)
		}
	})
	for name, f := range map[string]table.Field{
		"SER-161 not there":     {Name: "nope", Type: table.String},
		"SRC-81 text as number": {Name: "name", Type: table.Int64},
		"number as text":        {Name: "id", Type: table.String},
		"one as many":           {Name: "id", Type: table.Int64, Mode: table.Repeated},
		"many as one":           {Name: "skip", Type: table.Struct},
		"member":                {Name: "st", Type: table.Struct, Fields: []table.Field{{Name: "x", Type: table.Bool}}},
		"decimal of no decimal": {Name: "name", Type: table.Numeric},
		"DATETIME as instant":   {Name: "at", Type: table.Timestamp},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewDecoder(session, &table.Schema{Fields: []table.Field{f}})
			if e, ok := errors.AsType[*row.Error](err); !ok || e.Kind != row.KindResolve || !strings.HasPrefix(e.Path, f.Name) {
				t.Errorf("got %v, want D-SCHEMA at %s", err, f.Name)
			}
		})
	}
}

// randomType makes an Avro type, and a function that appends a value of it and answers what the value must decode to.
func randomType(r *rand.Rand, depth int, names *int) (string, func([]byte) ([]byte, row.Value)) {
	kinds := 5
	if depth > 0 {
		kinds = 8
	}
	switch r.IntN(kinds) {
	case 0:
		return `"long"`, func(b []byte) ([]byte, row.Value) {
			v := int64(r.Uint64()) >> r.IntN(64)
			return avroLong(b, v), row.Value{Int: v}
		}
	case 1:
		return `"string"`, func(b []byte) ([]byte, row.Value) {
			v := strings.Repeat("x", r.IntN(200))
			return avroBytes(b, v), row.Value{Bytes: []byte(v)}
		}
	case 2:
		return `"double"`, func(b []byte) ([]byte, row.Value) {
			v := r.Float64()
			return avroDouble(b, v), row.Value{Int: int64(math.Float64bits(v))}
		}
	case 3:
		return `"boolean"`, func(b []byte) ([]byte, row.Value) {
			v := r.IntN(2)
			return append(b, byte(v)), row.Value{Int: int64(v)}
		}
	case 4:
		return `{"type":"bytes","logicalType":"decimal","precision":20,"scale":3}`, func(b []byte) ([]byte, row.Value) {
			v := []byte{byte(r.Int()), byte(r.Int())}
			return avroBytes(b, v), row.Value{Int: 3, Bytes: v}
		}
	case 5:
		return randomArray(r, depth, names)
	default:
		return randomRecord(r, depth, names)
	}
}

func randomArray(r *rand.Rand, depth int, names *int) (string, func([]byte) ([]byte, row.Value)) {
	typ, elem := randomRecord(r, depth-1, names)
	return `{"type":"array","items":` + typ + `}`, func(b []byte) ([]byte, row.Value) {
		var v row.Value
		for range r.IntN(3) {
			n := 1 + r.IntN(5)
			b = avroLong(b, int64(n))
			for range n {
				var e row.Value
				b, e = elem(b)
				v.List = append(v.List, e)
			}
		}
		return avroLong(b, 0), v
	}
}

func randomRecord(r *rand.Rand, depth int, names *int) (string, func([]byte) ([]byte, row.Value)) {
	*names++
	typ := fmt.Sprintf(`{"type":"record","name":"r%d","fields":[`, *names)
	var members []func([]byte) ([]byte, row.Value)
	for i := range 1 + r.IntN(6) {
		member, add := randomType(r, depth-1, names)
		if r.IntN(2) == 0 && !strings.Contains(member, `{"type":"array"`) {
			inner := add
			member = `["null",` + member + `]`
			add = func(b []byte) ([]byte, row.Value) {
				if r.IntN(3) == 0 {
					return append(b, 0), row.Value{Null: true}
				}
				return inner(append(b, 2))
			}
		}
		if i > 0 {
			typ += ","
		}
		typ += fmt.Sprintf(`{"name":"f%d","type":%s}`, i, member)
		members = append(members, add)
	}
	return typ + `]}`, func(b []byte) ([]byte, row.Value) {
		var v row.Value
		for _, add := range members {
			var m row.Value
			b, m = add(b)
			v.List = append(v.List, m)
		}
		return b, v
	}
}

// same is cmp.Equal for values, fast.
func same(a, b []row.Value) bool {
	return slices.EqualFunc(a, b, func(a, b row.Value) bool {
		return a.Int == b.Int && a.Null == b.Null && bytes.Equal(a.Bytes, b.Bytes) && same(a.List, b.List)
	})
}

func TestRandomSchemasAndRows(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		typ, add := randomRecord(r, 4, new(int))
		d := mustDecoder(t, typ, nil)
		none := mustDecoder(t, typ, &table.Schema{})
		for range 10 {
			b, want := add(nil)
			n, err := d.Decode(append(b, "rest"...))
			if err != nil || n != len(b) {
				t.Fatalf("seed %d: took %d of %d bytes: %v", seed, n, len(b), err)
			}
			if !same(want.List, d.Row().Values) {
				t.Fatalf("seed %d: %s", seed, cmp.Diff(want.List, d.Row().Values))
			}
			if n, err := none.Decode(b); err != nil || n != len(b) {
				t.Fatalf("seed %d: skipped %d of %d bytes: %v", seed, n, len(b), err)
			}
		}
	}
}

func TestDecodingAllocatesNothing(t *testing.T) {
	d := mustDecoder(t, everyType, nil)
	block, _ := everyValue()
	run := func() {
		if _, err := d.Decode(block); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Errorf("%v allocations a row", n)
	}
}

func FuzzBlock(f *testing.F) {
	block, _ := everyValue()
	f.Add(block)
	d, none := mustDecoder(f, everyType, nil), mustDecoder(f, everyType, &table.Schema{})
	f.Fuzz(func(t *testing.T, block []byte) {
		n, err := d.Decode(block)
		if err == nil && (n <= 0 || n > len(block)) {
			t.Fatalf("took %d of %d bytes", n, len(block))
		}
		if skipped, errSkipped := none.Decode(block); err == nil && (errSkipped != nil || skipped != n) {
			t.Fatalf("took %d bytes, skipped %d: %v", n, skipped, errSkipped)
		}
	})
}

func FuzzSchema(f *testing.F) {
	f.Add(everyType)
	f.Add(`{"type":"record","name":"r","fields":[{"name":"","type":"long"}]}`)
	f.Add(`{"type":{"type":"record","name":"r","fields":[{"name":"[","type":["bytes","null"]}]}}`)
	f.Fuzz(func(t *testing.T, schema string) {
		d, err := NewDecoder(schema, nil)
		if err != nil {
			return
		}
		if len(d.Schema().Fields) != len(d.Row().Values) || len(d.Row().Values) == 0 {
			t.Fatalf("%d columns, %d values", len(d.Schema().Fields), len(d.Row().Values))
		}
		if _, err := d.Decode(nil); err == nil {
			t.Fatal("a row took no bytes")
		}
		if n, err := d.Decode(make([]byte, 100)); err == nil && n <= 0 {
			t.Fatalf("took %d bytes", n)
		}
	})
}
