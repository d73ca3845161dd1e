// Package localtests is a job and its tests against a local BigQuery: faults between any two steps, the audit log, modes of
// tables, the clock, queries. The job is small; the tests are what to look at.
package localtests

import (
	"context"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/files"
	"github.com/millrace-dev/millrace/stream"
)

var orders = table.Destination{Project: "local-project", Dataset: "shop", Table: "orders"}

var columns = &table.Schema{Fields: []table.Field{
	{Name: "id", Type: table.String, Mode: table.Required},
	{Name: "count", Type: table.Int64},
}}

// Load writes the orders of a file, one JSON object a line, to the table. Lines that cannot be written are logged and
// dropped.
func Load(ctx context.Context, file string, to bigquery.Connection, o engine.Options) (engine.Result, error) {
	source, err := files.NewSource([]string{file}, files.Options{})
	if err != nil {
		return engine.Result{}, err
	}
	rows, err := jsonrow.New(func(r files.Record) []byte { return r.Bytes }, jsonrow.Fixed(columns), jsonrow.Options{})
	if err != nil {
		return engine.Result{}, err
	}
	sink, err := bigquery.NewSink(bigquery.To[files.Record](orders), row.Serializer[files.Record](rows), bigquery.SinkOptions{
		Connection: to,
		Failures:   stream.LogAndDrop(),
	})
	if err != nil {
		return engine.Result{}, err
	}
	return engine.Run(ctx, engine.Job[files.Record, files.Record]{Name: "orders", Source: source, Sink: sink}, o)
}
