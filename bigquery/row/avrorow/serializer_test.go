package avrorow

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/twmb/avro"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
	ours "github.com/millrace-dev/millrace/internal/avro"
)

// everything has a field of every type.
const everything = `{"type":"record","name":"All","namespace":"x","fields":[
	{"name":"flag","type":"boolean"},
	{"name":"i","type":["null","int"]},
	{"name":"l","type":"long"},
	{"name":"fl","type":"float"},
	{"name":"d","type":["double","null"]},
	{"name":"s","type":["null","string"]},
	{"name":"by","type":"bytes"},
	{"name":"fx","type":{"type":"fixed","name":"F","size":3}},
	{"name":"e","type":{"type":"enum","name":"E","symbols":["A","BB"]}},
	{"name":"day","type":{"type":"int","logicalType":"date"}},
	{"name":"tm","type":{"type":"int","logicalType":"time-millis"}},
	{"name":"tu","type":{"type":"long","logicalType":"time-micros"}},
	{"name":"at","type":{"type":"long","logicalType":"timestamp-micros"}},
	{"name":"dt","type":{"type":"long","logicalType":"local-timestamp-micros"}},
	{"name":"n","type":["null",{"type":"bytes","logicalType":"decimal","precision":12,"scale":4}]},
	{"name":"bn","type":{"type":"fixed","name":"D","size":16,"logicalType":"decimal","precision":38,"scale":20}},
	{"name":"j","type":"string"},
	{"name":"st","type":["null",{"type":"record","name":"S","fields":[{"name":"x","type":"long"},{"name":"list","type":{"type":"array","items":"E"}}]}]},
	{"name":"m","type":{"type":"map","values":["null","S"]}},
	{"name":"many","type":["null",{"type":"array","items":"double"}]}
]}`

// full is a record with every field.
func full() map[string]any {
	inner := func() map[string]any { return map[string]any{"x": int64(-1), "list": []any{"A", "BB"}} }
	return map[string]any{
		"flag": true, "i": int32(-5), "l": int64(1) << 40, "fl": float32(1.5), "d": 2.25, "s": strings.Repeat("é", 100), "by": []byte{1, 2},
		"fx": []byte("abc"), "e": "BB", "day": int32(-1), "tm": int32(1), "tu": int64(2), "at": int64(-1), "dt": int64(-1), "n": []byte{0xff},
		"bn": append(make([]byte, 15), 1), "j": "{}", "st": inner(), "m": map[string]any{"z": inner(), "a": nil}, "many": []any{1.0, 2.0},
	}
}

func fullValues() []row.Value {
	inner := rowtest.List(integer(-1), rowtest.List(rowtest.Text("A"), rowtest.Text("BB")))
	return []row.Value{
		integer(1), integer(-5), integer(1 << 40), rowtest.Float(1.5), rowtest.Float(2.25), rowtest.Text(strings.Repeat("é", 100)), rowtest.Text("\x01\x02"),
		rowtest.Text("abc"), rowtest.Text("BB"), integer(-1), integer(1000), integer(2), integer(-1), integer(-1), rowtest.Decimal(table.Numeric, "-0.0001"),
		rowtest.Decimal(table.BigNumeric, "0.00000000000000000001"), rowtest.Text("{}"), inner,
		rowtest.List(rowtest.List(rowtest.Text("a"), rowtest.Null), rowtest.List(rowtest.Text("z"), inner)),
		rowtest.List(rowtest.Float(1), rowtest.Float(2)),
	}
}

// empty is a record with nothing in it that can be left out.
func empty() map[string]any {
	m := full()
	for _, name := range []string{"i", "d", "s", "n", "st", "many"} {
		m[name] = nil
	}
	m["m"] = map[string]any{}
	return m
}

func emptyValues() []row.Value {
	v := fullValues()
	for _, i := range []int{1, 4, 5, 14, 17} {
		v[i] = rowtest.Null
	}
	v[18], v[19] = row.Value{}, row.Value{}
	return v
}

func parsed(t testing.TB, text string) *ours.Schema {
	t.Helper()
	s, err := ours.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var options = Options{JSONPaths: []string{"j"}}

func itself[T any](v T) T { return v }

func TestSuite(t *testing.T) {
	schema := parsed(t, everything)
	datum := func(m map[string]any) func() []byte { return func() []byte { return encode(nil, schema, m) } }
	t.Run("datums", func(t *testing.T) {
		bad := full()
		bad["s"] = "\xff"
		rowtest.Test(t, rowtest.Format[[]byte]{
			New:      func() (row.Serializer[[]byte], error) { return New(everything, itself[[]byte], options) },
			Scribble: func(b []byte) { clear(b) },
			Cases: []rowtest.Case[[]byte]{
				{Name: "full", Record: datum(full()), Values: fullValues()},
				{Name: "empty", Record: datum(empty()), Values: emptyValues()},
				{Name: "text", Record: datum(bad), Err: &row.Error{Kind: row.KindText, Path: "s", Offset: 24}},
				{Name: "nothing", Record: func() []byte { return nil }, Err: &row.Error{Kind: row.KindType, Path: "flag"}},
				{Name: "too much", Record: func() []byte { return append(datum(full())(), 0) }, Err: &row.Error{Kind: row.KindType}},
			},
		})
	})
	t.Run("records", func(t *testing.T) {
		bad := full()
		bad["st"].(map[string]any)["list"] = []any{"A", "C"}
		rowtest.Test(t, rowtest.Format[map[string]any]{
			New: func() (row.Serializer[map[string]any], error) {
				return NewRecords(everything, itself[map[string]any], options)
			},
			Scribble: func(m map[string]any) {
				clear(m["by"].([]byte))
				clear(m["fx"].([]byte))
			},
			Cases: []rowtest.Case[map[string]any]{
				{Name: "full", Record: full, Values: fullValues()},
				{Name: "empty", Record: empty, Values: emptyValues()},
				{Name: "symbol", Record: func() map[string]any { return bad }, Err: &row.Error{Kind: row.KindType, Path: "st.list[1]"}},
			},
		})
	})
	t.Run("SER-2 a row of NULLs", func(t *testing.T) {
		rowtest.Test(t, rowtest.Format[[]byte]{
			New:   func() (row.Serializer[[]byte], error) { return New(of(`["null","long"]`), itself[[]byte], Options{}) },
			Cases: []rowtest.Case[[]byte]{{Name: "null", Record: func() []byte { return []byte{0} }, Values: []row.Value{rowtest.Null}}},
		})
	})
}

// TestPeerDatums reads what another library wrote of converted values.
func TestPeerDatums(t *testing.T) {
	peer := avro.MustParse(everything)
	m := full()
	m["day"] = time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC)
	m["tm"], m["tu"] = time.Millisecond, 2*time.Microsecond
	m["at"] = time.UnixMicro(-1).UTC()
	m["dt"] = time.UnixMicro(-1).UTC()
	m["n"], m["bn"] = big.NewRat(-1, 10_000), new(big.Rat).SetFrac64(1, 1e9)
	datum, err := peer.AppendEncode(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	fromDatum, err := New(everything, itself[[]byte], options)
	if err != nil {
		t.Fatal(err)
	}
	fromRecord, err := NewRecords(everything, itself[map[string]any], options)
	if err != nil {
		t.Fatal(err)
	}
	a, err := fromDatum.AppendRow(nil, table.Destination{}, datum)
	b, err2 := fromRecord.AppendRow(nil, table.Destination{}, m)
	if err != nil || err2 != nil || string(a) != string(b) {
		t.Errorf("the datum gives %x, %v; the record %x, %v", a, err, b, err2)
	}
}

func TestNoGarbage(t *testing.T) {
	s, err := New(everything, itself[[]byte], options)
	if err != nil {
		t.Fatal(err)
	}
	datum := encode(nil, parsed(t, everything), full())
	buf := make([]byte, 0, 4096)
	d := &decoding{} // the pool that holds them forgets some under the race detector
	if n := testing.AllocsPerRun(100, func() {
		if _, err := d.datum(buf, datum, s.plan); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations a row, want none", n)
	}
}

const benchSchema = `{"type":"record","name":"Bench","fields":[
	{"name":"id","type":"long"},
	{"name":"event","type":"string"},
	{"name":"user","type":["null","string"]},
	{"name":"status","type":["null","int"]},
	{"name":"seconds","type":["null","double"]},
	{"name":"cached","type":["null","boolean"]},
	{"name":"at","type":{"type":"long","logicalType":"timestamp-micros"}},
	{"name":"country","type":["null","string"]}]}`

func benchRecord() map[string]any {
	return map[string]any{"id": int64(9007199254740993), "event": "page_view", "user": "u-58213", "status": int32(200), "seconds": 0.0837,
		"cached": false, "at": int64(1785027723456789), "country": "PT"}
}

func reportRows(b *testing.B) {
	b.ReportAllocs()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkAppendRow is a row of eight fields: from the datum, from a Go map, and what one would write without this package.
func BenchmarkAppendRow(b *testing.B) {
	datum := encode(nil, parsed(b, benchSchema), benchRecord())
	buf := make([]byte, 0, 4096)
	b.Run("datum", func(b *testing.B) {
		s, err := New(benchSchema, itself[[]byte], Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(datum)))
		for b.Loop() {
			if _, err := s.AppendRow(buf, table.Destination{}, datum); err != nil {
				b.Fatal(err)
			}
		}
		reportRows(b)
	})
	b.Run("record", func(b *testing.B) {
		s, err := NewRecords(benchSchema, itself[map[string]any], Options{})
		if err != nil {
			b.Fatal(err)
		}
		m := benchRecord()
		for b.Loop() {
			if _, err := s.AppendRow(buf, table.Destination{}, m); err != nil {
				b.Fatal(err)
			}
		}
		reportRows(b)
	})
	b.Run("decode first", func(b *testing.B) {
		s, err := NewRecords(benchSchema, itself[map[string]any], Options{})
		if err != nil {
			b.Fatal(err)
		}
		peer := avro.MustParse(benchSchema)
		for b.Loop() {
			var m any
			if _, err := peer.Decode(datum, &m); err != nil {
				b.Fatal(err)
			}
			if _, err := s.AppendRow(buf, table.Destination{}, m.(map[string]any)); err != nil {
				b.Fatal(err)
			}
		}
		reportRows(b)
	})
}

func ExampleNew() {
	const schema = `{"type":"record","name":"Visit","fields":[
		{"name":"id","type":"long"},
		{"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}},
		{"name":"pages","type":{"type":"array","items":"string"}},
		{"name":"note","type":["null","string"]}]}`
	s, err := New(schema, func(datum []byte) []byte { return datum }, Options{DeriveRequired: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	dst := table.Destination{Project: "my-project", Dataset: "web", Table: "visits"}
	derived, _ := s.Schema(dst)
	for _, f := range derived.Fields {
		fmt.Println(f.Name, f.Type, f.Mode)
	}
	b, err := s.AppendRow(nil, dst, []byte{14, 2, 2, 2, '/', 0, 0})
	fmt.Printf("%x %v\n", b, err)
	_, err = s.AppendRow(nil, dst, []byte{14, 2, 2, 2, 0xff, 0, 0})
	fmt.Println(err)
	// Output:
	// id INT64 REQUIRED
	// at TIMESTAMP REQUIRED
	// pages STRING REPEATED
	// note STRING NULLABLE
	// 080710e8071a012f <nil>
	// R-TEXT: field pages[0]: the text is not valid UTF-8 (at byte 4 of the record)
}
