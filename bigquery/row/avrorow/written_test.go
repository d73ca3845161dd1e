package avrorow

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// written is a datum with the schema it was written with.
type written struct {
	schema string
	datum  []byte
}

func (w written) parts() (string, []byte) { return w.schema, w.datum }

// resolved is the row of a value that was written with one schema and read with another, or the kind and path of the error.
func resolved(t *testing.T, writer, reader string, value map[string]any, o Options) ([]row.Value, string) {
	t.Helper()
	s, err := NewWritten(reader, written.parts, o)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.AppendRow(nil, table.Destination{}, written{writer, encode(nil, parsed(t, writer), value)})
	if err != nil {
		return nil, kinds(err)
	}
	schema, _ := s.Schema(table.Destination{})
	d, err := row.NewDecoder(schema)
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	return r.Values, ""
}

func TestResolution(t *testing.T) {
	rec := func(fields string) string { return `{"type":"record","name":"R","fields":[` + fields + `]}` }
	for _, c := range []struct {
		name, writer, reader string
		value                any
		want                 row.Value
		fault                string
	}{
		{"int to long", `"int"`, `"long"`, int32(5), integer(5), ""},
		{"long to double", `"long"`, `"double"`, int64(5), rowtest.Float(5), ""},
		{"long to float", `"long"`, `"float"`, int64(16777217), rowtest.Float(16777216), ""},
		{"float to double", `"float"`, `"double"`, float32(1.5), rowtest.Float(1.5), ""},
		{"bytes to string", `"bytes"`, `"string"`, []byte("x"), rowtest.Text("x"), ""},
		{"bytes that are no text", `"bytes"`, `"string"`, []byte("\xff"), row.Value{}, "R-TEXT f"},
		{"string to bytes", `"string"`, `"bytes"`, "x", rowtest.Text("x"), ""},
		{"long to int", `"long"`, `"int"`, int64(5), row.Value{}, "D-SCHEMA f"},
		{"string to long", `"string"`, `"long"`, "5", row.Value{}, "D-SCHEMA f"},
		{"null of a union", `["null","long"]`, `"long"`, nil, rowtest.Null, ""},
		{"union of more", `["null","long","string"]`, `["null","long"]`, int64(5), integer(5), ""},
		{"enum", `{"type":"enum","name":"a.E","symbols":["B","A"]}`, `{"type":"enum","name":"E","symbols":["A","B"]}`, "B", rowtest.Text("B"), ""},
		{"enum without", `{"type":"enum","name":"E","symbols":["B"]}`, `{"type":"enum","name":"E","symbols":["A"]}`, "B", row.Value{}, "R-TYPE f"},
		{"enum default", `{"type":"enum","name":"E","symbols":["B"]}`, `{"type":"enum","name":"E","symbols":["A"],"default":"A"}`, "B", rowtest.Text("A"), ""},
		{"enum of another name", `{"type":"enum","name":"F","symbols":["A"]}`, `{"type":"enum","name":"E","symbols":["A"]}`, "A", row.Value{}, "D-SCHEMA f"},
		{"fixed of another size", `{"type":"fixed","name":"F","size":2}`, `{"type":"fixed","name":"F","size":3}`, []byte("ab"), row.Value{}, "D-SCHEMA f"},
		{"decimal of another scale", decimalType(4, 2), decimalType(4, 1), []byte{1}, row.Value{}, "D-SCHEMA f"},
		{"milliseconds", logical("long", "timestamp-millis"), logical("long", "timestamp-micros"), int64(5), integer(5000), ""},
		{"another sort of time", logical("long", "timestamp-millis"), logical("long", "time-micros"), int64(5), row.Value{}, "D-SCHEMA f"},
		{"record of another name", `{"type":"record","name":"A","fields":[{"name":"x","type":"int"}]}`,
			`{"type":"record","name":"B","fields":[{"name":"x","type":"int"}]}`, map[string]any{"x": int32(1)}, rowtest.List(integer(1)), ""},
		{"array", `{"type":"array","items":["null","int"]}`, `{"type":"array","items":"long"}`, []any{int32(1)}, rowtest.List(integer(1)), ""},
		{"array with null", `{"type":"array","items":["null","int"]}`, `{"type":"array","items":"long"}`, []any{nil}, row.Value{}, "R-NULLELEM f[0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, fault := resolved(t, of(c.writer), of(c.reader), map[string]any{"f": c.value}, Options{})
			if fault != c.fault || fault == "" && !cmp.Equal(got[0], c.want) {
				t.Errorf("%v %s, want %v %s", got, fault, c.want, c.fault)
			}
		})
	}
	value := map[string]any{"b": int32(2), "a": "x", "old": int64(3)}
	writer := rec(`{"name":"b","type":"int"},{"name":"a","type":"string"},{"name":"old","type":"long"}`)
	t.Run("order, aliases, defaults, fields left out", func(t *testing.T) {
		reader := rec(`{"name":"a","type":"string"},{"name":"new","type":"long","aliases":["old"]},
			{"name":"zero","type":"int","default":0},{"name":"none","type":["null","string"],"default":null},
			{"name":"list","type":{"type":"array","items":"long"},"default":[1,2]},
			{"name":"st","type":{"type":"record","name":"S","fields":[{"name":"x","type":"long","default":7}]},"default":{}}`)
		got, fault := resolved(t, writer, reader, value, Options{})
		want := []row.Value{rowtest.Text("x"), integer(3), integer(0), rowtest.Null, rowtest.List(integer(1), integer(2)), rowtest.List(integer(7))}
		if fault != "" || !cmp.Equal(got, want) {
			t.Errorf("%v %s, want %v", got, fault, want)
		}
	})
	t.Run("no default", func(t *testing.T) {
		_, fault := resolved(t, writer, rec(`{"name":"other","type":"string"}`), value, Options{})
		must(t, fault, "D-SCHEMA other")
	})
	t.Run("null into REQUIRED", func(t *testing.T) {
		_, fault := resolved(t, of(`["null","long"]`), of(`"long"`), map[string]any{"f": nil}, dr)
		must(t, fault, "R-REQUIRED f")
	})
}

func TestGivenTable(t *testing.T) {
	st := func(fields ...table.Field) *table.Schema { return &table.Schema{Fields: fields} }
	writer := `{"type":"record","name":"R","fields":[{"name":"B","type":["null","string"]},{"name":"a","type":"long"},
		{"name":"s","type":["null",{"type":"record","name":"S","fields":[{"name":"y","type":"int"},{"name":"x","type":"int"}]}]},
		{"name":"d","type":` + decimalType(4, 2) + `},{"name":"m","type":{"type":"map","values":"string"}}]}`
	value := map[string]any{"B": "{}", "a": int64(1), "s": map[string]any{"y": int32(2), "x": int32(3)}, "d": []byte{0x7b}, "m": map[string]any{"k": "v"}}
	key, val := table.Field{Name: "key", Type: table.String}, table.Field{Name: "value", Type: table.String}
	columns := []table.Field{
		{Name: "a", Type: table.Int64, Mode: table.Required}, {Name: "none", Type: table.Date}, {Name: "b", Type: table.JSON},
		{Name: "s", Type: table.Struct, Fields: []table.Field{{Name: "x", Type: table.Int64}, {Name: "y", Type: table.Int64}}},
		{Name: "d", Type: table.BigNumeric}, {Name: "m", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{key, val}},
	}
	got, fault := resolved(t, writer, "", value, Options{Table: st(columns...)})
	want := []row.Value{integer(1), rowtest.Null, rowtest.Text("{}"), rowtest.List(integer(3), integer(2)), rowtest.Decimal(table.BigNumeric, "1.23"),
		rowtest.List(rowtest.List(rowtest.Text("k"), rowtest.Text("v")))}
	if fault != "" || !cmp.Equal(got, want) {
		t.Errorf("%v %s, want %v", got, fault, want)
	}
	for _, c := range []struct {
		columns []table.Field
		ignore  bool
		want    string
	}{
		{columns[:5], false, "C-SCHEMA m"},
		{columns[:5], true, ""},
		{append(columns[:6:6], table.Field{Name: "must", Type: table.Int64, Mode: table.Required}), false, "C-SCHEMA must"},
		{[]table.Field{{Name: "a", Type: table.String}}, true, "C-SCHEMA a"},
		{[]table.Field{{Name: "a", Type: table.Int64, Mode: table.Repeated}}, true, "C-SCHEMA a"},
		{[]table.Field{{Name: "s", Type: table.Struct, Fields: []table.Field{{Name: "x", Type: table.Int64}}}}, false, "C-SCHEMA B"},
		{[]table.Field{{Name: "s", Type: table.Struct, Fields: []table.Field{{Name: "x", Type: table.Bool}}}}, true, "C-SCHEMA s.x"},
		{[]table.Field{{Name: "m", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{val, key}}}, true, "C-SCHEMA m"},
	} {
		_, fault := resolved(t, writer, "", value, Options{Table: st(c.columns...), IgnoreUnknownFields: c.ignore})
		must(t, fault, c.want)
	}
	_, fault = resolved(t, of(decimalType(4, 2)), "", map[string]any{"f": []byte{0x7b}},
		Options{Table: st(table.Field{Name: "f", Type: table.Numeric, Precision: 5, Scale: 1})})
	must(t, fault, "R-SCALE f")
}
