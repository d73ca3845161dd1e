package parquetfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/parquet-go/parquet-go"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/internal/staging/parquetfile"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// stageable are the types that Parquet files carry. DATETIME has a form here, which load jobs are not asked to read.
var stageable = []table.Type{table.Bool, table.Int64, table.Float64, table.Numeric, table.BigNumeric, table.String, table.Bytes,
	table.Date, table.Time, table.DateTime, table.Timestamp, table.Geography, table.Struct}

func mustPlan(t testing.TB, s *table.Schema) *staging.Plan {
	t.Helper()
	d, err := row.Descriptor(s)
	if err != nil {
		t.Fatal(err)
	}
	p, err := staging.Compile(s, d)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// write makes a file of rows.
func write(t testing.TB, s *table.Schema, o parquetfile.Options, rows ...[]row.Value) []byte {
	t.Helper()
	var out bytes.Buffer
	f, err := parquetfile.New(&out, mustPlan(t, s), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if err := f.Write(rowtest.Encode(s.Fields, r)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if f.Size() != int64(out.Len()) || f.Buffered() != 0 {
		t.Errorf("at the end: size %d, %d buffered, want %d, 0", f.Size(), f.Buffered(), out.Len())
	}
	return out.Bytes()
}

func TestSchema(t *testing.T) {
	for _, c := range []struct {
		name  string
		field table.Field
		want  string
	}{
		{"SER-156 REPEATED STRING: a list of three levels", table.Field{Type: table.String, Mode: table.Repeated},
			"required group f (LIST) { repeated group list { required binary element (STRING); } }"},
		{"NULLABLE INT64", table.Field{Type: table.Int64}, "optional int64 f (INT(64,true));"},
		{"SER-147 NUMERIC", table.Field{Type: table.Numeric, Mode: table.Required}, "required binary f (DECIMAL(38,9));"},
		{"SER-147 BIGNUMERIC", table.Field{Type: table.BigNumeric, Mode: table.Required}, "required binary f (DECIMAL(77,38));"},
		{"SER-147 NUMERIC(10,2)", table.Field{Type: table.Numeric, Precision: 10, Scale: 2, Mode: table.Required}, "required binary f (DECIMAL(10,2));"},
		{"TIME", table.Field{Type: table.Time, Mode: table.Required}, "required int64 f (TIME(isAdjustedToUTC=true,unit=MICROS));"},
		{"DATETIME", table.Field{Type: table.DateTime, Mode: table.Required}, "required int64 f (TIMESTAMP(isAdjustedToUTC=false,unit=MICROS));"},
		{"TIMESTAMP", table.Field{Type: table.Timestamp, Mode: table.Required}, "required int64 f (TIMESTAMP(isAdjustedToUTC=true,unit=MICROS));"},
		{"DATE", table.Field{Type: table.Date, Mode: table.Required}, "required int32 f (DATE);"},
		{"BYTES", table.Field{Type: table.Bytes, Mode: table.Required}, "required binary f;"},
		{"BOOL", table.Field{Type: table.Bool, Mode: table.Required}, "required boolean f;"},
		{"FLOAT64", table.Field{Type: table.Float64, Mode: table.Required}, "required double f;"},
		{"STRUCT", table.Field{Type: table.Struct, Fields: []table.Field{{Name: "z", Type: table.Int64}, {Name: "a", Type: table.Int64}}}, "optional group f { optional int64 z (INT(64,true)); optional int64 a (INT(64,true)); }"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.field.Name = "f"
			f, err := parquet.OpenFile(open(write(t, &table.Schema{Fields: []table.Field{c.field}}, parquetfile.Options{})))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(strings.Fields(f.Schema().String()), " ")
			if want := "message Row { " + c.want + " }"; got != want {
				t.Errorf("the schema is\n%s\nwant\n%s", got, want)
			}
		})
	}
	t.Run("SER-153 INTERVAL, RANGE, 1st_field", func(t *testing.T) {
		s := &table.Schema{Fields: []table.Field{{Name: "i", Type: table.Interval}, {Name: "r", Type: table.Range, Range: table.Date}, {Name: "1st_field", Type: table.Int64}}}
		d, err := row.Descriptor(s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = staging.Compile(s, d) // one plan serves both formats
		for _, want := range []string{"C-TYPE: field i:", "C-TYPE: field r:", "C-NAME: field 1st_field:"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v has no %q", err, want)
			}
		}
	})
}

func open(b []byte) (*bytes.Reader, int64) { return bytes.NewReader(b), int64(len(b)) }

// read reads a file with a second library.
func read(t testing.TB, data []byte, p *staging.Plan) (rows [][]row.Value) {
	t.Helper()
	f, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	tbl, err := r.ReadTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tbl.Release()
	it := array.NewTableReader(tbl, -1)
	defer it.Release()
	for it.Next() {
		b := it.RecordBatch()
		for i := range int(b.NumRows()) {
			out := make([]row.Value, len(p.Root.Columns))
			for c := range p.Root.Columns {
				out[c] = cell(&p.Root.Columns[c], b.Column(c), i)
			}
			rows = append(rows, out)
		}
	}
	return rows
}

func cell(c *staging.Column, a arrow.Array, i int) row.Value {
	if !c.Repeated() {
		return single(c, a, i)
	}
	l := a.(*array.List)
	from, to := l.ValueOffsets(i)
	var out row.Value
	for j := from; j < to; j++ {
		out.List = append(out.List, single(c, l.ListValues(), int(j)))
	}
	return out
}

func single(c *staging.Column, a arrow.Array, i int) row.Value {
	if a.IsNull(i) {
		return row.Value{Null: true}
	}
	switch a := a.(type) {
	case *array.Boolean:
		if a.Value(i) {
			return row.Value{Int: 1}
		}
		return row.Value{}
	case *array.Int64:
		return row.Value{Int: a.Value(i)}
	case *array.Float64:
		return rowtest.Float(a.Value(i))
	case *array.Date32:
		return row.Value{Int: int64(a.Value(i))}
	case *array.Time64:
		return row.Value{Int: int64(a.Value(i))}
	case *array.Timestamp:
		return row.Value{Int: int64(a.Value(i))}
	case *array.String:
		return rowtest.Text(a.Value(i))
	case *array.Binary:
		return row.Value{Bytes: a.Value(i)}
	case *array.Decimal128:
		return scaled(c, a.Value(i).BigInt())
	case *array.Decimal256:
		return scaled(c, a.Value(i).BigInt())
	case *array.Struct:
		out := row.Value{List: make([]row.Value, len(c.Message.Columns))}
		for m := range c.Message.Columns {
			out.List[m] = cell(&c.Message.Columns[m], a.Field(m), i)
		}
		return out
	}
	panic(fmt.Sprintf("%s is read as %T", c.Field.Name, a))
}

// scaled is a decimal of the column's scale in the form of row.Value.
func scaled(c *staging.Column, n *big.Int) row.Value {
	v, err := c.Decimal.FromBig(n, c.Decimal.FractionDigits())
	if err != nil {
		panic(err)
	}
	return row.Value{Bytes: v.AppendBigEndian(nil), Int: int64(c.Decimal.Scale())}
}

var errFull = errors.New("no space left")

// full is a writer with room for so many bytes.
type full struct{ room int }

func (f *full) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, errFull
	}
	return len(b), nil
}
