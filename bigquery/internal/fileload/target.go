package fileload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/internal/restcall"
	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// target is what load jobs are told about the table that they are for.
type target struct {
	columns *table.Schema       // that the files are read for
	layout  table.CreateOptions // that temporary tables are laid out by
}

// settle makes sure that a destination is there and takes the rows, as far as may be done about it. It is done once for each commit,
// before the first job that writes.
func (c *Committer) settle(ctx context.Context, dst table.Destination, written []string) (target, error) {
	desired, err := c.columnsOf(dst, written)
	if err != nil {
		return target{}, err
	}
	d, err := c.live(ctx, dst, desired)
	if errors.Is(err, restcall.ErrAbsent) {
		if err := c.makeTable(ctx, dst, desired, err); err != nil {
			return target{}, err
		}
		d, err = c.live(ctx, dst, desired) // somebody else may have made it, otherwise
	}
	if err != nil {
		return target{}, err
	}
	if c.replacesSchema(dst) {
		return target{columns: desired, layout: d.Options}, nil
	}
	if !c.updates() {
		c.tellMissing(ctx, dst, d.Schema, desired)
	}
	return target{columns: d.Schema, layout: layoutFor(dst, d.Options)}, nil
}

// updates reports whether tables that exist may be changed.
func (c *Committer) updates() bool { return c.cfg.Update != (table.UnionOptions{}) }

// replacesSchema reports whether loads bring their schema with them. One partition that is replaced has the schema of its table.
func (c *Committer) replacesSchema(dst table.Destination) bool {
	return c.cfg.Options.Plan.Disposition == loadplan.Truncate && !decorated(dst)
}

// live reads the table, and widens it where that may be done and is not done by the load itself.
func (c *Committer) live(ctx context.Context, dst table.Destination, desired *table.Schema) (*tableadmin.Description, error) {
	if !c.updates() || c.replacesSchema(dst) {
		return c.admin.Describe(ctx, dst)
	}
	_, d, err := c.admin.Widen(ctx, dst, tableadmin.Wanted{Schema: desired, Allow: c.cfg.Update, Race: c.cfg.Options.SchemaRace,
		Changed: c.cfg.Ledger.Page(dst).Changed})
	return d, err
}

func (c *Committer) makeTable(ctx context.Context, dst table.Destination, columns *table.Schema, absent error) error {
	if c.cfg.Create.Never {
		return fmt.Errorf("%w: %w", tableadmin.ErrTableMissing, absent)
	}
	o, err := c.cfg.Create.Options(dst)
	if err != nil {
		return misconfiguration{fmt.Errorf("create options of %s: %w", dst, err)}
	}
	created, err := c.admin.Create(ctx, dst, columns, o)
	if errors.Is(err, restcall.ErrAbsent) && c.cfg.Create.Datasets {
		if err := c.admin.EnsureDataset(ctx, dst.Project, dst.Dataset, c.cfg.Options.Plan.Location); err != nil {
			return err
		}
		created, err = c.admin.Create(ctx, dst, columns, o)
	}
	if err != nil {
		return err
	}
	if created {
		c.cfg.Ledger.Page(dst).Created()
	}
	c.log.InfoContext(ctx, "table is there", "destination", dst.String(), "created", created)
	return nil
}

// tellMissing warns of columns that files have and the table lacks: BigQuery leaves them out without a word, and loads the rest
// (measured by another connector, 2026-08).
func (c *Committer) tellMissing(ctx context.Context, dst table.Destination, have, desired *table.Schema) {
	if _, err := have.Union(desired, table.UnionOptions{}); err != nil {
		c.log.LogAttrs(ctx, slog.LevelWarn, "rows have what the table has no place for: it is left out, since SchemaUpdate allows no change of the table",
			slog.String("destination", dst.String()), slog.String("cause", err.Error()))
	}
}

// layoutFor is the layout of temporary tables for a destination. One partition of a table takes rows of tables without partitions.
func layoutFor(dst table.Destination, o table.CreateOptions) table.CreateOptions {
	if decorated(dst) {
		return table.CreateOptions{}
	}
	return o
}
