package avro

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/go-cmp/cmp"
	peer "github.com/twmb/avro"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

func fields(f ...*schema.Field) *schema.Schema { return &schema.Schema{Fields: f} }

func TestSchema(t *testing.T) {
	for name, c := range map[string]struct {
		schema *schema.Schema
		want   string // fields of the root
	}{
		"scalars": {
			fields(&schema.Field{Name: "i", Type: schema.Int64}, &schema.Field{Name: "r", Type: schema.String, Mode: schema.Required},
				&schema.Field{Name: "a", Type: schema.Float64, Mode: schema.Repeated}, &schema.Field{Name: "b", Type: schema.Bool},
				&schema.Field{Name: "y", Type: schema.Bytes}),
			`{"name":"i","type":["null","long"]},{"name":"r","type":"string"},{"name":"a","type":{"type":"array","items":"double"}},` +
				`{"name":"b","type":["null","boolean"]},{"name":"y","type":["null","bytes"]}`,
		},
		"LBQ-140 LBQ-141 logical types": {
			fields(&schema.Field{Name: "n", Type: schema.Numeric, Mode: schema.Required}, &schema.Field{Name: "bn", Type: schema.BigNumeric, Mode: schema.Required},
				&schema.Field{Name: "p", Type: schema.Numeric, Precision: 10, Mode: schema.Required}, &schema.Field{Name: "d", Type: schema.Date, Mode: schema.Required},
				&schema.Field{Name: "t", Type: schema.Time, Mode: schema.Required}, &schema.Field{Name: "dt", Type: schema.DateTime, Mode: schema.Required},
				&schema.Field{Name: "ts", Type: schema.Timestamp, Mode: schema.Required}, &schema.Field{Name: "g", Type: schema.Geography, Mode: schema.Required},
				&schema.Field{Name: "j", Type: schema.JSON, Mode: schema.Required}),
			`{"name":"n","type":{"type":"bytes","logicalType":"decimal","precision":38,"scale":9}},` +
				`{"name":"bn","type":{"type":"bytes","logicalType":"decimal","precision":77,"scale":38}},` +
				`{"name":"p","type":{"type":"bytes","logicalType":"decimal","precision":10,"scale":0}},` +
				`{"name":"d","type":{"type":"int","logicalType":"date"}},{"name":"t","type":{"type":"long","logicalType":"time-micros"}},` +
				`{"name":"dt","type":{"type":"string","logicalType":"datetime"}},{"name":"ts","type":{"type":"long","logicalType":"timestamp-micros"}},` +
				`{"name":"g","type":{"type":"string","sqlType":"GEOGRAPHY"}},{"name":"j","type":{"type":"string","sqlType":"JSON"}}`,
		},
		"records have names of their own": {
			fields(
				&schema.Field{Name: "a", Type: schema.Struct, Fields: []*schema.Field{
					{Name: "x", Type: schema.Struct, Mode: schema.Repeated, Fields: []*schema.Field{{Name: "v", Type: schema.Int64}}},
				}},
				&schema.Field{Name: "b", Type: schema.Struct, Mode: schema.Required, Fields: []*schema.Field{{Name: "v", Type: schema.Int64}}},
			),
			`{"name":"a","type":["null",{"type":"record","name":"__s_0","fields":[{"name":"x","type":{"type":"array","items":` +
				`{"type":"record","name":"__s_1","fields":[{"name":"v","type":["null","long"]}]}}}]}]},` +
				`{"name":"b","type":{"type":"record","name":"__s_2","fields":[{"name":"v","type":["null","long"]}]}}`,
		},
		"ranges and intervals are defined once": {
			fields(&schema.Field{Name: "r", Type: schema.Range, RangeElement: schema.Date, Mode: schema.Required},
				&schema.Field{Name: "s", Type: schema.Range, RangeElement: schema.Date},
				&schema.Field{Name: "u", Type: schema.Range, RangeElement: schema.Timestamp, Mode: schema.Required},
				&schema.Field{Name: "i", Type: schema.Interval}, &schema.Field{Name: "k", Type: schema.Interval, Mode: schema.Repeated}),
			`{"name":"r","type":{"type":"record","name":"RANGE_DATE","namespace":"google.sqlType","sqlType":"RANGE","fields":[` +
				`{"name":"start","type":["null",{"type":"int","logicalType":"date"}]},{"name":"end","type":["null",{"type":"int","logicalType":"date"}]}]}},` +
				`{"name":"s","type":["null","google.sqlType.RANGE_DATE"]},` +
				`{"name":"u","type":{"type":"record","name":"RANGE_TIMESTAMP","namespace":"google.sqlType","sqlType":"RANGE","fields":[` +
				`{"name":"start","type":["null",{"type":"long","logicalType":"timestamp-micros"}]},{"name":"end","type":["null",{"type":"long","logicalType":"timestamp-micros"}]}]}},` +
				`{"name":"i","type":["null",{"type":"record","name":"INTERVAL","namespace":"google.sqlType","sqlType":"INTERVAL","fields":[` +
				`{"name":"months","type":"int"},{"name":"days","type":"int"},{"name":"microseconds","type":"long"}]}]},` +
				`{"name":"k","type":{"type":"array","items":"google.sqlType.INTERVAL"}}`,
		},
	} {
		e, err := New(c.schema, Options{})
		if err != nil {
			t.Fatal(err)
		}
		// LBQ-121: the record is __root__ and has no namespace.
		want := `{"type":"record","name":"__root__","fields":[` + c.want + `]}`
		if diff := cmp.Diff(want, e.Schema()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if _, err := peer.Parse(e.Schema()); err != nil {
			t.Errorf("%s: another implementation refuses the schema: %v", name, err)
		}
	}
}

func TestColumnNames(t *testing.T) {
	s := fields(&schema.Field{Name: "größe"}, &schema.Field{Name: "gr  e"}, &schema.Field{Name: "ok"})
	for _, f := range s.Fields {
		f.Type = schema.Int64
	}
	if _, err := New(s, Options{}); err == nil || !strings.Contains(err.Error(), "größe") {
		t.Errorf("got %v, want an error that names the column", err)
	}
	e, err := New(s, Options{DisplayNames: true})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"record","name":"__root__","fields":[{"name":"_gr__e","displayName":"größe","type":["null","long"]},` +
		`{"name":"_gr__e_1","displayName":"gr  e","type":["null","long"]},{"name":"ok","displayName":"ok","type":["null","long"]}]}`
	if diff := cmp.Diff(want, e.Schema()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func batch(t testing.TB, s *schema.Schema, rows string) arrow.RecordBatch {
	t.Helper()
	b, _, err := arrowarray.RecordFromJSON(memory.DefaultAllocator, s.Arrow(), strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// decode reads rows with another implementation and fails the test unless they fill the block.
func decode(t *testing.T, e *Encoder, b arrow.RecordBatch) []map[string]any {
	t.Helper()
	p, err := peer.Parse(e.Schema())
	if err != nil {
		t.Fatal(err)
	}
	var block []byte
	rows := e.Rows(b)
	for i := range int(b.NumRows()) {
		block = rows.Append(block, i)
	}
	var out []map[string]any
	for range b.NumRows() {
		row := map[string]any{}
		if block, err = p.Decode(block, &row); err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	if len(block) != 0 {
		t.Fatalf("%d bytes are left over", len(block))
	}
	return out
}

func TestRows(t *testing.T) {
	s := fields(
		&schema.Field{Name: "i", Type: schema.Int64}, &schema.Field{Name: "f", Type: schema.Float64}, &schema.Field{Name: "b", Type: schema.Bool},
		&schema.Field{Name: "s", Type: schema.String, Mode: schema.Required}, &schema.Field{Name: "y", Type: schema.Bytes},
		&schema.Field{Name: "n", Type: schema.Numeric}, &schema.Field{Name: "bn", Type: schema.BigNumeric}, &schema.Field{Name: "d", Type: schema.Date},
		&schema.Field{Name: "t", Type: schema.Time}, &schema.Field{Name: "dt", Type: schema.DateTime}, &schema.Field{Name: "ts", Type: schema.Timestamp},
		&schema.Field{Name: "iv", Type: schema.Interval}, &schema.Field{Name: "r", Type: schema.Range, RangeElement: schema.DateTime},
		&schema.Field{Name: "st", Type: schema.Struct, Fields: []*schema.Field{{Name: "x", Type: schema.Int64}, {Name: "l", Type: schema.String, Mode: schema.Repeated}}},
		&schema.Field{Name: "a", Type: schema.Int64, Mode: schema.Repeated},
		&schema.Field{Name: "p", Type: schema.Timestamp, TimestampPrecision: 12},
	)
	b := batch(t, s, `[{"s": "skipped", "a": [7, 7, 7], "st": {"x": 9, "l": ["z"]}},
		{"i": -9223372036854775808, "f": -0.5, "b": true, "s": "é", "y": "AP8=", "n": "-12345678901234567890.5", "bn": "-0.5",
		"d": "1969-12-31", "t": "23:59:59.999999", "dt": "2020-10-01T12:00:00.000001", "ts": "1969-12-31T23:59:59.999999Z",
		"iv": {"months": 14, "days": -3, "micros": 3723500000}, "r": {"start": "2020-10-01T12:00:00", "end": null},
		"st": {"x": null, "l": ["p", "q"]}, "a": [1, -2], "p": "2014-08-19T12:41:35.220000000001Z"},
		{"s": "", "a": null}]`)
	e, err := New(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows := decode(t, e, b.NewSlice(1, 3)) // a slice, so that no offset is forgotten
	for name, want := range map[string]string{
		"i": "-9223372036854775808", "f": "-0.5", "b": "true", "s": "é", "y": "[0 255]", "n": "-12345678901234567890.500000000",
		"bn": "-0.50000000000000000000000000000000000000", "dt": "2020-10-01T12:00:00.000001", "ts": "1969-12-31 23:59:59.999999 +0000 UTC",
		"iv": "map[days:-3 microseconds:3723500000 months:14]", "r": "map[end:<nil> start:2020-10-01T12:00:00]",
		"st": "map[l:[p q] x:<nil>]", "a": "[1 -2]", "d": "1969-12-31 00:00:00 +0000 UTC", "t": "23h59m59.999999s", "p": "2014-08-19 12:41:35.22 +0000 UTC",
	} {
		if got := shown(rows[0][name]); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	for name, v := range rows[1] {
		want := "<nil>"
		switch name {
		case "s":
			want = ""
		case "a":
			want = "[]" // LBQ-142: a NULL array reads as an empty one
		}
		if got := shown(v); got != want {
			t.Errorf("absent %s: got %s, want %s", name, got, want)
		}
	}
	for option, want := range map[Picos]string{
		PicosAsNanos: "2014-08-19 12:41:35.22 +0000 UTC", PicosAsText: "2014-08-19T12:41:35.220000000001Z",
	} {
		e, err := New(s, Options{Picos: option})
		if err != nil {
			t.Fatal(err)
		}
		if got := shown(decode(t, e, b)[1]["p"]); got != want {
			t.Errorf("picoseconds by option %d: got %s, want %s", option, got, want)
		}
	}
}

func shown(v any) string {
	switch v := v.(type) {
	case *big.Rat:
		return v.FloatString(map[bool]int{true: 9, false: 38}[v.Num().BitLen() > 32])
	case time.Time:
		return v.UTC().String()
	}
	return fmt.Sprint(v)
}

func TestMinimalBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64().Draw(t, "v") >> rapid.IntRange(0, 63).Draw(t, "shift")
		short, long := appendMinimal64(nil, v), appendMinimal(nil, big.NewInt(v))
		if string(short) != string(long) {
			t.Fatalf("%d is written as %x and as %x", v, short, long)
		}
		got := new(big.Int).SetBytes(short[1:])
		if short[1]&0x80 != 0 {
			got.Sub(got, new(big.Int).Lsh(big.NewInt(1), uint(8*len(short[1:]))))
		}
		if got.Cmp(big.NewInt(v)) != 0 || int(short[0]) != 2*len(short[1:]) {
			t.Fatalf("%d is written as %x", v, short)
		}
		if len(short) > 2 && (short[1] == 0 && short[2] < 0x80 || short[1] == 0xff && short[2] >= 0x80) {
			t.Fatalf("%d is written as %x, longer than need be", v, short)
		}
	})
}

// BenchmarkAppend writes four columns, beside the same rows through a general Avro library.
func BenchmarkAppend(b *testing.B) {
	s := fields(&schema.Field{Name: "id", Type: schema.Int64}, &schema.Field{Name: "name", Type: schema.String},
		&schema.Field{Name: "score", Type: schema.Float64}, &schema.Field{Name: "at", Type: schema.Timestamp})
	const rows = 10_000
	var text strings.Builder
	for i := range rows {
		fmt.Fprintf(&text, `{"id": %d, "name": "name of row %d", "score": %d.5, "at": "2026-05-02T12:00:00.%06dZ"}`, i, i, i, i)
	}
	records := batch(b, s, "["+strings.ReplaceAll(text.String(), "}{", "},{")+"]")
	e, err := New(s, Options{})
	if err != nil {
		b.Fatal(err)
	}
	var block []byte
	b.Run("millrace", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			block = block[:0]
			bound := e.Rows(records)
			for i := range rows {
				block = bound.Append(block, i)
			}
		}
		b.SetBytes(int64(len(block)))
		b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
	b.Run("general library", func(b *testing.B) {
		p, err := peer.Parse(e.Schema())
		if err != nil {
			b.Fatal(err)
		}
		values := make([]map[string]any, rows)
		rest := block
		for i := range values {
			values[i] = map[string]any{}
			if rest, err = p.Decode(rest, &values[i]); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportAllocs()
		for b.Loop() {
			block = block[:0]
			for i := range values {
				if block, err = p.AppendEncode(block, values[i]); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.SetBytes(int64(len(block)))
		b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
}
