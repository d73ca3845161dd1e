package bigquery

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/gcp"
	"github.com/millrace-dev/millrace/internal/retry"
)

// Inspector looks at what there is and what may be done, and changes nothing. Calls that fail in passing are made three times,
// which takes seconds. It is safe for concurrent use.
type Inspector struct {
	connection Connection
	rest       *gcp.REST
	admin      *tableadmin.Admin
}

// inspections are how often a call is made: somebody waits for the answer.
var inspections = retry.Schedule{Initial: 500 * time.Millisecond, Max: time.Second, Attempts: 3}

// NewInspector opens what it takes to ask. Credentials are read here.
func NewInspector(ctx context.Context, c Connection) (*Inspector, error) {
	rest, err := c.REST(ctx)
	if err != nil {
		return nil, err
	}
	pacer := retry.Pacer{Rand: retry.Random, Sleep: retry.Sleep}
	return &Inspector{c, rest, tableadmin.New(rest, inspections, pacer, slog.New(slog.DiscardHandler))}, nil
}

// Close frees connections.
func (i *Inspector) Close() { i.rest.Close() }

// DatasetInfo is a dataset as it is now.
type DatasetInfo struct {
	Location string
	// Answered is the service's clock when it answered, to the second; zero where it did not say.
	Answered time.Time
}

// Dataset reads a dataset; ErrAbsent where there is none. It needs the permission bigquery.datasets.get.
func (i *Inspector) Dataset(ctx context.Context, project, dataset string) (*DatasetInfo, error) {
	d, err := i.admin.Dataset(ctx, project, dataset)
	if err != nil {
		return nil, err
	}
	return &DatasetInfo{d.Location, d.Answered}, nil
}

// TableInfo is a table as it is now.
type TableInfo struct {
	Schema   *table.Schema
	Options  table.CreateOptions
	Location string
	Kind     string // "TABLE", "VIEW", "EXTERNAL", "SNAPSHOT", "MATERIALIZED_VIEW"
}

// Table reads a table; ErrAbsent where there is none. It needs the permission bigquery.tables.get.
func (i *Inspector) Table(ctx context.Context, dst table.Destination) (*TableInfo, error) {
	d, err := i.admin.Describe(ctx, dst)
	if err != nil {
		return nil, err
	}
	return &TableInfo{d.Schema, d.Options, d.Location, d.Kind}, nil
}

// Granted says which of these permissions the caller has on a table, wherever they were granted; ErrAbsent where there is no
// table. It needs no permission.
func (i *Inspector) Granted(ctx context.Context, dst table.Destination, permissions []string) ([]string, error) {
	return i.admin.TestPermissions(ctx, dst, permissions)
}

// ReachWrites asks the Storage Write API about a table. Nil says that it answered, whatever it said of the table: it does not
// tell tables that are not there from those that the caller may not use.
func (i *Inspector) ReachWrites(ctx context.Context, dst table.Destination) error {
	return i.connection.ReachWrites(ctx, fmt.Sprintf("projects/%s/datasets/%s/tables/%s", dst.Project, dst.Dataset, dst.Table))
}

// Denied recognises the error of a caller who lacks a permission. It does not say that what was asked for exists.
func Denied(err error) bool { return tableadmin.Denied(err) }

// Identity is who calls, as far as that can be told without asking anybody.
type Identity = gcp.Identity

// WhoCalls finds the credentials of a connection. Its errors are those of the clients, and quote nothing of the credentials.
func WhoCalls(ctx context.Context, c Connection) (Identity, error) { return c.Identity(ctx) }
