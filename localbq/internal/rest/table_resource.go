package rest

import (
	"encoding/json"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// tableFields are what tables.insert, patch and update may carry. BigQuery answers maxStaleness with success and drops it
// (measured by another connector against the service, 2026-08; only DDL sets it).
var tableFields = fieldsOf(
	`tableReference schema timePartitioning rangePartitioning clustering requirePartitionFilter description friendlyName labels
	expirationTime tableConstraints view materializedView defaultCollation`,
	`kind id selfLink etag creationTime lastModifiedTime location type numRows numBytes numLongTermBytes numTotalLogicalBytes
	numActiveLogicalBytes numLongTermLogicalBytes numPhysicalBytes numTotalPhysicalBytes numActivePhysicalBytes
	numLongTermPhysicalBytes numTimeTravelPhysicalBytes numCurrentPhysicalBytes numPartitions streamingBuffer
	materializedViewStatus restrictions maxStaleness policyMember`)

func readTable(body map[string]json.RawMessage) (*bqapi.Table, error) {
	if err := tableFields.check(body, "table"); err != nil {
		return nil, err
	}
	var t bqapi.Table
	return &t, recast(tableFields.keep(body), &t)
}

// definition reads what a client says about a table.
func definition(t *bqapi.Table) (*schema.Definition, error) {
	columns, err := schema.FromREST(t.Schema)
	if err != nil {
		return nil, err
	}
	d := &schema.Definition{
		Schema: columns, Description: t.Description, FriendlyName: t.FriendlyName, Labels: t.Labels,
		ExpirationMs: t.ExpirationTime, DefaultCollation: t.DefaultCollation, RequirePartitionFilter: t.RequirePartitionFilter,
	}
	if p := t.TimePartitioning; p != nil {
		d.Partition = &schema.TimePartition{Type: p.Type, Field: p.Field, ExpirationMs: p.ExpirationMs}
		d.RequirePartitionFilter = d.RequirePartitionFilter || p.RequirePartitionFilter
	}
	if p := t.RangePartitioning; p != nil {
		d.Ranges = &schema.RangePartition{Field: p.Field}
		if p.Range != nil {
			d.Ranges.Start, d.Ranges.End, d.Ranges.Interval = p.Range.Start, p.Range.End, p.Range.Interval
		}
	}
	if t.Clustering != nil {
		d.Clustering = t.Clustering.Fields
	}
	readConstraints(d, t.TableConstraints)
	d.View, err = readView(t)
	return d, err
}

func readConstraints(d *schema.Definition, c *bqapi.TableConstraints) {
	if c == nil {
		return
	}
	if c.PrimaryKey != nil {
		d.PrimaryKey = c.PrimaryKey.Columns
	}
	for _, f := range c.ForeignKeys {
		key := schema.ForeignKey{Name: f.Name}
		if r := f.ReferencedTable; r != nil {
			key.Project, key.Dataset, key.Table = r.ProjectId, r.DatasetId, r.TableId
		}
		for _, r := range f.ColumnReferences {
			key.Columns = append(key.Columns, r.ReferencingColumn)
			key.References = append(key.References, r.ReferencedColumn)
		}
		d.ForeignKeys = append(d.ForeignKeys, key)
	}
}

// readView reads the text of a view; nil for a table.
func readView(t *bqapi.Table) (*schema.View, error) {
	switch {
	case t.View != nil && t.MaterializedView != nil:
		return nil, refusal.New(refusal.Invalid, "Only one of view and materializedView should be specified.")
	case t.View != nil:
		if t.View.UseLegacySql {
			return nil, refusal.New(refusal.NotImplemented, "local BigQuery does not implement legacy SQL: set view.useLegacySql to false")
		}
		if len(t.View.UserDefinedFunctionResources) > 0 {
			return nil, refusal.New(refusal.NotImplemented, "local BigQuery does not implement view.userDefinedFunctionResources")
		}
		return &schema.View{Query: t.View.Query}, nil
	case t.MaterializedView != nil:
		m := t.MaterializedView
		return &schema.View{Query: m.Query, Materialized: true, Refresh: m.EnableRefresh, RefreshIntervalMs: m.RefreshIntervalMs}, nil
	}
	return nil, nil
}

// definitionResource is the part of a table resource that a client may write.
func definitionResource(d *schema.Definition) *bqapi.Table {
	r := &bqapi.Table{
		Schema: d.Schema.REST(), Description: d.Description, FriendlyName: d.FriendlyName, Labels: d.Labels,
		ExpirationTime: d.ExpirationMs, DefaultCollation: d.DefaultCollation, RequirePartitionFilter: d.RequirePartitionFilter,
		TableConstraints: constraints(d),
	}
	if p := d.Partition; p != nil {
		r.TimePartitioning = &bqapi.TimePartitioning{Type: p.Type, Field: p.Field, ExpirationMs: p.ExpirationMs}
	}
	if p := d.Ranges; p != nil {
		r.RangePartitioning = &bqapi.RangePartitioning{Field: p.Field, Range: &bqapi.RangePartitioningRange{
			Start: p.Start, End: p.End, Interval: p.Interval, ForceSendFields: []string{"Start", "End", "Interval"},
		}}
	}
	if len(d.Clustering) > 0 {
		r.Clustering = &bqapi.Clustering{Fields: d.Clustering}
	}
	switch v := d.View; {
	case v == nil:
	case v.Materialized:
		r.MaterializedView = &bqapi.MaterializedViewDefinition{
			Query: v.Query, EnableRefresh: v.Refresh, RefreshIntervalMs: v.RefreshIntervalMs, ForceSendFields: []string{"EnableRefresh"},
		}
	default:
		r.View = &bqapi.ViewDefinition{Query: v.Query, ForceSendFields: []string{"UseLegacySql"}}
	}
	return r
}

func constraints(d *schema.Definition) *bqapi.TableConstraints {
	if len(d.PrimaryKey) == 0 && len(d.ForeignKeys) == 0 {
		return nil
	}
	c := &bqapi.TableConstraints{}
	if len(d.PrimaryKey) > 0 {
		c.PrimaryKey = &bqapi.TableConstraintsPrimaryKey{Columns: d.PrimaryKey}
	}
	for _, f := range d.ForeignKeys {
		key := &bqapi.TableConstraintsForeignKeys{Name: f.Name, ReferencedTable: &bqapi.TableConstraintsForeignKeysReferencedTable{
			ProjectId: f.Project, DatasetId: f.Dataset, TableId: f.Table,
		}}
		for i := range f.Columns {
			key.ColumnReferences = append(key.ColumnReferences, &bqapi.TableConstraintsForeignKeysColumnReferences{
				ReferencingColumn: f.Columns[i], ReferencedColumn: f.References[i],
			})
		}
		c.ForeignKeys = append(c.ForeignKeys, key)
	}
	return c
}
