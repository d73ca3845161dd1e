package parquetfile_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/internal/staging/parquetfile"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// BenchmarkParquet writes rows of eight columns to a file that goes nowhere. MB/s are of row bytes.
func BenchmarkParquet(b *testing.B) {
	s := &table.Schema{Fields: []table.Field{
		{Name: "id", Type: table.Int64, Mode: table.Required}, {Name: "at", Type: table.Timestamp}, {Name: "name", Type: table.String},
		{Name: "path", Type: table.String}, {Name: "took", Type: table.Float64}, {Name: "ok", Type: table.Bool},
		{Name: "price", Type: table.Numeric}, {Name: "tags", Type: table.String, Mode: table.Repeated},
	}}
	rows, size := make([][]byte, 1000), 0
	for i := range rows {
		rows[i] = rowtest.Encode(s.Fields, []row.Value{
			{Int: int64(i) * 7919}, {Int: 1785027723456789 + int64(i)*104729}, rowtest.Text(fmt.Sprintf("visitor %d", i*31)), rowtest.Text(fmt.Sprintf("/articles/%d/comments?page=%d", i%97, i%13)),
			rowtest.Float(float64(i) / 7), {Int: int64(i % 2)}, rowtest.Decimal(table.Numeric, fmt.Sprintf("%d.%02d", i, i%100)), rowtest.List(rowtest.Text("a"), rowtest.Text(fmt.Sprintf("tag-%d", i%11))),
		})
		size += len(rows[i])
	}
	f, err := parquetfile.New(io.Discard, mustPlan(b, s), parquetfile.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		for _, r := range rows {
			if err := f.Write(r); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N*len(rows))/b.Elapsed().Seconds(), "rows/s")
}
