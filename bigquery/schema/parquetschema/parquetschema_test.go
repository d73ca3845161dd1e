package parquetschema

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func open(t rapid.TB, file []byte) *parquet.File {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestNothingIsLost: schemas with every attribute come back the same, by way of a file.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		want := rowtest.Attributed(rowtest.Types(), 3).Draw(r, "schema")
		var out bytes.Buffer
		if err := WriteFile(&out, want); err != nil {
			r.Fatal(err)
		}
		got, err := Read(open(r, out.Bytes()))
		if err != nil {
			r.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			r.Fatalf("came back otherwise (-want +got):\n%s", diff)
		}
	})
}

// TestOwnColumns: without what it carries, the schema of a file is that of its columns, as far as Parquet has them.
func TestOwnColumns(t *testing.T) {
	types := []table.Type{table.Bool, table.Int64, table.Float64, table.Numeric, table.BigNumeric, table.String, table.Bytes, table.JSON,
		table.Date, table.Time, table.DateTime, table.Timestamp, table.Struct}
	rapid.Check(t, func(r *rapid.T) {
		want := rowtest.Schemas(types, 3).Draw(r, "schema")
		var out bytes.Buffer
		if err := parquet.NewGenericWriter[any](&out, Write(want)).Close(); err != nil {
			r.Fatal(err)
		}
		got, err := Read(open(r, out.Bytes()))
		if err != nil {
			r.Fatal(err)
		}
		for _, d := range want.Diff(got) {
			if d.Change != table.Retyped { // decimals get their own digits as parameters, or another type that holds them
				r.Fatal(d)
			}
		}
	})
}

type inner struct {
	Key string `parquet:"key"`
}

// file is what other programs write.
type file struct {
	I8      int8              `parquet:"i8"`
	U32     uint32            `parquet:"u32"`
	F32     float32           `parquet:"f32,optional"`
	Enum    string            `parquet:"enum,enum"`
	UUID    [16]byte          `parquet:"uuid,uuid"`
	Millis  int64             `parquet:"millis,timestamp(millisecond)"`
	Nanos   int64             `parquet:"nanos,timestamp(nanosecond:local)"`
	Price   int64             `parquet:"price,decimal(2:18)"`
	Bare    []int32           `parquet:"bare"`
	List    []string          `parquet:"list,list"`
	Map     map[string]int64  `parquet:"map"`
	Structs []inner           `parquet:"structs"`
	Attrs   map[string]*inner `parquet:"attrs"`
}

func TestFilesOfOthers(t *testing.T) {
	var out bytes.Buffer
	if err := parquet.NewGenericWriter[file](&out).Close(); err != nil {
		t.Fatal(err)
	}
	got, err := Read(open(t, out.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	key := table.Field{Name: "key", Type: table.String, Mode: table.Required}
	if diff := cmp.Diff(&table.Schema{Fields: []table.Field{
		{Name: "i8", Type: table.Int64, Mode: table.Required},
		{Name: "u32", Type: table.Int64, Mode: table.Required},
		{Name: "f32", Type: table.Float64},
		{Name: "enum", Type: table.String, Mode: table.Required},
		{Name: "uuid", Type: table.Bytes, Mode: table.Required},
		{Name: "millis", Type: table.Timestamp, Mode: table.Required},
		{Name: "nanos", Type: table.DateTime, Mode: table.Required},
		{Name: "price", Type: table.Numeric, Mode: table.Required, Precision: 18, Scale: 2},
		{Name: "bare", Type: table.Int64, Mode: table.Repeated},
		{Name: "list", Type: table.String, Mode: table.Repeated},
		{Name: "map", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{key, {Name: "value", Type: table.Int64, Mode: table.Required}}},
		{Name: "structs", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{key}},
		{Name: "attrs", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{key, {Name: "value", Type: table.Struct, Fields: []table.Field{key}}}},
	}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFilesWithoutTable(t *testing.T) {
	write := func(n parquet.Node) []byte {
		var out bytes.Buffer
		if err := parquet.NewGenericWriter[any](&out, parquet.NewSchema("x", n)).Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	deep := parquet.Node(parquet.Leaf(parquet.Int64Type))
	for range 20 {
		deep = parquet.Group{"g": deep}
	}
	for want, n := range map[string]parquet.Node{
		"C-ARRAY: field l: is a list of lists":      parquet.Group{"l": parquet.List(parquet.List(parquet.Leaf(parquet.Int64Type)))},
		"C-TYPE: field n: is a decimal(60, 39)":     parquet.Group{"n": parquet.Decimal(39, 60, parquet.ByteArrayType)},
		"C-CASE: field id":                          parquet.Group{"ID": parquet.Leaf(parquet.Int64Type), "id": parquet.Leaf(parquet.Int64Type)},
		"C-DEPTH: field g.g.g.g.g.g.g.g.g.g.g.g.g.": deep,
		"C-NAME: field a.b;c":                       parquet.Group{"a": parquet.Group{"b;c": parquet.Leaf(parquet.Int64Type)}},
	} {
		if s, err := Read(open(t, write(n))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v, want %q", s, err, want)
		}
	}
}
