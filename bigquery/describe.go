package bigquery

import (
	"context"
	"log/slog"

	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/retry"
)

// Validate reports every fault of the options, as NewSink does.
func (o SinkOptions) Validate() error {
	_, err := o.resolve()
	return err
}

// Validate reports every fault of the options of a source of that input, as NewSource does.
func (o SourceOptions) Validate(from Input) error {
	_, err := o.resolve(from)
	return err
}

// TableSchema reads the columns of a table as they are now. Passing failures are repeated for about a minute. It needs
// the permission bigquery.tables.get.
func TableSchema(ctx context.Context, c Connection, dst table.Destination) (*table.Schema, error) {
	o, err := DefaultStreamOptions{}.resolve("DefaultStream")
	if err != nil {
		return nil, err
	}
	rest, err := c.REST(ctx)
	if err != nil {
		return nil, err
	}
	defer rest.Close()
	admin := tableadmin.New(rest, o.Recovery, retry.Pacer{Rand: retry.Random, Sleep: retry.Sleep}, slog.New(slog.DiscardHandler))
	d, err := admin.Describe(ctx, dst)
	if err != nil {
		return nil, err
	}
	return d.Schema, nil
}
