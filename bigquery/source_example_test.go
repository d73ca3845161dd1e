package bigquery_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

// city is what the program wants of a row.
type city struct {
	name   string
	people int64
}

// cities makes them. The row, and its bytes, are valid during the call only: what is kept is copied.
type cities struct{}

func (cities) Deserialize(r *row.Row, emit func(city) error) error {
	return emit(city{name: string(r.Values[0].Bytes), people: r.Values[1].Int})
}

// geoCities is a table of two cities in a BigQuery that lives in this process.
func geoCities(ctx context.Context) (bigquery.Input, bigquery.Connection, *localbq.Instance) {
	local, err := localbq.Start(ctx, localbq.Config{AutoCreateDataset: true})
	if err != nil {
		log.Fatal(err)
	}
	at := bigquery.Connection{GRPCEndpoint: local.GRPC(), RESTEndpoint: local.REST()}
	dst := table.Destination{Project: "p", Dataset: "geo", Table: "cities"}
	rows, err := jsonrow.New(func(doc string) []byte { return []byte(doc) }, jsonrow.Fixed(&table.Schema{Fields: []table.Field{
		{Name: "name", Type: table.String, Mode: table.Required}, {Name: "people", Type: table.Int64}}}), jsonrow.Options{})
	if err != nil {
		log.Fatal(err)
	}
	sink, err := bigquery.NewSink(bigquery.To[string](dst), rows, bigquery.SinkOptions{
		Connection: at, Create: bigquery.Create{Datasets: true}, Location: "US"})
	if err != nil {
		log.Fatal(err)
	}
	w, err := sink.NewWriter(ctx, stream.WriterContext{Lanes: 1, Meter: stream.NoMeter, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	for _, doc := range []string{`{"name": "Vienna", "people": 2028000}`, `{"name": "Bern", "people": 137000}`} {
		if err := w.Write(ctx, &stream.Record[string]{Value: doc}); err != nil {
			log.Fatal(err)
		}
	}
	if err := errors.Join(w.Flush(ctx, true), w.Close()); err != nil {
		log.Fatal(err)
	}
	return bigquery.FromTable(dst), at, local
}

// A table is read without an engine by ranging over its rows.
func ExampleSource_Rows() {
	ctx := context.Background()
	input, at, local := geoCities(ctx)
	defer local.Close()

	src, err := bigquery.NewSource(input, cities{}, bigquery.SourceOptions{Connection: at})
	if err != nil {
		log.Fatal(err)
	}
	for c, err := range src.Rows(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(c.name, c.people)
	}
	// Output:
	// Vienna 2028000
	// Bern 137000
}

// A session tells the schema before any row is read, and gives the service's Avro as it is.
func ExampleSource_Session() {
	ctx := context.Background()
	input, at, local := geoCities(ctx)
	defer local.Close()

	src, err := bigquery.NewSource(input, cities{}, bigquery.SourceOptions{SelectedFields: []string{"name"}, Connection: at})
	if err != nil {
		log.Fatal(err)
	}
	session, err := src.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range session.Schema().Fields {
		fmt.Println(f.Name, f.Type, f.Mode)
	}
	for block, err := range session.Blocks(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d rows: %q\n", block.Rows, block.Data)
	}
	// Output:
	// name STRING REQUIRED
	// 2 rows: "\fVienna\bBern"
}
