package goschema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// TestNothingIsLost: schemas with every attribute come back the same, hostile texts in them included.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		want := rowtest.Attributed(rowtest.Types(), 3).Draw(r, "schema")
		source, err := Write(want, Options{})
		if err != nil {
			r.Fatalf("%v\n%s", err, source)
		}
		got, err := Read(source, "")
		if err != nil {
			r.Fatalf("%v\n%s", err, source)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			r.Fatalf("came back otherwise (-want +got):\n%s", diff)
		}
	})
}

func TestWrite(t *testing.T) {
	s := &table.Schema{Fields: []table.Field{
		{Name: "id", Type: table.Int64, Mode: table.Required, Description: "who\nand what */ `x`\x00"},
		{Name: "user name", Type: table.String}, {Name: "userName", Type: table.String}, {Name: "user_Name", Type: table.String},
		{Name: "1st", Type: table.Date}, {Name: "größe'<>", Type: table.Numeric}, {Name: "_", Type: table.Bool},
		{Name: "raw", Type: table.Bytes}, {Name: "doc", Type: table.JSON, Mode: table.Repeated}, {Name: "at", Type: table.Timestamp},
		{Name: "items", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{{Name: "price", Type: table.BigNumeric, Mode: table.Required}}},
		{Name: "where", Type: table.Geography}, {Name: "type", Type: table.Interval}, {Name: "span", Type: table.Range, Range: table.Date},
	}}
	source, err := Write(s, Options{Package: "shop", Type: "Order"})
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(source), "type Order struct {")
	for _, want := range []string{
		"// who", "// and what */ `x`", "Id ", "int64 ", "UserName ", "UserName_2 ", "UserName_3 ", "X1st ", "*civil.Date", "Größe ", "`bigquery:\"größe'<>\"`",
		"X ", "[]json.RawMessage", "[]OrderItems", "type OrderItems struct {\n\tPrice *big.Rat `bigquery:\"price\"`\n}", "bigquery.NullGeography",
		"*bigquery.IntervalValue", "*bigquery.RangeValue", "*time.Time", "[]byte",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the source has no %q:\n%s", want, source)
		}
	}
	if got, err := Read(source, "Order"); err != nil || !got.Equal(s) {
		t.Errorf("read as %v, %v", got, err)
	}
	if _, err := Write(s, Options{Package: "a b", Type: "order"}); err == nil || !strings.Contains(err.Error(), `"a b"`) || !strings.Contains(err.Error(), `"order"`) {
		t.Errorf("names that are none: %v", err)
	}
}

func TestReadRefuses(t *testing.T) {
	source, err := Write(&table.Schema{Fields: []table.Field{{Name: "id", Type: table.Int64}}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := string(source)
	for _, c := range []struct{ name, source, typ, want string }{
		{"no Go", "x", "", "not a Go source file"},
		{"no schema", "package x\n\ntype A struct{}\n", "", "no type has a comment //bigquery:schema"},
		{"another type", text, "Order", "no type Order has a comment"},
		{"changed", strings.Replace(text, "*int64", "*float64", 1), "", "type Row is not what its schema says"},
		{"no JSON", strings.Replace(text, `"INTEGER"`, `"NUMBER"`, 1), "", `unknown column type "NUMBER"`},
		{"two", text + strings.ReplaceAll(strings.TrimPrefix(text, "package main\n"), "type Row", "type Other"), "", "the types Row and Other carry a schema: name one"},
	} {
		if s, err := Read([]byte(c.source), c.typ); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v, want %q", c.name, s, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("package x\n\n//bigquery:schema [{\"name\":\"a\",\"type\":\"BOOL\"}]\ntype Row struct {\n\tA *bool `bigquery:\"a\"`\n}\n")
	f.Fuzz(func(t *testing.T, source string) {
		if s, err := Read([]byte(source), ""); err == nil {
			if err := s.Validate(); err != nil {
				t.Errorf("%q is read as a schema with %v", source, err)
			}
		}
	})
}
