package copyrow_test

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/copyrow"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Rows of every type come out as they went in, behind what was there before.
func TestCopies(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rowtest.Schemas(rowtest.Types(), 3).Draw(t, "schema")
		rowtest.Flexible(t, s)
		e, err := copyrow.New(s, copyrow.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d, err := row.Descriptor(s)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			want := rowtest.Rows(s).Draw(t, "row")
			data, err := e.Append([]byte("before"), &row.Row{Schema: s, Values: want})
			if err != nil {
				t.Fatal(err)
			}
			got, err := rowtest.Decode(d, s, data[len("before"):])
			if err != nil {
				t.Fatal(err)
			}
			if diff := rowtest.Diff(s, want, got); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

func schema(fields ...table.Field) *table.Schema { return &table.Schema{Fields: fields} }

func TestColumnsOfTwoTables(t *testing.T) {
	t.Parallel()
	read := schema(
		table.Field{Name: "b", Type: table.String},
		table.Field{Name: "A", Type: table.Int64, Mode: table.Required},
		table.Field{Name: "s", Type: table.Struct, Fields: []table.Field{{Name: "y", Type: table.Int64}, {Name: "x", Type: table.Int64}}},
		table.Field{Name: "n", Type: table.Numeric, Precision: 10, Scale: 2},
	)
	values := []row.Value{rowtest.Text("b"), {Int: 1}, rowtest.List(row.Value{Int: 2}, row.Value{Int: 3}), {Bytes: []byte{0x7b}, Int: 2}}
	for _, c := range []struct {
		name    string
		written *table.Schema
		o       copyrow.Options
		want    []row.Value
		err     string
	}{
		{"another order, another case, a column more", schema(
			table.Field{Name: "more", Type: table.Int64},
			table.Field{Name: "a", Type: table.Int64},
			table.Field{Name: "n", Type: table.BigNumeric},
			table.Field{Name: "S", Type: table.Struct, Fields: []table.Field{{Name: "x", Type: table.Int64}, {Name: "y", Type: table.Int64}}},
			table.Field{Name: "b", Type: table.String},
		), copyrow.Options{}, []row.Value{{Null: true}, {Int: 1}, rowtest.Decimal(table.BigNumeric, "1.23"),
			rowtest.List(row.Value{Int: 3}, row.Value{Int: 2}), rowtest.Text("b")}, ""},
		{"columns less", schema(table.Field{Name: "a", Type: table.Int64}), copyrow.Options{IgnoreUnknown: true}, []row.Value{{Int: 1}}, ""},
		{"columns less, unasked", schema(table.Field{Name: "a", Type: table.Int64}), copyrow.Options{}, nil, "C-SCHEMA: field b: the table that is written has no such column"},
		{"another type", schema(table.Field{Name: "a", Type: table.String}), copyrow.Options{IgnoreUnknown: true}, nil, "C-SCHEMA: field a: a column of type INT64 is read, and one of type STRING is written"},
		{"a list", schema(table.Field{Name: "a", Type: table.Int64, Mode: table.Repeated}), copyrow.Options{IgnoreUnknown: true}, nil, "REPEATED"},
		{"REQUIRED and not read", schema(table.Field{Name: "c", Type: table.Int64, Mode: table.Required}), copyrow.Options{IgnoreUnknown: true}, nil, "C-SCHEMA: field c: the column is REQUIRED"},
		{"a member of another type", schema(table.Field{Name: "s", Type: table.Struct, Fields: []table.Field{{Name: "x", Type: table.Bool}, {Name: "y", Type: table.Int64}}}),
			copyrow.Options{IgnoreUnknown: true}, nil, "C-SCHEMA: field s.x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := copyrow.New(c.written, c.o)
			if err != nil {
				t.Fatal(err)
			}
			data, err := e.Append(nil, &row.Row{Schema: read, Values: values})
			if c.err != "" {
				if at, ok := errors.AsType[*row.Error](err); !ok || !strings.Contains(at.Error(), c.err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			d, err := row.Descriptor(c.written)
			if err != nil {
				t.Fatal(err)
			}
			got, err := rowtest.Decode(d, c.written, data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := rowtest.Diff(c.written, c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestValuesThatDoNotFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		read, written table.Field
		value         row.Value
		want          row.Kind
	}{
		{"NULL", table.Field{Type: table.String}, table.Field{Type: table.String, Mode: table.Required}, row.Value{Null: true}, row.KindRequired},
		{"digits", table.Field{Type: table.BigNumeric}, table.Field{Type: table.Numeric}, rowtest.Decimal(table.BigNumeric, "0.00000000001"), row.KindScale},
		{"size", table.Field{Type: table.BigNumeric}, table.Field{Type: table.Numeric}, rowtest.Decimal(table.BigNumeric, "1e30"), row.KindRange},
		{"an interval that is none", table.Field{Type: table.Interval}, table.Field{Type: table.Interval}, rowtest.List(), row.KindDecode},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.read.Name, c.written.Name = "c", "c"
			e, err := copyrow.New(schema(c.written), copyrow.Options{})
			if err != nil {
				t.Fatal(err)
			}
			data, err := e.Append([]byte("x"), &row.Row{Schema: schema(c.read), Values: []row.Value{c.value}})
			if at, ok := errors.AsType[*row.Error](err); !ok || at.Kind != c.want || at.Path != "c" || string(data) != "x" {
				t.Errorf("got %q: %v", data, err)
			}
		})
	}
	if _, err := copyrow.New(&table.Schema{}, copyrow.Options{}); err == nil {
		t.Error("a table without columns")
	}
	e, err := copyrow.New(schema(table.Field{Name: "c", Type: table.Int64}), copyrow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Append(nil, &row.Row{Schema: e.Schema()}); err == nil {
		t.Error("a row without values")
	}
}

func TestAppendField(t *testing.T) {
	t.Parallel()
	r := &row.Row{Schema: schema(
		table.Field{Name: "s", Type: table.String}, table.Field{Name: "i", Type: table.Int64}, table.Field{Name: "b", Type: table.Bool},
		table.Field{Name: "d", Type: table.Date}, table.Field{Name: "f", Type: table.Float64}, table.Field{Name: "null", Type: table.String},
		table.Field{Name: "st", Type: table.Struct, Fields: []table.Field{{Name: "x", Type: table.Int64}}},
		table.Field{Name: "list", Type: table.Int64, Mode: table.Repeated},
	), Values: []row.Value{rowtest.Text("tëxt"), {Int: -7}, {Int: 1}, {Int: 20_000}, {Int: 1}, {Null: true}, rowtest.List(row.Value{Int: 3}), rowtest.List()}}
	for path, want := range map[string]string{
		"s": "tëxt", "I": "-7", "b": "true", "d": "2024-10-04", "st.X": "3",
		"f": "R-TYPE", "null": "R-REQUIRED", "none": "R-REQUIRED", "st": "R-TYPE", "st.none": "R-REQUIRED", "i.x": "R-TYPE", "list": "R-TYPE", "": "R-REQUIRED",
	} {
		got, err := copyrow.AppendField([]byte("a"), r, path)
		if at, ok := errors.AsType[*row.Error](err); ok && string(at.Kind) == want {
			continue
		}
		if err != nil || string(got) != "a"+want {
			t.Errorf("%s: got %s: %v", path, got, err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	s := schema(table.Field{Name: "id", Type: table.Int64}, table.Field{Name: "at", Type: table.Timestamp}, table.Field{Name: "name", Type: table.String},
		table.Field{Name: "score", Type: table.Float64}, table.Field{Name: "ok", Type: table.Bool})
	r := &row.Row{Schema: s, Values: []row.Value{{Int: 1234567}, {Int: 1785027723456789}, rowtest.Text("a name of some length, 1234"), rowtest.Float(1.5), {Int: 1}}}
	e, err := copyrow.New(s, copyrow.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		if buf, err = e.Append(buf[:0], r); err != nil {
			b.Fatal(err)
		}
	}
}
