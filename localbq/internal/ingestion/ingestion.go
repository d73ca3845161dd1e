// Package ingestion makes the pseudocolumns of tables that are partitioned by ingestion time: _PARTITIONTIME, and
// _PARTITIONDATE for partitions of a day (BigQuery documentation, "Query partitioned tables"). They are columns of a table
// that only their names find.
package ingestion

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/localbq/internal/partition"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// Columns are the pseudocolumns a table has; none for most.
func Columns(d *schema.Definition) []*schema.Field {
	if d.Partition == nil || d.Partition.Field != "" {
		return nil
	}
	columns := []*schema.Field{{Name: "_PARTITIONTIME", Type: schema.Timestamp}}
	if d.Partition.Type == "DAY" {
		columns = append(columns, &schema.Field{Name: "_PARTITIONDATE", Type: schema.Date})
	}
	return columns
}

// With is a table's columns with its pseudocolumns behind them.
func With(d *schema.Definition) *schema.Schema {
	out := &schema.Schema{}
	if d.Schema != nil {
		out.Fields = append(out.Fields, d.Schema.Fields...)
	}
	out.Fields = append(out.Fields, Columns(d)...)
	return out
}

// Append is a part of a snapshot of a table with the pseudocolumns behind its columns. Where the table has none the batch is
// the part's own.
func Append(t *store.Table, d *schema.Definition, p store.Part) arrow.RecordBatch {
	columns := Columns(d)
	if columns == nil {
		return p.Batch
	}
	layout, _ := partition.Of(d)
	times := array.NewTimestampBuilder(memory.DefaultAllocator, &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"})
	dates := array.NewDate32Builder(memory.DefaultAllocator)
	for _, ids := range p.Ranges() {
		next := ids.First
		for _, run := range t.Ingested(ids.First, ids.Count) {
			for ; next < run.First; next++ {
				times.AppendNull()
				dates.AppendNull()
			}
			at := layout.At(run.At).Start()
			for range run.Count {
				times.Append(arrow.Timestamp(at.UnixMicro()))
				dates.Append(arrow.Date32FromTime(at))
			}
			next += run.Count
		}
		for ; next < ids.First+ids.Count; next++ {
			times.AppendNull()
			dates.AppendNull()
		}
	}
	arrays := append([]arrow.Array{}, p.Batch.Columns()...)
	arrays = append(arrays, times.NewArray(), dates.NewArray())[:int(p.Batch.NumCols())+len(columns)]
	return array.NewRecordBatch(With(d).Arrow(), arrays, p.Batch.NumRows())
}
