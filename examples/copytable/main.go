// Command copytable reads a table and writes its rows to another one, as JSON documents on the way, and goes on where it
// was when it is stopped. It runs against a local BigQuery in its own process; take the connection out and it runs against
// the real one.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

var (
	from = table.Destination{Project: "my-project", Dataset: "geo", Table: "cities"}
	to   = table.Destination{Project: "my-project", Dataset: "geo", Table: "cities_copy"}

	columns = &table.Schema{Fields: []table.Field{
		{Name: "name", Type: table.String, Mode: table.Required},
		{Name: "people", Type: table.Int64},
	}}
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, "file://.millrace/checkpoints"); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, checkpoints string) (err error) {
	local, err := localbq.Start(ctx, localbq.Config{AutoCreateDataset: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, local.Close()) }()
	at := bigquery.Connection{GRPCEndpoint: local.GRPC(), RESTEndpoint: local.REST()}
	if err := fill(ctx, at); err != nil {
		return err
	}
	result, err := copyTable(ctx, at, checkpoints)
	if err != nil {
		return err
	}
	fmt.Printf("%s: read %d, written %d\n", result.Outcome, result.Tally.Read, result.Tally.Written)
	return nil
}

// copyTable runs the job. When ctx ends it takes a last checkpoint and stops; the next run goes on from there.
func copyTable(ctx context.Context, at bigquery.Connection, checkpoints string) (engine.Result, error) {
	documents := jsonrow.NewDeserializer(func(doc []byte) []byte { return doc }, jsonrow.WriteOptions{})
	source, err := bigquery.NewSource(bigquery.FromTable(from), documents, bigquery.SourceOptions{Connection: at})
	if err != nil {
		return engine.Result{}, err
	}
	sink, err := newSink(to, at)
	if err != nil {
		return engine.Result{}, err
	}
	handle := &engine.Handle{}
	defer context.AfterFunc(ctx, handle.Stop)()
	return engine.Run(context.WithoutCancel(ctx), engine.Job[[]byte, []byte]{
		Name: "copy-cities", Source: source, Sink: sink,
	}, engine.Options{
		Checkpoint: engine.Checkpointing{Every: 10 * time.Second, URL: checkpoints},
		Handle:     handle,
	})
}

func newSink(dst table.Destination, at bigquery.Connection) (*bigquery.Sink[[]byte], error) {
	rows, err := jsonrow.New(func(doc []byte) []byte { return doc }, jsonrow.Fixed(columns), jsonrow.Options{JSONColumns: jsonrow.Values})
	if err != nil {
		return nil, err
	}
	return bigquery.NewSink(bigquery.To[[]byte](dst), row.Serializer[[]byte](rows), bigquery.SinkOptions{Connection: at})
}

// fill writes two rows to the table that is copied, by a writer without an engine.
func fill(ctx context.Context, at bigquery.Connection) error {
	sink, err := newSink(from, at)
	if err != nil {
		return err
	}
	w, err := sink.NewWriter(ctx, stream.WriterContext{Lanes: 1, Meter: stream.NoMeter, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	for _, doc := range []string{`{"name": "Vienna", "people": 2028000}`, `{"name": "Bern", "people": 137000}`} {
		if err := w.Write(ctx, &stream.Record[[]byte]{Value: []byte(doc)}); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return errors.Join(w.Flush(ctx, true), w.Close())
}
