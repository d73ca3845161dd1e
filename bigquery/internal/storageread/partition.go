package storageread

import (
	"context"
	"fmt"
	"net/http"

	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/bigquery/restriction"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// restricted answers the restriction of the session. Partitions are found by how the table is partitioned, which takes a call.
func (c *Config) restricted(ctx context.Context, a Attempt) (string, error) {
	if c.Partitions == nil {
		return c.RowRestriction, nil
	}
	rest, err := c.Connection.REST(ctx)
	if err != nil {
		return "", ofSource(err)
	}
	defer rest.Close()
	r := queryRun{rest: rest, pacer: c.Pacer, log: a.Log}
	t, err := r.tableAt(ctx, c.Table)
	if isHTTP(err, http.StatusNotFound) {
		return "", fmt.Errorf("the table %s does not exist: %w", c.Table, err)
	}
	if err != nil {
		return "", err
	}
	only, err := restriction.Partitions(partitioning(t), c.Partitions...)
	if err != nil {
		return "", &partitionError{err}
	}
	text, used := restriction.WriteUsed(&table.Schema{}, c.RowRestriction, only)
	if !used[0] {
		return "", &partitionError{fmt.Errorf("%d partitions and a RowRestriction of %d bytes cannot be asked for together: its quotes, comments and parentheses must"+
			" close, and both must fit into %d bytes", len(c.Partitions), len(c.RowRestriction), restriction.MaxBytes)}
	}
	return text, nil
}

// partitionError is about what was asked for, so that trying again does not help.
type partitionError struct{ err error }

func (e *partitionError) Error() string   { return "partitions: " + e.err.Error() }
func (e *partitionError) Unwrap() error   { return e.err }
func (e *partitionError) Permanent() bool { return true }

// partitioning is how a table is partitioned.
func partitioning(t *bqrest.Table) (p table.Partition) {
	units := map[string]table.PartitionType{"HOUR": table.PartitionHour, "DAY": table.PartitionDay, "MONTH": table.PartitionMonth, "YEAR": table.PartitionYear}
	switch {
	case t.TimePartitioning != nil:
		p.Type, p.Field = units[t.TimePartitioning.Type], t.TimePartitioning.Field
	case t.RangePartitioning != nil && t.RangePartitioning.Range != nil:
		p.Type, p.Field = table.PartitionRange, t.RangePartitioning.Field
		p.Start, p.End, p.Interval = t.RangePartitioning.Range.Start, t.RangePartitioning.Range.End, t.RangePartitioning.Range.Interval
	}
	return p
}
