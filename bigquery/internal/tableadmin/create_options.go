package tableadmin

import (
	"errors"
	"fmt"

	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/bigquery/table"
)

var timePartitions = map[table.PartitionType]string{
	table.PartitionHour:  "HOUR",
	table.PartitionDay:   "DAY",
	table.PartitionMonth: "MONTH",
	table.PartitionYear:  "YEAR",
}

// setCreateOptions puts what a table is created with beside its schema into the REST form.
func setCreateOptions(t *bqrest.Table, o table.CreateOptions) {
	t.Description, t.Labels = o.Description, o.Labels
	if len(o.Cluster) > 0 {
		t.Clustering = &bqrest.Clustering{Fields: o.Cluster}
	}
	p := o.Partition
	t.RequirePartitionFilter = p.RequireFilter
	switch p.Type {
	case table.PartitionNone:
	case table.PartitionRange:
		t.RangePartitioning = &bqrest.RangePartitioning{Field: p.Field, Range: &bqrest.RangePartitioningRange{
			Start: p.Start, End: p.End, Interval: p.Interval,
			// A start of 0 is a start, but the generated client leaves zeros out.
			ForceSendFields: []string{"Start", "End", "Interval"},
		}}
	default:
		t.TimePartitioning = &bqrest.TimePartitioning{Type: timePartitions[p.Type], Field: p.Field, ExpirationMs: p.ExpirationMs}
	}
}

// Layout is how a table's rows are laid out, in the form that load jobs take it: as of table o, but for filters that it requires.
func Layout(o table.CreateOptions) (time *bqrest.TimePartitioning, ranges *bqrest.RangePartitioning, cluster *bqrest.Clustering) {
	var t bqrest.Table
	setCreateOptions(&t, o)
	return t.TimePartitioning, t.RangePartitioning, t.Clustering
}

// createOptions reads them back.
func createOptions(t *bqrest.Table) (table.CreateOptions, error) {
	o := table.CreateOptions{Description: t.Description, Labels: t.Labels}
	if t.Clustering != nil {
		o.Cluster = t.Clustering.Fields
	}
	o.Partition.RequireFilter = t.RequirePartitionFilter
	switch {
	case t.TimePartitioning != nil:
		p := t.TimePartitioning
		kind, known := keyOf(timePartitions, p.Type)
		if !known {
			return o, fmt.Errorf("unknown partitioning %q: a newer millrace may know it", p.Type)
		}
		o.Partition.Type, o.Partition.Field, o.Partition.ExpirationMs = kind, p.Field, p.ExpirationMs
		o.Partition.RequireFilter = o.Partition.RequireFilter || p.RequirePartitionFilter
	case t.RangePartitioning != nil:
		p := t.RangePartitioning
		o.Partition.Type, o.Partition.Field = table.PartitionRange, p.Field
		if r := p.Range; r != nil {
			o.Partition.Start, o.Partition.End, o.Partition.Interval = r.Start, r.End, r.Interval
		}
	}
	return o, nil
}

// ErrTableMissing says that a table does not exist and may not be created.
var ErrTableMissing = errors.New("table does not exist")

// Create says what writers do about tables that do not exist.
type Create struct {
	Never    bool
	Options  func(table.Destination) (table.CreateOptions, error)
	Datasets bool // create missing datasets too
}
