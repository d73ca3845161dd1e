package staging_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// edges are values around which the encoder changes its way.
func edges(f *table.Field) (values []row.Value) {
	switch f.Type {
	case table.Int64, table.Timestamp, table.Date:
		for bit := range 63 {
			for _, d := range []int64{-1, 0, 1} {
				values = append(values, row.Value{Int: 1<<bit + d}, row.Value{Int: -(1<<bit + d)})
			}
		}
		values = append(values, row.Value{Int: math.MinInt64}, row.Value{Int: math.MaxInt64})
		switch f.Type {
		case table.Timestamp:
			values = slices.DeleteFunc(values, func(v row.Value) bool { return row.CheckMicros(v.Int) != nil })
		case table.Date:
			values = slices.DeleteFunc(values, func(v row.Value) bool { return row.CheckDays(v.Int) != nil })
		}
	case table.String:
		for n := range 140 {
			values = append(values, rowtest.Text(strings.Repeat("x", n)), rowtest.Text(strings.Repeat("x", n)+"é"))
		}
	case table.Numeric, table.BigNumeric:
		for digits := range 28 {
			one := "1" + strings.Repeat("0", digits)
			for _, text := range []string{one, "-" + one, strings.Repeat("9", digits+1), "-" + strings.Repeat("9", digits+1), "0", "0.000000128", "-0.000000128", "0.000000127", "-0.000000129"} {
				values = append(values, rowtest.Decimal(f.Type, text))
			}
		}
	case table.Bool:
		values = []row.Value{{Int: 0}, {Int: 1}}
	case table.Float64:
		values = []row.Value{rowtest.Float(0), rowtest.Float(-1.5), rowtest.Float(math.Inf(1))}
	}
	return values
}

// TestPlainValues: whatever way a value is written in, it is the same bytes, and a second library reads it. The ways are told apart by
// where another column stands; and the value is once the last of the row and once not.
func TestPlainValues(t *testing.T) {
	for _, of := range []table.Type{table.Int64, table.Timestamp, table.Date, table.String, table.Numeric, table.BigNumeric, table.Bool, table.Float64} {
		for _, mode := range []table.Mode{table.Nullable, table.Required} {
			f := table.Field{Name: "v", Type: of, Mode: mode}
			s := schemaOf(table.Field{Name: "a", Type: table.Int64}, f, table.Field{Name: "z", Type: table.String})
			p := mustPlan(t, s)
			for _, v := range edges(&f) {
				for _, last := range []row.Value{rowtest.Null, rowtest.Text("behind it")} {
					want := []row.Value{{Int: 7}, v, last}
					data := rowtest.Encode(s.Fields, want)
					got := bothWays(t, p, data, 2)
					if diff := rowtest.Diff(s, want, decode(t, p, got)); diff != "" {
						t.Fatalf("%v %v: %s", of, mode, diff)
					}
				}
			}
		}
	}
}

// TestPlainLists: of any length, and of elements that are not plain.
func TestPlainLists(t *testing.T) {
	s := schemaOf(table.Field{Name: "a", Type: table.Int64}, table.Field{Name: "l", Type: table.String, Mode: table.Repeated})
	p := mustPlan(t, s)
	for _, n := range []int{0, 1, 2, 62, 63, 64, 65, 127, 128, 8191, 8192} {
		for _, odd := range []string{"", "é", strings.Repeat("long", 20)} {
			var list []row.Value
			for i := range n {
				list = append(list, rowtest.Text(fmt.Sprint(i)))
			}
			if n > 0 {
				list[n/2] = rowtest.Text(odd)
			}
			want := []row.Value{{Int: 7}, rowtest.List(list...)}
			got := bothWays(t, p, rowtest.Encode(s.Fields, want), 2)
			if diff := rowtest.Diff(s, want, decode(t, p, got)); diff != "" {
				t.Fatalf("%d elements: %s", n, diff)
			}
		}
	}
}

// bothWays writes a row whose first field takes so many bytes, and once more with that field at the end.
func bothWays(t *testing.T, p *staging.Plan, data []byte, first int) []byte {
	t.Helper()
	e := staging.NewAvroEncoder(p)
	got, err := e.Append(nil, data)
	if err != nil {
		t.Fatalf("%x: %v", data, err)
	}
	other, err := e.Append([]byte("before"), slices.Concat(data[first:], data[:first]))
	if err != nil || !bytes.Equal(other, append([]byte("before"), got...)) {
		t.Fatalf("%x is written as %x, and in another order as %x, %v", data, got, other, err)
	}
	return got
}

// TestCutRows: no part of a row is taken for a row that has more than is there.
func TestCutRows(t *testing.T) {
	s := schemaOf(table.Field{Name: "i", Type: table.Int64}, table.Field{Name: "f", Type: table.Float64}, table.Field{Name: "s", Type: table.String},
		table.Field{Name: "n", Type: table.Numeric}, table.Field{Name: "b", Type: table.Bool}, table.Field{Name: "d", Type: table.Date})
	p := mustPlan(t, s)
	d, err := row.NewDecoder(s)
	if err != nil {
		t.Fatal(err)
	}
	data := rowtest.Encode(s.Fields, []row.Value{{Int: 1 << 40}, rowtest.Float(2), rowtest.Text("some text"), rowtest.Decimal(table.Numeric, "12345.678"), {Int: 1}, {Int: 20000}})
	for n := range data {
		want, fails := d.Decode(data[:n])
		got, err := staging.NewAvroEncoder(p).Append(nil, data[:n])
		switch {
		case (err == nil) != (fails == nil):
			t.Errorf("the first %d bytes: %v, the decoder says %v", n, err, fails)
		case err == nil:
			if diff := rowtest.Diff(s, want.Values, decode(t, p, got)); diff != "" {
				t.Errorf("the first %d bytes: %s", n, diff)
			}
		}
	}
}
