// Command structs writes Go structs to BigQuery: orders read from a file, one table for each shop. It runs against a local
// BigQuery in its own process; take the connection out and it runs against the real one.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/big"
	"os"
	"time"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row/structrow"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/files"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

// Order is a row. Its columns are id, at and lines, an ARRAY of STRUCTs; shop is only what it is routed by.
type Order struct {
	ID    int64     `bigquery:"id" json:"id"`
	Shop  string    `bigquery:"-" json:"shop"`
	At    time.Time `bigquery:"at" json:"at"`
	Lines []Line    `bigquery:"lines" json:"lines"`
}

// Line is one line of an order.
type Line struct {
	SKU   string   `bigquery:"sku" json:"sku"`
	Count int64    `bigquery:"count" json:"count"`
	Price *big.Rat `bigquery:"price" json:"price"`
}

func main() {
	if err := run(context.Background(), "examples/structs/orders.ndjson"); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, file string) (err error) {
	local, err := localbq.Start(ctx, localbq.Config{AutoCreateDataset: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, local.Close()) }()

	source, err := files.NewSource([]string{file}, files.Options{})
	if err != nil {
		return err
	}
	rows, err := structrow.New[Order](structrow.Options{})
	if err != nil {
		return err
	}
	to, err := bigquery.Template("my-project.orders.{shop}", func(o Order, _ string) (string, error) { return o.Shop, nil })
	if err != nil {
		return err
	}
	sink, err := bigquery.NewSink(to, rows, bigquery.SinkOptions{
		Connection: bigquery.Connection{GRPCEndpoint: local.GRPC(), RESTEndpoint: local.REST()},
	})
	if err != nil {
		return err
	}
	result, err := engine.Run(ctx, engine.Job[files.Record, Order]{
		Name: "orders", Source: source, Func: decode, Sink: sink, Failures: stream.LogAndDrop(),
	}, engine.Options{Lanes: 1})
	if err != nil {
		return err
	}
	for _, t := range sink.Report() {
		fmt.Fprintf(os.Stdout, "%s: %d rows\n", t.Destination, t.Rows)
	}
	fmt.Fprintf(os.Stdout, "read %d, written %d, dropped %d\n", result.Tally.Read, result.Tally.Written, result.Tally.DeadLettered)
	return nil
}

// decode makes an order of a line. A line that is none, or makes no sense, is its own fault and not the job's.
func decode(_ context.Context, in *stream.Record[files.Record], emit func(*stream.Record[Order]) error) error {
	var o Order
	if err := json.Unmarshal(in.Value.Bytes, &o); err != nil {
		return &stream.RecordError{Err: err}
	}
	for i, l := range o.Lines {
		if l.Count < 1 {
			return &stream.RecordError{Err: fmt.Errorf("lines[%d].count is %d: expected 1 or more", i, l.Count)}
		}
	}
	return emit(&stream.Record[Order]{Value: o, Time: o.At})
}
