package bigquery

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/bigquery/restriction"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Partition is one partition of a table: yyyy, yyyyMM, yyyyMMdd or yyyyMMddHH in UTC, or the first number of a range; or
// "__NULL__", for rows without a value, or "__UNPARTITIONED__", for rows that have just arrived.
type Partition struct {
	ID   string
	Rows int64
}

// ListPartitions lists the partitions of a table that have rows, by their names; none for a table that is not partitioned. It
// is a query, which billingProject runs and pays for (BigQuery documentation, "PARTITIONS view"). It needs the permissions
// bigquery.jobs.create in that project, and bigquery.tables.get, list and getData on the table.
func ListPartitions(ctx context.Context, c Connection, billingProject string, t table.Destination) ([]Partition, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	sql := fmt.Sprintf("SELECT partition_id, total_rows FROM %s.%s.INFORMATION_SCHEMA.PARTITIONS WHERE table_name = @table AND partition_id IS NOT NULL ORDER BY partition_id",
		restriction.QuoteName(t.Project), restriction.QuoteName(t.Dataset))
	src, err := NewSource(FromQuery(billingProject, sql), partitionRows{}, SourceOptions{Connection: c, MaxStreamCount: 1,
		QueryParameters: []QueryParameter{{Name: "table", Type: "STRING", Value: &t.Table}}})
	if err != nil {
		return nil, err
	}
	var all []Partition
	for p, err := range src.Rows(ctx) {
		if err != nil {
			return nil, fmt.Errorf("list the partitions of %s: %w", t, err)
		}
		all = append(all, p)
	}
	return all, nil
}

type partitionRows struct{}

func (partitionRows) Deserialize(r *row.Row, emit func(Partition) error) error {
	return emit(Partition{ID: string(r.Values[0].Bytes), Rows: r.Values[1].Int})
}
