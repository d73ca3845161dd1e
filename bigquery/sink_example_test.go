package bigquery_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"strings"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

// One table for each kind of event, made at its first row. An engine does what this example does with the writer.
func ExampleNewSink() {
	ctx := context.Background()
	bq, err := localbq.Start(ctx, localbq.Config{AutoCreateDataset: true})
	if err != nil {
		log.Fatal(err)
	}
	defer bq.Close()

	rows, err := jsonrow.New(func(doc []byte) []byte { return doc }, jsonrow.Fixed(&table.Schema{Fields: []table.Field{
		{Name: "event", Type: table.String},
		{Name: "repository", Type: table.String},
		{Name: "at", Type: table.Timestamp},
	}}), jsonrow.Options{})
	if err != nil {
		log.Fatal(err)
	}
	to, err := bigquery.AppendTemplate("my-project.github.{event}", jsonrow.AppendField)
	if err != nil {
		log.Fatal(err)
	}
	sink, err := bigquery.NewSink(to, row.Serializer[[]byte](rows), bigquery.SinkOptions{
		Connection: bigquery.Connection{GRPCEndpoint: bq.GRPC(), RESTEndpoint: bq.REST()},
		Create: bigquery.Create{Options: table.CreateOptions{
			Partition: table.Partition{Type: table.PartitionDay, Field: "at"},
		}},
	})
	if err != nil {
		log.Fatal(err)
	}

	writer, err := sink.NewWriter(ctx, stream.WriterContext{Job: "example", Lanes: 1, Meter: stream.NoMeter, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	defer writer.Close()
	for _, doc := range []string{
		`{"event":"push","repository":"millrace","at":"2026-01-02T03:04:05Z"}`,
		`{"event":"issues","repository":"millrace","at":"2026-01-02T03:05:00Z"}`,
		`{"event":"push","repository":"racetrack","at":"2026-01-02T03:06:00Z"}`,
	} {
		if err := writer.Write(ctx, &stream.Record[[]byte]{Value: []byte(doc)}); err != nil {
			log.Fatal(err)
		}
	}
	if err := writer.Flush(ctx, true); err != nil {
		log.Fatal(err)
	}
	for _, r := range sink.Report() {
		fmt.Printf("%s: %d rows, created %v\n", r.Destination, r.Rows, r.Created)
	}
	// Output:
	// my-project.github.issues: 1 rows, created true
	// my-project.github.push: 2 rows, created true
}

// What a pattern cannot mean is found when the program starts, with the column of the fault.
func ExampleTemplate() {
	field := func(rec map[string]string, name string) (string, error) { return rec[name], nil }
	_, err := bigquery.Template("my-project.git hub.{event}", field)
	fmt.Println(err)
	_, err = bigquery.Template("my-project.github.{event", field)
	fmt.Println(err)
	// Output:
	// table pattern "my-project.git hub.{event}", column 15: the character ' ' cannot be part of a dataset name
	// table pattern "my-project.github.{event", column 19: the brace is not closed
}

// A service learns of a new field while it writes. The table gets the column before the first row that has it.
func ExampleSchemaUpdate() {
	ctx := context.Background()
	bq, err := localbq.Start(ctx, localbq.Config{AutoCreateDataset: true})
	if err != nil {
		log.Fatal(err)
	}
	defer bq.Close()
	documents := func(names ...string) row.Serializer[string] {
		s := &table.Schema{}
		for _, name := range names {
			s.Fields = append(s.Fields, table.Field{Name: name, Type: table.String})
		}
		rows, err := jsonrow.New(func(doc string) []byte { return []byte(doc) }, jsonrow.Fixed(s), jsonrow.Options{})
		if err != nil {
			log.Fatal(err)
		}
		return rows
	}

	rows := row.NewEvolving(documents("sku"))
	orders := table.Destination{Project: "my-project", Dataset: "shop", Table: "orders"}
	sink, err := bigquery.NewSink(bigquery.To[string](orders), rows, bigquery.SinkOptions{
		SchemaUpdate: bigquery.SchemaUpdate{AllowNewFields: true},
		Connection:   bigquery.Connection{GRPCEndpoint: bq.GRPC(), RESTEndpoint: bq.REST()},
	})
	if err != nil {
		log.Fatal(err)
	}
	writer, err := sink.NewWriter(ctx, stream.WriterContext{Job: "example", Lanes: 1, Meter: stream.NoMeter, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	defer writer.Close()

	if err := writer.Write(ctx, &stream.Record[string]{Value: `{"sku":"tea"}`}); err != nil {
		log.Fatal(err)
	}
	if err := rows.Evolve(documents("sku", "note")); err != nil {
		log.Fatal(err)
	}
	if err := writer.Write(ctx, &stream.Record[string]{Value: `{"sku":"cup","note":"a gift"}`}); err != nil {
		log.Fatal(err)
	}
	if err := writer.Flush(ctx, true); err != nil {
		log.Fatal(err)
	}
	for _, r := range sink.Report() {
		fmt.Printf("%s: %d rows, %s\n", r.Destination, r.Rows, strings.Join(r.Changes, ", "))
	}
	// Output:
	// my-project.shop.orders: 2 rows, column note added
}
