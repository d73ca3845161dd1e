package avrorow

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"testing"
	"time"

	"cloud.google.com/go/civil"
	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func mapOfRow(f table.Field, v row.Value) (out map[string]any, err error) {
	d := NewDeserializer(itself[map[string]any])
	err = d.Deserialize(&row.Row{Schema: &table.Schema{Fields: []table.Field{f}}, Values: []row.Value{v}}, func(m map[string]any) error { out = m; return nil })
	return out, err
}

func TestDeserializer(t *testing.T) {
	number := func(n int64) row.Value { return row.Value{Int: n} }
	for _, c := range []struct {
		name  string
		field table.Field
		value row.Value
		want  any
	}{
		{"BOOL", table.Field{Type: table.Bool}, number(1), true},
		{"INT64", table.Field{Type: table.Int64}, number(-5), int64(-5)},
		{"FLOAT64", table.Field{Type: table.Float64}, rowtest.Float(1.5), 1.5},
		{"STRING", table.Field{Type: table.String}, rowtest.Text("é"), "é"},
		{"JSON", table.Field{Type: table.JSON}, rowtest.Text("null"), "null"},
		{"GEOGRAPHY", table.Field{Type: table.Geography}, rowtest.Text("POINT(1 2)"), "POINT(1 2)"},
		{"BYTES", table.Field{Type: table.Bytes}, row.Value{}, []byte{}},
		{"DATE", table.Field{Type: table.Date}, number(-1), civil.Date{Year: 1969, Month: 12, Day: 31}},
		{"TIME", table.Field{Type: table.Time}, number(3723456789), civil.Time{Hour: 1, Minute: 2, Second: 3, Nanosecond: 456789000}},
		{"SER-158 DATETIME", table.Field{Type: table.DateTime}, number(-1), civil.DateTime{Date: civil.Date{Year: 1969, Month: 12, Day: 31}, Time: civil.Time{Hour: 23, Minute: 59, Second: 59, Nanosecond: 999999000}}},
		{"SER-157 TIMESTAMP", table.Field{Type: table.Timestamp}, number(-1), time.Date(1969, 12, 31, 23, 59, 59, 999999000, time.UTC)},
		{"NUMERIC", table.Field{Type: table.Numeric}, rowtest.Decimal(table.Numeric, "-1.25"), big.NewRat(-5, 4)},
		{"BIGNUMERIC", table.Field{Type: table.BigNumeric}, rowtest.Decimal(table.BigNumeric, "0.5"), big.NewRat(1, 2)},
		{"SER-162 RANGE", table.Field{Type: table.Range, Range: table.Date}, rowtest.List(number(-1), rowtest.Null),
			map[string]any{"start": civil.Date{Year: 1969, Month: 12, Day: 31}, "end": nil}},
		{"INTERVAL", table.Field{Type: table.Interval}, rowtest.List(number(14), number(-3), number(5)),
			map[string]any{"months": int32(14), "days": int32(-3), "microseconds": int64(5)}},
		{"STRUCT", table.Field{Type: table.Struct, Fields: []table.Field{{Name: "a", Type: table.Int64}, {Name: "b", Type: table.String}}},
			rowtest.List(number(1), rowtest.Null), map[string]any{"a": int64(1), "b": nil}},
		{"NULL", table.Field{Type: table.Struct, Fields: []table.Field{{Name: "a", Type: table.Int64}}}, rowtest.Null, nil},
		{"REPEATED", table.Field{Type: table.Int64, Mode: table.Repeated}, rowtest.List(number(1), number(2)), []any{int64(1), int64(2)}},
		{"REPEATED without elements", table.Field{Type: table.Int64, Mode: table.Repeated}, row.Value{}, []any{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.field.Name = "f"
			got, err := mapOfRow(c.field, c.value)
			rats := cmp.Comparer(func(a, b *big.Rat) bool { return a.Cmp(b) == 0 })
			if d := cmp.Diff(map[string]any{"f": c.want}, got, rats); err != nil || d != "" {
				t.Errorf("%v %s", err, d)
			}
		})
	}
}

func TestDeserializerOwnsNothing(t *testing.T) {
	b := []byte("abc")
	got, err := mapOfRow(table.Field{Name: "f", Type: table.Bytes}, row.Value{Bytes: b})
	if clear(b); err != nil || string(got["f"].([]byte)) != "abc" {
		t.Errorf("%q, %v, want a copy", got, err)
	}
}

// TestDeserializerRefuses: a row that is none of its schema names its column.
func TestDeserializerRefuses(t *testing.T) {
	inner := table.Field{Name: "s", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{{Name: "x", Type: table.Date}}}
	for path, c := range map[string]struct {
		field table.Field
		value row.Value
	}{
		"t":      {table.Field{Name: "t", Type: table.Time}, row.Value{Int: 86_400_000_000}},
		"ts":     {table.Field{Name: "ts", Type: table.Timestamp}, row.Value{Int: row.MaxMicros + 1}},
		"dt":     {table.Field{Name: "dt", Type: table.DateTime}, row.Value{Int: row.MinMicros - 1}},
		"n":      {table.Field{Name: "n", Type: table.Numeric}, row.Value{Int: 99}},
		"b":      {table.Field{Name: "b", Type: table.BigNumeric}, row.Value{Bytes: bytes.Repeat([]byte{0x7f}, 40), Int: 38}},
		"i":      {table.Field{Name: "i", Type: table.Interval}, row.Value{}},
		"iv":     {table.Field{Name: "iv", Type: table.Interval}, rowtest.List(row.Value{Int: 1 << 40}, row.Value{}, row.Value{})},
		"s[1]":   {inner, rowtest.List(rowtest.List(row.Value{}), row.Value{})},
		"s[1].x": {inner, rowtest.List(rowtest.List(row.Value{}), rowtest.List(row.Value{Int: row.MaxDays + 1}))},
	} {
		_, err := mapOfRow(c.field, c.value)
		var e *row.Error
		if !errors.As(err, &e) || e.Kind != row.KindDecode || e.Path != path {
			t.Errorf("%v, want %s at %s", err, row.KindDecode, path)
		}
	}
}

func ExampleNewDeserializer() {
	d := NewDeserializer(func(fields map[string]any) map[string]any { return fields })
	// A source calls it: bigquery.NewSource(bigquery.FromTable(dst), d, bigquery.SourceOptions{}).
	r := &row.Row{
		Schema: &table.Schema{Fields: []table.Field{{Name: "id", Type: table.Int64}, {Name: "tags", Type: table.String, Mode: table.Repeated}}},
		Values: []row.Value{{Int: 7}, {List: []row.Value{{Bytes: []byte("new")}}}},
	}
	if err := d.Deserialize(r, func(m map[string]any) error { fmt.Println(m); return nil }); err != nil {
		fmt.Println(err)
	}
	// Output: map[id:7 tags:[new]]
}
