package arrowrow_test

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/arrowrow"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func ExampleNew() {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "tags", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
	}, nil)
	record, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema,
		strings.NewReader(`[{"id": 7, "tags": ["red"]}, {"id": 8}]`))
	if err != nil {
		fmt.Println(err)
		return
	}
	rows, err := arrowrow.New(schema, arrowrow.Options{DeriveRequired: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	dst := table.Destination{Project: "my-project", Dataset: "shop", Table: "orders"}
	columns, _ := rows.Schema(dst)
	for _, f := range columns.Fields {
		fmt.Println(f.Name, f.Type, f.Mode)
	}
	batch, err := arrowrow.NewBatch(record)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer batch.Release()
	decoder, _ := row.NewDecoder(columns)
	for i := range batch.Len() {
		data, err := rows.AppendRow(nil, dst, arrowrow.Row{Batch: batch, Index: i})
		if err != nil {
			fmt.Println(err)
			return
		}
		r, _ := decoder.Decode(data)
		fmt.Println(r.Values[0].Int, len(r.Values[1].List))
	}
	// Output:
	// id INT64 REQUIRED
	// tags STRING REPEATED
	// 7 1
	// 8 0
}
