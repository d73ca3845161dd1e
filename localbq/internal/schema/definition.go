package schema

import (
	"fmt"
	"maps"
	"slices"
)

// Definition is everything a client may say about a table. The JSON form is what the store writes to disk.
type Definition struct {
	// Schema is nil for a table made without one.
	Schema *Schema `json:"schema,omitempty"`
	// Partition and Ranges exclude each other; both nil is an unpartitioned table.
	Partition *TimePartition  `json:"timePartitioning,omitempty"`
	Ranges    *RangePartition `json:"rangePartitioning,omitempty"`
	// RequirePartitionFilter is enforced by queries and read sessions.
	RequirePartitionFilter bool     `json:"requirePartitionFilter,omitempty"`
	Clustering             []string `json:"clustering,omitempty"`

	Description  string            `json:"description,omitempty"`
	FriendlyName string            `json:"friendlyName,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	// ExpirationMs is when the table goes, in milliseconds since the epoch; 0 is never.
	ExpirationMs     int64  `json:"expirationMs,omitempty"`
	DefaultCollation string `json:"defaultCollation,omitempty"`

	PrimaryKey  []string     `json:"primaryKey,omitempty"`
	ForeignKeys []ForeignKey `json:"foreignKeys,omitempty"`
	// MaxStaleness is set by DDL only, and no table resource shows it.
	MaxStaleness *Staleness `json:"maxStaleness,omitempty"`
	// View makes the table a view; nil is a table that holds rows.
	View *View `json:"view,omitempty"`
}

// TimePartition is partitioning by a date or time.
type TimePartition struct {
	Type string `json:"type"` // DAY, HOUR, MONTH, YEAR
	// Field is "" for partitioning by ingestion time.
	Field string `json:"field,omitempty"`
	// ExpirationMs is how long a partition is kept, in milliseconds; 0 is for ever.
	ExpirationMs int64 `json:"expirationMs,omitempty"`
}

// RangePartition is partitioning by an INT64 column: [Start, End) in steps of Interval.
type RangePartition struct {
	Field    string `json:"field"`
	Start    int64  `json:"start"`
	End      int64  `json:"end"`
	Interval int64  `json:"interval"`
}

// ForeignKey is kept and answered, and never enforced, as in BigQuery.
type ForeignKey struct {
	Name       string   `json:"name,omitempty"`
	Project    string   `json:"project,omitempty"`
	Dataset    string   `json:"dataset"`
	Table      string   `json:"table"`
	Columns    []string `json:"columns"`    // of this table
	References []string `json:"references"` // of the other, in the same order
}

// PrimaryKeyName is the name that BigQuery gives primary keys (BigQuery documentation, "TABLE_CONSTRAINTS view").
const PrimaryKeyName = "pk$"

// ForeignKeyName is the name of a foreign key: its own, or one by its place.
func (d *Definition) ForeignKeyName(at int) string {
	if name := d.ForeignKeys[at].Name; name != "" {
		return name
	}
	return fmt.Sprintf("fk$%d", at+1)
}

// View is the text of a logical or materialized view.
type View struct {
	Query        string `json:"query"`
	Materialized bool   `json:"materialized,omitempty"`
	// Refresh and RefreshIntervalMs are kept for a materialized view, which is evaluated on demand all the same.
	Refresh           bool  `json:"refresh,omitempty"`
	RefreshIntervalMs int64 `json:"refreshIntervalMs,omitempty"`
}

// Clone is a deep copy, for whoever wants to change it.
func (d *Definition) Clone() *Definition {
	c := *d
	if d.Schema != nil {
		c.Schema = d.Schema.Clone()
	}
	c.Partition, c.Ranges, c.View = clonePointer(d.Partition), clonePointer(d.Ranges), clonePointer(d.View)
	c.MaxStaleness = clonePointer(d.MaxStaleness)
	c.Clustering, c.PrimaryKey = slices.Clone(d.Clustering), slices.Clone(d.PrimaryKey)
	c.Labels = maps.Clone(d.Labels)
	c.ForeignKeys = slices.Clone(d.ForeignKeys)
	for i := range c.ForeignKeys {
		c.ForeignKeys[i].Columns = slices.Clone(c.ForeignKeys[i].Columns)
		c.ForeignKeys[i].References = slices.Clone(c.ForeignKeys[i].References)
	}
	return &c
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

// Kind is the table resource's type: TABLE, VIEW or MATERIALIZED_VIEW.
func (d *Definition) Kind() string {
	switch {
	case d.View == nil:
		return "TABLE"
	case d.View.Materialized:
		return "MATERIALIZED_VIEW"
	default:
		return "VIEW"
	}
}
