package stored_test

import (
	"slices"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest/stored"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// TestEveryTypeInEveryFormat: values of each type are staged in each format that carries it, NULL among them, loaded, and read back
// equal.
func TestEveryTypeInEveryFormat(t *testing.T) {
	l := stored.Start(t)
	all := []staging.Format{staging.Avro, staging.Parquet, staging.JSONL, staging.CSV}
	notParquet := []staging.Format{staging.Avro, staging.JSONL, staging.CSV}
	nested := []staging.Format{staging.Avro, staging.Parquet, staging.JSONL}
	text := []row.Value{rowtest.Text(""), rowtest.Text(" a "), rowtest.Text("a,\"b\"\r\n'c'\\n\t\x00\u2028 \\N NULL null"), rowtest.Text("日本語 🦆")}
	number := func(numbers ...int64) (values []row.Value) {
		for _, n := range numbers {
			values = append(values, row.Value{Int: n})
		}
		return values
	}
	for _, c := range []struct {
		field   table.Field
		formats []staging.Format
		values  []row.Value
	}{
		{table.Field{Type: table.Bool}, all, number(0, 1)},
		{table.Field{Type: table.Int64}, all, number(0, -1, 1<<53, 1<<53+1, -1<<63, 1<<63-1)},
		{table.Field{Type: table.Float64}, all, []row.Value{rowtest.Float(0), rowtest.Float(-1.5e-300), rowtest.Float(0.1), rowtest.Float(1.7976931348623157e308)}},
		{table.Field{Type: table.Numeric}, all, []row.Value{rowtest.Decimal(table.Numeric, "-99999999999999999999999999999.999999999"), rowtest.Decimal(table.Numeric, "0.1")}},
		{table.Field{Type: table.Numeric, Precision: 10, Scale: 2}, all, []row.Value{rowtest.Decimal(table.Numeric, "-12345678.9")}},
		{table.Field{Type: table.BigNumeric}, all, []row.Value{rowtest.Decimal(table.BigNumeric, "578960446186580977117854925043439539266.34992332820282019728792003956564819967")}},
		{table.Field{Type: table.String}, all, text},
		{table.Field{Type: table.Bytes}, all, []row.Value{rowtest.Text(""), rowtest.Text("\x00\xff\n"), rowtest.Text("abcd")}},
		{table.Field{Type: table.Date}, all, number(-719162, 0, 2932896)},
		{table.Field{Type: table.Time}, all, number(0, 1, 1_000, 86_399_999_999)},
		{table.Field{Type: table.DateTime}, notParquet, number(row.MinMicros, -1, 0, 253402300799999999)},
		{table.Field{Type: table.Timestamp}, all, number(row.MinMicros, -1, 0, 1785846896123000, 253402300799999999)},
		{table.Field{Type: table.Geography}, all, []row.Value{rowtest.Text("POINT(1 2)")}},
		{table.Field{Type: table.JSON}, notParquet, []row.Value{rowtest.Text(`{"a":["x,\"y\"\n",null,1.5]}`), rowtest.Text(`"null"`), rowtest.Text("0")}},
		{table.Field{Type: table.String, Mode: table.Repeated}, nested, []row.Value{rowtest.List(), rowtest.List(text...)}},
		{table.Field{Type: table.Int64, Mode: table.Repeated}, nested, []row.Value{rowtest.List(), rowtest.List(number(300, -1)...)}},
		{table.Field{Type: table.Struct, Fields: []table.Field{{Name: "x", Type: table.Int64}, {Name: "y", Type: table.String, Mode: table.Repeated}}}, nested,
			[]row.Value{rowtest.List(rowtest.Null, rowtest.List()), rowtest.List(row.Value{Int: 1}, rowtest.List(text...))}},
		{table.Field{Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{{Name: "x", Type: table.Timestamp, Mode: table.Required}}}, nested,
			[]row.Value{rowtest.List(), rowtest.List(rowtest.List(row.Value{Int: -1}), rowtest.List(row.Value{Int: 5}))}},
	} {
		c.field.Name = "f"
		t.Run(c.field.Mode.String()+" "+c.field.Type.String(), func(t *testing.T) {
			s := &table.Schema{Fields: []table.Field{{Name: "id", Type: table.Int64, Mode: table.Required}, c.field}}
			if got := stored.Formats(s); !slices.Equal(got, c.formats) {
				t.Fatalf("formats %v, want %v", got, c.formats)
			}
			if c.field.Mode != table.Repeated {
				c.values = append(c.values, rowtest.Null)
			}
			var rows [][]row.Value
			for i, v := range c.values {
				rows = append(rows, []row.Value{{Int: int64(i)}, v})
			}
			for _, format := range c.formats {
				dst := l.NewTable()
				data, err := stored.Stage(dst, format, rowtest.OfValues(s), rows...)
				if err == nil {
					err = l.Load(t.Context(), dst, format, s, data)
				}
				if err == nil {
					err = l.Holds(t.Context(), dst, s, rows)
				}
				if err != nil {
					t.Errorf("%v: %v", format, err)
				}
			}
		})
	}
}
