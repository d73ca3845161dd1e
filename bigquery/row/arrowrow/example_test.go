package arrowrow_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/arrowrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
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

// A sink sends batches as they are. The first rows of a table, and short runs, become row messages.
func ExampleSerializer_Columns() {
	ctx := context.Background()
	local, err := localbq.Start(ctx, localbq.Config{AutoCreateDataset: true})
	if err != nil {
		log.Fatal(err)
	}
	defer local.Close()
	at := bigquery.Connection{GRPCEndpoint: local.GRPC(), RESTEndpoint: local.REST()}
	dst := table.Destination{Project: "my-project", Dataset: "shop", Table: "orders"}

	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "note", Type: arrow.BinaryTypes.String}}, nil)
	rows, err := arrowrow.New(schema, arrowrow.Options{})
	if err != nil {
		log.Fatal(err)
	}
	sink, err := bigquery.NewSink(bigquery.To[arrowrow.Row](dst), row.Serializer[arrowrow.Row](rows), bigquery.SinkOptions{
		DefaultStream: bigquery.DefaultStreamOptions{ArrowBatches: true},
		Connection:    at,
		Create:        bigquery.Create{Datasets: true},
	})
	if err != nil {
		log.Fatal(err)
	}
	// An engine does what follows, for every lane.
	w, err := sink.NewWriter(ctx, stream.WriterContext{Lanes: 1, Meter: stream.NoMeter, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := range 10_000 {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append("a note of some length about an order")
	}
	batch, err := arrowrow.NewBatch(b.NewRecordBatch())
	if err != nil {
		log.Fatal(err)
	}
	for i := range batch.Len() {
		rec := &stream.Record[arrowrow.Row]{Value: arrowrow.Row{Batch: batch, Index: i}}
		if err := w.Write(ctx, rec); err != nil {
			log.Fatal(err)
		}
	}
	batch.Release() // the sink holds on to it by itself
	if err := errors.Join(w.Flush(ctx, true), w.Close()); err != nil {
		log.Fatal(err)
	}
	n, err := local.NumRows("my-project.shop.orders")
	fmt.Println(n, err)
	// Output: 10000 <nil>
}
