package csvrow

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

var dst = table.Destination{Project: "my-project", Dataset: "d", Table: "t"}

// record is a record and its header, nil for none.
type record struct{ header, text []byte }

func read(r record) (header, text []byte) { return r.header, r.text }

func field(name string, t table.Type) table.Field { return table.Field{Name: name, Type: t} }

func newSerializer(t testing.TB, o Options, fields ...table.Field) *Serializer[record] {
	t.Helper()
	s, err := New(read, Fixed(&table.Schema{Fields: fields}), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// values makes the row of a record and decodes it.
func values(t testing.TB, s *Serializer[record], r record) ([]row.Value, error) {
	t.Helper()
	data, err := s.AppendRow(nil, dst, r)
	if err != nil {
		return nil, err
	}
	schema, err := s.Schema(dst)
	if err != nil {
		t.Fatal(err)
	}
	d, err := row.NewDecoder(schema)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := d.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return decoded.Values, nil
}

func wantError(t *testing.T, err error, kind row.Kind, path string) {
	t.Helper()
	var e *row.Error
	if !errors.As(err, &e) || e.Kind != kind || e.Path != path {
		t.Errorf("%v, want %s at %q", err, kind, path)
	}
}

func TestSuite(t *testing.T) {
	schema := &table.Schema{Fields: []table.Field{{Name: "id", Type: table.Int64, Mode: table.Required}, field("s", table.String), field("ts", table.Timestamp)}}
	rec := func(header, text string) func() record {
		return func() record {
			r := record{nil, []byte(text)}
			if header != "" {
				r.header = []byte(header)
			}
			return r
		}
	}
	null := rowtest.Null
	rowtest.Test(t, rowtest.Format[record]{
		New:         func() (row.Serializer[record], error) { return New(read, Fixed(schema), Options{}) },
		Destination: dst,
		Cases: []rowtest.Case[record]{
			{Name: "plain", Record: rec("", "7,tea,1970-01-01T00:00:00.000001Z"), Values: []row.Value{{Int: 7}, rowtest.Text("tea"), {Int: 1}}},
			{Name: "by name", Record: rec("TS,id", "1970-01-01 00:00:01,7"), Values: []row.Value{{Int: 7}, null, {Int: 1_000_000}}},
			{Name: "quoted", Record: rec("", "7,\"a \"\"b\"\",\r\nc\","), Values: []row.Value{{Int: 7}, rowtest.Text("a \"b\",\r\nc"), null}},
			{Name: "empty and NULL", Record: rec("", `7,"",`), Values: []row.Value{{Int: 7}, rowtest.Text(""), null}},
			{Name: "REQUIRED", Record: rec("", ",x,"), Err: &row.Error{Kind: row.KindRequired, Path: "id"}},
			{Name: "wrong type", Record: rec("", `7,x,"soon, perhaps"`), Err: &row.Error{Kind: row.KindType, Path: "ts", Offset: 4}},
			{Name: "too few", Record: rec("", "7,x"), Err: &row.Error{Kind: row.KindType, Offset: 3}},
			{Name: "too many", Record: rec("", "7,x,,y"), Err: &row.Error{Kind: row.KindUnknown, Offset: 5}},
			{Name: "no such column", Record: rec("id,more", "7,x"), Err: &row.Error{Kind: row.KindHeader, Path: "more"}},
		},
		Scribble: func(r record) { clear(r.text); clear(r.header) },
	})
}

// TestCells has every type, what it takes and what it refuses.
func TestCells(t *testing.T) {
	number := func(n int64) row.Value { return row.Value{Int: n} }
	for _, c := range []struct {
		column table.Field
		cell   string
		want   row.Value
		kind   row.Kind
		o      Options
	}{
		{column: field("c", table.Int64), cell: "-9223372036854775808", want: number(math.MinInt64)},
		{column: field("c", table.Int64), cell: "9223372036854775807", want: number(math.MaxInt64)},
		{column: field("c", table.Int64), cell: "9223372036854775808", kind: row.KindRange},
		{column: field("c", table.Int64), cell: "99999999999999999999999999", kind: row.KindRange},
		{column: field("c", table.Int64), cell: `"12"`, want: number(12)},
		{column: field("c", table.Int64), cell: "+1", kind: row.KindType},
		{column: field("c", table.Int64), cell: "1.0", kind: row.KindType},
		{column: field("c", table.Int64), cell: " 1", kind: row.KindType},
		{column: field("c", table.Int64), cell: "-", kind: row.KindType},
		{column: field("c", table.Int64), cell: `""`, kind: row.KindType},
		{column: field("c", table.Float64), cell: "1.5e3", want: rowtest.Float(1500)},
		{column: field("c", table.Float64), cell: "-Infinity", want: rowtest.Float(math.Inf(-1))},
		{column: field("c", table.Float64), cell: "NaN", want: rowtest.Float(quietNaN)},
		{column: field("c", table.Float64), cell: "inf", kind: row.KindType},
		{column: field("c", table.Float64), cell: "0x1p4", kind: row.KindType},
		{column: field("c", table.Float64), cell: "1_000", kind: row.KindType},
		{column: field("c", table.Float64), cell: "1e400", kind: row.KindRange},
		{column: field("c", table.Bool), cell: "TRUE", want: number(1)},
		{column: field("c", table.Bool), cell: "false", want: number(0)},
		{column: field("c", table.Bool), cell: "1", kind: row.KindType},
		{column: field("c", table.Numeric), cell: "-1.250", want: rowtest.Decimal(table.Numeric, "-1.25")},
		{column: field("c", table.Numeric), cell: "0.1234567891", kind: row.KindScale},
		{column: field("c", table.BigNumeric), cell: "1e-38", want: rowtest.Decimal(table.BigNumeric, "1e-38")},
		{column: table.Field{Name: "c", Type: table.Numeric, Precision: 3, Scale: 1}, cell: "123.4", kind: row.KindRange},
		{column: field("c", table.String), cell: "a b", want: rowtest.Text("a b")},
		{column: field("c", table.String), cell: " ", want: rowtest.Text(" ")},
		{column: field("c", table.String), cell: `"a""b"`, want: rowtest.Text(`a"b`)},
		{column: field("c", table.JSON), cell: `"{""k"":1}"`, want: rowtest.Text(`{"k":1}`)},
		{column: field("c", table.Geography), cell: "POINT(1 2)", want: rowtest.Text("POINT(1 2)")},
		{column: field("c", table.Bytes), cell: "aGk=", want: rowtest.Text("hi")},
		{column: field("c", table.Bytes), cell: "aGk", want: rowtest.Text("hi")},
		{column: field("c", table.Bytes), cell: "_-8", want: rowtest.Text("\xff\xef")},
		{column: field("c", table.Bytes), cell: `""`, want: rowtest.Text("")},
		{column: field("c", table.Bytes), cell: "a*", kind: row.KindType},
		{column: field("c", table.Bytes), cell: "aGk==", kind: row.KindType},
		{column: field("c", table.Bytes), cell: "\"aG\nk=\"", kind: row.KindType},
		{column: field("c", table.Date), cell: "2026-7-26", want: number(20660)},
		{column: field("c", table.Date), cell: "20660", kind: row.KindType},
		{column: field("c", table.Date), cell: "2027-02-29", kind: row.KindRange},
		{column: field("c", table.Time), cell: "01:02:03.456789", want: number(3723456789)},
		{column: field("c", table.Time), cell: "01:02:03.4567891", kind: row.KindScale},
		{column: field("c", table.DateTime), cell: "2021-9-27 20:51:10.752", want: number(1632775870752000)},
		{column: field("c", table.Timestamp), cell: "2022-04-05T09:06:11+04:00", want: number(1649135171000000)},
		{column: field("c", table.Timestamp), cell: "1700000000", kind: row.KindType},
		{column: field("c", table.Timestamp), cell: "1700000000", want: number(1700000000000000), o: Options{TimestampNumbers: Seconds}},
		{column: field("c", table.Timestamp), cell: "-1", want: number(-1000), o: Options{TimestampNumbers: Millis}},
		{column: field("c", table.Timestamp), cell: "7", want: number(7), o: Options{TimestampNumbers: Micros}},
		{column: field("c", table.Timestamp), cell: "9223372036854775807", kind: row.KindRange, o: Options{TimestampNumbers: Seconds}},
		{column: field("c", table.Interval), cell: "1-2 3 4:5:6.5", want: rowtest.List(number(14), number(3), number(14706500000))},
		{column: field("c", table.Interval), cell: "P1Y", kind: row.KindType},
		{column: table.Field{Name: "c", Type: table.Range, Range: table.Date}, cell: `"[2026-07-26, UNBOUNDED)"`, want: rowtest.List(number(20660), rowtest.Null)},
		{column: table.Field{Name: "c", Type: table.Range, Range: table.Date}, cell: `"[unbounded, 2026-07-26)"`, want: rowtest.List(rowtest.Null, number(20660))},
		{column: table.Field{Name: "c", Type: table.Range, Range: table.Date}, cell: `"[2026-07-26,2026-07-27)"`, kind: row.KindType},
		{column: table.Field{Name: "c", Type: table.Range, Range: table.Date}, cell: "[)", kind: row.KindType},
		{column: field("c", table.String), cell: `\N`, want: rowtest.Null, o: Options{NullMarkers: []string{`\N`, "NULL"}}},
		{column: field("c", table.Int64), cell: "NULL", want: rowtest.Null, o: Options{NullMarkers: []string{`\N`, "NULL"}}},
		{column: field("c", table.String), cell: `"NULL"`, want: rowtest.Text("NULL"), o: Options{NullMarkers: []string{"NULL"}}},
		{column: field("c", table.String), cell: "", want: rowtest.Text(""), o: Options{NullMarkers: []string{"NULL"}}},
		{column: field("c", table.Int64), cell: "", kind: row.KindType, o: Options{NullMarkers: []string{"NULL"}}},
		{column: field("c", table.String), cell: `'it''s'`, want: rowtest.Text("it's"), o: Options{Quote: '\''}},
		{column: field("c", table.String), cell: `a"b`, want: rowtest.Text(`a"b`), o: Options{NoQuotes: true}},
		{column: field("c", table.String), cell: `a,b`, want: rowtest.Text(`a,b`), o: Options{Delimiter: '\t'}},
		{column: field("c", table.String), cell: `a"b`, kind: row.KindType},
		{column: field("c", table.String), cell: `"a`, kind: row.KindType},
		{column: field("c", table.String), cell: `"a" `, kind: row.KindType},
		{column: field("c", table.String), cell: `"a"b"`, kind: row.KindType},
		{column: field("c", table.String), cell: "a\nb", kind: row.KindType},
		{column: field("c", table.String), cell: "a\rb", kind: row.KindType},
		{column: field("c", table.String), cell: "a\x00b", want: rowtest.Text("a\x00b")},
	} {
		t.Run(fmt.Sprintf("%v %q", c.column.Type, c.cell), func(t *testing.T) {
			s := newSerializer(t, c.o, c.column)
			got, err := values(t, s, record{nil, []byte(c.cell)})
			if c.kind != "" {
				wantError(t, err, c.kind, "c")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := rowtest.Diff(&table.Schema{Fields: []table.Field{c.column}}, []row.Value{c.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	s := newSerializer(t, Options{}, field("c", table.String))
	_, err := values(t, s, record{nil, []byte("\xff")})
	wantError(t, err, row.KindText, "c")
}

func TestShapes(t *testing.T) {
	a, b := field("a", table.Int64), field("b", table.String)
	s := newSerializer(t, Options{AllowJaggedRows: true, IgnoreUnknown: true}, a, b)
	for text, want := range map[string]string{"1": "0801", "1,x": "0801120178", "1,x,y,z": "0801120178", "": ""} {
		if got, err := s.AppendRow(nil, dst, record{nil, []byte(text)}); err != nil || fmt.Sprintf("%x", got) != want {
			t.Errorf("%q: %x, %v, want %s", text, got, err, want)
		}
	}
	got, err := s.AppendRow(nil, dst, record{[]byte("more,B"), []byte(`9,"x"`)})
	if err != nil || fmt.Sprintf("%x", got) != "120178" {
		t.Errorf("%x, %v: columns that the table lacks are passed over", got, err)
	}
	// Files of one job may differ in their headers.
	strict := newSerializer(t, Options{}, a, b)
	for range 2 {
		for header, text := range map[string]string{"a,b": "1,x", "b,a": "x,1"} {
			v, err := values(t, strict, record{[]byte(header), []byte(text)})
			if err != nil || v[0].Int != 1 || string(v[1].Bytes) != "x" {
				t.Errorf("%s: %v, %v", header, v, err)
			}
		}
	}
	required := newSerializer(t, Options{}, table.Field{Name: "a", Type: table.Int64, Mode: table.Required}, b)
	for header, path := range map[string]string{"b": "a", "a,a": "a", "a,A": "A", "a,": "", `a,"b`: "", "a,\xff": "", "a,c`; DROP TABLE": "c`; DROP TABLE"} {
		_, err := required.AppendRow(nil, dst, record{[]byte(header), []byte("1,x")})
		wantError(t, err, row.KindHeader, path)
	}
}

func TestNewRefuses(t *testing.T) {
	good := Fixed(&table.Schema{Fields: []table.Field{field("a", table.Int64)}})
	for name, o := range map[string]Options{"a delimiter that is the quote": {Delimiter: '"'}, "line end": {Delimiter: '\n'}, "not ASCII": {Delimiter: 0xe9},
		"quote": {Quote: '\r'}, "marker": {NullMarkers: []string{"a,b"}}, "marker with a line end": {NullMarkers: []string{"\n"}}, "numbers": {TimestampNumbers: 9}} {
		if _, err := New(read, good, o); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
	for _, f := range []table.Field{{Name: "l", Type: table.Int64, Mode: table.Repeated}, {Name: "s", Type: table.Struct, Fields: []table.Field{field("x", table.Int64)}}} {
		_, err := New(read, Fixed(&table.Schema{Fields: []table.Field{f}}), Options{})
		wantError(t, err, row.KindColType, f.Name)
	}
	if _, err := New[record](nil, good, Options{}); err == nil {
		t.Error("no function: want an error")
	}
	if _, err := New(read, &Mapping{Schema: good.Schema, Names: []string{"a", "b"}}, Options{}); err == nil {
		t.Error("two names for one column: want an error")
	}
}

func TestPerDestination(t *testing.T) {
	s, err := New(read, PerDestination(func(d table.Destination) (*Mapping, error) {
		if d.Table == "none" {
			return nil, nil
		}
		return &Mapping{Schema: &table.Schema{Fields: []table.Field{field("a_b", table.Int64)}}, Names: []string{"a.b"}}, nil
	}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.AppendRow(nil, dst, record{[]byte("a.b"), []byte("1")}); err != nil || string(got) != "\x08\x01" {
		t.Errorf("%x, %v", got, err)
	}
	none := dst
	none.Table = "none"
	_, err = s.AppendRow(nil, none, record{nil, []byte("1")})
	wantError(t, err, row.KindSchema, "")
}

func TestAppendField(t *testing.T) {
	for name, want := range map[string]string{"event": "push", "Event": "R-REQUIRED", "": "R-REQUIRED", "note": "a,b", "gone": "R-REQUIRED", "cut": "R-REQUIRED"} {
		got, err := AppendField([]byte("x."), []byte("id,event,note,gone,cut"), []byte(`1,push,"a,b",`), name, Options{})
		var e *row.Error
		if errors.As(err, &e) {
			got = []byte("x." + string(e.Kind))
		}
		if string(got) != "x."+want {
			t.Errorf("%q: %s, %v, want %s", name, got, err, want)
		}
	}
}

// TestCutsAsTheStandardLibrary holds the cells of any record that encoding/csv writes to what it wrote.
func TestCutsAsTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		comma := rapid.SampledFrom([]byte{',', ';', '\t', '|'}).Draw(t, "comma")
		cells := rapid.SliceOfN(rapid.StringMatching(`[a,;|"\t\n é\\]{0,6}`), 1, 6).Draw(t, "cells")
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		w.Comma = rune(comma)
		if err := w.Write(cells); err != nil {
			t.Fatal(err)
		}
		w.Flush()
		text := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
		got, err := Fields(text, Options{Delimiter: comma})
		if err != nil || strings.Join(got, "\x00") != strings.Join(cells, "\x00") || len(got) != len(cells) {
			t.Fatalf("%q: %q, %v, want %q", text, got, err, cells)
		}
	})
}

// FuzzAppendRow: no record makes a panic, and what the strict reader of the standard library takes has as many cells here.
func FuzzAppendRow(f *testing.F) {
	f.Add("a,b,c", `1,"x ""y""",2026-01-01`)
	f.Add("c,a", "\"\n\",1")
	f.Add("", `",,"`)
	s := newSerializer(f, Options{AllowJaggedRows: true}, field("a", table.Int64), field("b", table.String), field("c", table.Timestamp))
	f.Fuzz(func(t *testing.T, header, text string) {
		r := record{[]byte(header), []byte(text)}
		if header == "" {
			r.header = nil
		}
		out, err := s.AppendRow([]byte("before"), dst, r)
		if err == nil && !bytes.HasPrefix(out, []byte("before")) {
			t.Error("what was in the buffer is gone")
		}
		_, _ = AppendField(nil, r.header, r.text, "a", Options{})
		// The standard library turns line ends within quotes into \n, and passes over blank records.
		if strings.ContainsRune(text, '\r') || strings.TrimSpace(text) == "" || strings.HasSuffix(text, "\n") {
			return
		}
		c := csv.NewReader(strings.NewReader(text))
		want, err := c.Read()
		if _, more := c.Read(); err != nil || more == nil {
			return
		}
		got, err := Fields([]byte(text), Options{})
		var e *row.Error
		if errors.As(err, &e) && e.Kind == row.KindText {
			return
		}
		if err != nil && !strings.Contains(text, "\n") || err == nil && strings.Join(got, "\x00") != strings.Join(want, "\x00") {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	})
}

func TestAppendRowAllocatesNothing(t *testing.T) {
	s, r := twelve(t)
	buf := make([]byte, 0, 4096)
	p := &parser{scanner: newScanner(s.options), options: &s.options} // the pool that holds them forgets some under the race detector
	var err error
	if n := testing.AllocsPerRun(100, func() {
		if err = p.under(s.fixed, r.header); err == nil {
			_, err = p.row(buf, r.text)
		}
	}); n != 0 || err != nil {
		t.Errorf("%v allocations, %v", n, err)
	}
}

// twelve is a record of twelve cells.
func twelve(t testing.TB) (*Serializer[record], record) {
	s := newSerializer(t, Options{}, field("id", table.Int64), field("name", table.String), field("at", table.Timestamp), field("day", table.Date),
		field("price", table.Numeric), field("score", table.Float64), field("flag", table.Bool), field("note", table.String), field("city", table.String),
		field("count", table.Int64), field("gone", table.String), field("doc", table.JSON))
	return s, record{[]byte("id,name,at,day,price,score,flag,note,city,count,gone,doc"),
		[]byte(`1234567,"Grace ""Amazing"" Hopper",2026-07-26T01:02:03.456789Z,2026-07-26,12.50,0.75,true,some text of usual length,Vienna,42,,"{""a"":1}"`)}
}

func BenchmarkAppendRow(b *testing.B) {
	s, r := twelve(b)
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	b.SetBytes(int64(len(r.text) + 1))
	for b.Loop() {
		if _, err := s.AppendRow(buf, dst, r); err != nil {
			b.Fatal(err)
		}
	}
}
