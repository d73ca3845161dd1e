//go:build cgo

package duckdb

import (
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// BenchmarkRun runs queries over a million rows of four columns.
func BenchmarkRun(b *testing.B) {
	const rows = 1_000_000
	s := &schema.Schema{Fields: []*schema.Field{
		{Name: "id", Type: schema.Int64}, {Name: "name", Type: schema.String}, {Name: "score", Type: schema.Float64}, {Name: "at", Type: schema.Timestamp},
	}}
	var batches []arrow.RecordBatch
	build := array.NewRecordBuilder(memory.DefaultAllocator, s.Arrow())
	for i := range rows {
		build.Field(0).(*array.Int64Builder).Append(int64(i))
		build.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("name number %d", i%1000))
		build.Field(2).(*array.Float64Builder).Append(float64(i) / 3)
		build.Field(3).(*array.TimestampBuilder).Append(arrow.Timestamp(i))
		if i%65_536 == 65_535 || i == rows-1 {
			batches = append(batches, build.NewRecordBatch())
		}
	}
	c := memoryCatalog{"p:d.t": {Schema: s, Rows: rows, Batches: func() ([]arrow.RecordBatch, error) { return batches, nil }}}
	e := newEngine(b)
	for _, sql := range []string{
		"SELECT COUNT(DISTINCT id) FROM d.t",
		"SELECT name, COUNT(*), SUM(score) FROM d.t GROUP BY name",
		"SELECT MAX(name) FROM d.t",
		"SELECT SUM(score * 2 + 1) FROM d.t",
		"SELECT * FROM d.t",
	} {
		b.Run(sql, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Run(context.Background(), query.Statement{SQL: sql, Project: "p"}, c); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
