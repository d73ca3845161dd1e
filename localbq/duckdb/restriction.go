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
	*database
	sql     string // a condition over columns of t0
	columns *schema.Schema
	read    []compile.Stored
}

// Uses implements query.Restriction.
func (r *restriction) Uses(column string) bool {
	return slices.ContainsFunc(r.read, func(c compile.Stored) bool {
		return strings.EqualFold(r.columns.Fields[c.Path[0]].Name, column)
	})
}

// Rows implements query.Restriction. The batch is scanned with one more column, the number of the row.
func (r *restriction) Rows(ctx context.Context, b arrow.RecordBatch) ([]int32, error) {
	numbers := array.NewInt64Builder(memory.DefaultAllocator)
	numbers.Reserve(int(b.NumRows()))
	for i := range b.NumRows() {
		numbers.UnsafeAppend(i)
	}
	picked := pick(b, r.read)
	fields := append(slices.Clone(picked.Schema().Fields()), arrow.Field{Name: "number", Type: arrow.PrimitiveTypes.Int64})
	numbered := array.NewRecordBatch(arrow.NewSchema(fields, nil), append(slices.Clone(picked.Columns()), numbers.NewArray()), b.NumRows())
	id := r.tables.Add(&native.Table{
		Columns: append(nativeColumns(r.read), native.Column{Name: "number", Type: native.Int64}), Rows: b.NumRows(),
		Batches: func() ([]arrow.RecordBatch, error) { return []arrow.RecordBatch{numbered}, nil },
	})
	defer r.tables.Remove(id)
	out := []int32{}
	sql := fmt.Sprintf("SELECT t0.number AS c0 FROM bq_scan(%d) AS t0 WHERE %s", id, r.sql)
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
