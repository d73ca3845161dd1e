package jsonrow

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func TestRoundTrip(t *testing.T) {
	s, d := fuzzPair(t, Options{JSONColumns: Values})
	for name, o := range map[string]WriteOptions{"plain": {}, "nulls": {Nulls: true}, "no empty lists": {OmitEmptyLists: true}} {
		w := NewWriter(o)
		rapid.Check(t, func(t *rapid.T) {
			values := rowtest.Rows(allTypes).Draw(t, "values")
			nullText(allTypes.Fields, values)
			values[0] = rowtest.Text("so that no document is {}")
			doc, err := w.AppendJSON([]byte("before"), &row.Row{Schema: allTypes, Values: values})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if doc = doc[len("before"):]; !json.Valid(doc) {
				t.Fatalf("%s: not valid JSON: %s", name, doc)
			}
			data, err := s.AppendRow(nil, table.Destination{}, doc)
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, doc)
			}
			back, err := d.Decode(data)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if diff := rowtest.Diff(allTypes, values, back.Values); diff != "" {
				t.Fatalf("%s: %s: %s", name, doc, diff)
			}
		})
	}
}

func TestAppendJSON(t *testing.T) {
	schema := &table.Schema{Fields: []table.Field{
		{Name: "i", Type: table.Int64}, {Name: "f", Type: table.Float64}, {Name: "n", Type: table.Numeric}, {Name: "b", Type: table.Bytes},
		{Name: "ts", Type: table.Timestamp}, {Name: "dt", Type: table.DateTime}, {Name: "d", Type: table.Date}, {Name: "t", Type: table.Time},
		{Name: "iv", Type: table.Interval}, {Name: "j", Type: table.JSON}, {Name: "r", Type: table.Range, Range: table.Date},
		{Name: "l", Type: table.String, Mode: table.Repeated}, {Name: "s", Type: table.Struct, Fields: col(table.Bool)}, {Name: "g", Type: table.Geography},
	}}
	values := []row.Value{
		{Int: math.MinInt64}, rowtest.Float(1e21), rowtest.Decimal(table.Numeric, "-1.2500"), rowtest.Text("hi"),
		{Int: -1}, {Int: 1_500_000}, {Int: -1}, {Int: 3723456789},
		rowtest.List(row.Value{Int: -14}, row.Value{Int: 3}, row.Value{Int: 1_500_000}), rowtest.Text(`{ "a" : [1, "x y"] }`), rowtest.List(row.Value{Int: 0}, rowtest.Null),
		{}, rowtest.List(rowtest.Null), rowtest.Text("POINT(1 2)"),
	}
	for _, c := range []struct {
		o    WriteOptions
		want string
	}{
		{WriteOptions{}, `{"i":-9223372036854775808,"f":1e+21,"n":-1.25,"b":"aGk=","ts":"1969-12-31T23:59:59.999999Z","dt":"1970-01-01T00:00:01.500",` +
			`"d":"1969-12-31","t":"01:02:03.456789","iv":"-1-2 3 0:0:1.500","j":{"a":[1,"x y"]},"r":{"start":"1970-01-01","end":null},"l":[],"s":{},"g":"POINT(1 2)"}`},
		{WriteOptions{Nulls: true, OmitEmptyLists: true}, `{"i":-9223372036854775808,"f":1e+21,"n":-1.25,"b":"aGk=","ts":"1969-12-31T23:59:59.999999Z","dt":"1970-01-01T00:00:01.500",` +
			`"d":"1969-12-31","t":"01:02:03.456789","iv":"-1-2 3 0:0:1.500","j":{"a":[1,"x y"]},"r":{"start":"1970-01-01","end":null},"s":{"c":null},"g":"POINT(1 2)"}`},
	} {
		got, err := NewWriter(c.o).AppendJSON(nil, &row.Row{Schema: schema, Values: values})
		if err != nil || string(got) != c.want {
			t.Errorf("%+v writes\n%s, %v, want\n%s", c.o, got, err, c.want)
		}
	}
}

func TestReading(t *testing.T) {
	for _, c := range []struct {
		name   string
		fields []table.Field
		value  row.Value
		want   string
	}{
		{"SER-157", col(table.Timestamp), row.Value{Int: -1}, `{"c":"1969-12-31T23:59:59.999999Z"}`},
		{"SER-158", col(table.DateTime), row.Value{Int: 1786538096123456}, `{"c":"2026-08-12T12:34:56.123456"}`},
		{"SER-162", []table.Field{{Name: "c", Type: table.Range, Range: table.Date}}, rowtest.List(row.Value{Int: -1}, rowtest.Null), `{"c":{"start":"1969-12-31","end":null}}`},
	} {
		got, err := NewWriter(WriteOptions{}).AppendJSON(nil, &row.Row{Schema: &table.Schema{Fields: c.fields}, Values: []row.Value{c.value}})
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v, want %s", c.name, got, err, c.want)
		}
	}
}

func TestAppendJSONOfKeys(t *testing.T) {
	schema := &table.Schema{Fields: []table.Field{{Name: "s", Type: table.Struct, Fields: []table.Field{{Name: "plus_1", Type: table.Int64}}}, {Name: "x", Type: table.Int64}}}
	w := NewWriter(WriteOptions{Keys: &Keys{Names: []string{"s", "a\"b"}, Members: []*Keys{{Names: []string{"+1"}}, nil}}})
	got, err := w.AppendJSON(nil, &row.Row{Schema: schema, Values: []row.Value{rowtest.List(row.Value{Int: 1}), {Int: 2}}})
	if want := `{"s":{"+1":1},"a\"b":2}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if _, err := w.AppendJSON(nil, &row.Row{Schema: benchSchema}); kindOf(t, err) != row.KindSchema {
		t.Errorf("keys of another schema: %v, want %s", err, row.KindSchema)
	}
}

func TestAppendJSONRefuses(t *testing.T) {
	nested := []table.Field{{Name: "s", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{{Name: "r", Type: table.Range, Range: table.Date}}}}
	day := func(v int64) row.Value { return row.Value{Int: v} }
	for _, c := range []struct {
		name   string
		fields []table.Field
		values []row.Value
		path   string
	}{
		{"values missing", col(table.Int64), nil, ""},
		{"members missing", []table.Field{{Name: "s", Type: table.Struct, Fields: col(table.Int64)}}, []row.Value{rowtest.List()}, "s"},
		{"date", col(table.Date), []row.Value{day(row.MaxDays + 1)}, "c"},
		{"time", col(table.Time), []row.Value{day(-1)}, "c"},
		{"datetime", col(table.DateTime), []row.Value{day(row.MaxMicros + 1)}, "c"},
		{"timestamp", col(table.Timestamp), []row.Value{day(row.MinMicros - 1)}, "c"},
		{"text", col(table.String), []row.Value{rowtest.Text("\xff")}, "c"},
		{"JSON", col(table.JSON), []row.Value{rowtest.Text("{")}, "c"},
		{"two JSON values", col(table.JSON), []row.Value{rowtest.Text("1 2")}, "c"},
		{"JSON with a line end", col(table.JSON), []row.Value{rowtest.Text("\"a\nb\"")}, "c"},
		{"decimal", col(table.Numeric), []row.Value{{Bytes: make([]byte, 40), Int: 99}}, "c"},
		{"long decimal", col(table.Numeric), []row.Value{{Bytes: append([]byte{1}, make([]byte, 40)...), Int: 9}}, "c"},
		{"interval", col(table.Interval), []row.Value{rowtest.List()}, "c"},
		{"range", []table.Field{{Name: "c", Type: table.Range, Range: table.Date}}, []row.Value{rowtest.List()}, "c"},
		{"null element", listOf(table.Int64), elements(day(1), rowtest.Null), "c[1]"},
		{"deep", nested, elements(rowtest.List(rowtest.Null), rowtest.List(rowtest.List(rowtest.Null, day(row.MaxDays+1)))), "s[1].r.end"},
	} {
		_, err := NewWriter(WriteOptions{}).AppendJSON(nil, &row.Row{Schema: &table.Schema{Fields: c.fields}, Values: c.values})
		var e *row.Error
		if !errors.As(err, &e) || e.Kind != row.KindDecode || e.Path != c.path {
			t.Errorf("%s: %v, want %s at %q", c.name, err, row.KindDecode, c.path)
		}
	}
}

func TestDeserializer(t *testing.T) {
	d := NewDeserializer(func(doc []byte) string { return string(doc) }, WriteOptions{})
	var got []string
	emit := func(s string) error { got = append(got, s); return nil }
	r := &row.Row{Schema: &table.Schema{Fields: col(table.Int64)}, Values: whole(5)}
	for range 2 {
		if err := d.Deserialize(r, emit); err != nil {
			t.Fatal(err)
		}
		r.Values[0].Int++
	}
	if diff := cmp.Diff([]string{`{"c":5}`, `{"c":6}`}, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if err := d.Deserialize(r, func(string) error { return row.ErrEmitterClosed }); !errors.Is(err, row.ErrEmitterClosed) {
		t.Errorf("%v, want the error of emit", err)
	}
	r.Values = nil
	if err := d.Deserialize(r, emit); kindOf(t, err) != row.KindDecode {
		t.Errorf("%v, want %s", err, row.KindDecode)
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	s, err := New(itself, Fixed(benchSchema), Options{})
	if err != nil {
		b.Fatal(err)
	}
	data, err := s.AppendRow(nil, table.Destination{}, []byte(benchLine))
	if err != nil {
		b.Fatal(err)
	}
	d, err := row.NewDecoder(benchSchema)
	if err != nil {
		b.Fatal(err)
	}
	r, err := d.Decode(data)
	if err != nil {
		b.Fatal(err)
	}
	w := NewWriter(WriteOptions{})
	b.SetBytes(int64(len(benchLine)))
	var buf []byte
	for b.Loop() {
		if buf, err = w.AppendJSON(buf[:0], r); err != nil {
			b.Fatal(err)
		}
	}
	reportRows(b)
}
