//go:build cgo

package duckdb

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/compile"
	"github.com/millrace-dev/millrace/localbq/duckdb/internal/native"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// restriction implements query.Restriction.
type restriction struct {
	*engine
	sql     string // a condition over t0.c0, t0.c1, …
	columns *schema.Schema
	used    []int
}

// Uses implements query.Restriction.
func (r *restriction) Uses(column string) bool {
	return slices.ContainsFunc(r.used, func(i int) bool { return strings.EqualFold(r.columns.Fields[i].Name, column) })
}

// Rows implements query.Restriction. The batch is scanned with one more column, the number of the row.
func (r *restriction) Rows(ctx context.Context, b arrow.RecordBatch) ([]int32, error) {
	var types []native.Type
	for _, f := range r.columns.Fields {
		types = append(types, nativeType(compile.TypeOf(f)))
	}
	numbers := array.NewInt64Builder(memory.DefaultAllocator)
	numbers.Reserve(int(b.NumRows()))
	for i := range b.NumRows() {
		numbers.UnsafeAppend(i)
	}
	fields := append(slices.Clone(b.Schema().Fields()), arrow.Field{Name: "number", Type: arrow.PrimitiveTypes.Int64})
	numbered := array.NewRecordBatch(arrow.NewSchema(fields, nil), append(slices.Clone(b.Columns()), numbers.NewArray()), b.NumRows())
	id := r.scans.Add(&native.Table{
		Columns: append(types, native.Int64), Rows: b.NumRows(),
		Batches: func([]int) ([]arrow.RecordBatch, error) { return []arrow.RecordBatch{numbered}, nil },
	})
	defer r.scans.Remove(id)
	out := []int32{}
	sql := fmt.Sprintf("SELECT t0.c%d AS c0 FROM bq_scan(%d) AS t0 WHERE %s", len(types), id, r.sql)
	_, err := r.db.Query(ctx, sql, func(columns []native.Vector, n int) error {
		for _, i := range native.Values[int64](&columns[0], n) {
			out = append(out, int32(i))
		}
		return nil
	})
	slices.Sort(out)
	return out, fault(err)
}

func emptyBatch(s *schema.Schema) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, s.Arrow())
	defer b.Release()
	return b.NewRecordBatch()
}
