package storagewrite

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/millrace-dev/millrace/bigquery/internal/outcome"
	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// tables is what writers do about tables, whatever streams they write to.
type tables struct {
	rows   row.Schemas
	create tableadmin.Create
	update table.UnionOptions
	remote remote
	ledger *outcome.Ledger
	log    *slog.Logger
}

func newTables(cfg *Config, r remote) *tables {
	return &tables{cfg.Rows, cfg.Create, cfg.Update, r, cfg.Ledger, cfg.Log}
}

// updates reports whether tables that exist may be changed.
func (t *tables) updates() bool { return t.update != (table.UnionOptions{}) }

// add creates a table and tells whether it was not there. The error of a context that ended is its cause.
func (t *tables) add(ctx context.Context, dst table.Destination) (created bool, err error) {
	s, err := t.schema(dst)
	if err != nil {
		return false, err
	}
	o, err := t.create.Options(dst)
	if err != nil {
		return false, configuration{fmt.Errorf("create options of %s: %w", dst, err)}
	}
	created, err = t.remote.create(ctx, dst, s, o)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err == nil {
		t.log.InfoContext(ctx, "table is there", "destination", dst.String(), "created", created)
	}
	return created, err
}

// reconcile changes a table, or creates it, so that it takes rows of the schema that the serializer has now. The error of a
// context that ended is its cause.
func (t *tables) reconcile(ctx context.Context, dst table.Destination) (tableadmin.Outcome, error) {
	s, err := t.schema(dst)
	if err != nil {
		return tableadmin.Unchanged, err
	}
	want := tableadmin.Wanted{Schema: s, Allow: t.update, Changed: t.ledger.Page(dst).Changed}
	if !t.create.Never {
		want.Create = func(ctx context.Context) error {
			_, err := t.add(ctx, dst)
			return err
		}
	}
	outcome, err := t.remote.reconcile(ctx, dst, want)
	switch {
	case ctx.Err() != nil:
		return tableadmin.Unchanged, context.Cause(ctx)
	case err != nil:
		return outcome, err
	}
	t.log.InfoContext(ctx, "table compared with the schema of rows", "destination", dst.String(), "outcome", outcome.String())
	return outcome, nil
}

func (t *tables) schema(dst table.Destination) (*table.Schema, error) {
	s, err := t.rows.Schema(dst)
	if err != nil {
		return nil, configuration{fmt.Errorf("table schema of %s: %w", dst, err)}
	}
	return s, nil
}

// configuration is an error of what the user has given, which is no answer of the service.
type configuration struct{ error }

func (c configuration) Unwrap() error { return c.error }
