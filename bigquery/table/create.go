package table

// CreateOptions is what a table is created with beside its schema. It never touches a table that exists. The zero value
// is a plain table.
type CreateOptions struct {
	Partition Partition
	// Cluster names 1 to 4 top-level columns; nil is no clustering.
	Cluster     []string
	Description string
	Labels      map[string]string
}

// Partition says how a table is partitioned. The zero value is: not at all.
type Partition struct {
	Type PartitionType
	// Field is the partitioning column: DATE, DATETIME or TIMESTAMP for time partitioning ("" partitions by the time of
	// ingestion), INT64 for PartitionRange.
	Field string
	// ExpirationMs is how long partitions are kept, in milliseconds; 0 is for ever.
	ExpirationMs int64
	// RequireFilter makes the service refuse queries that do not restrict the partitioning column.
	RequireFilter bool
	// Start, End and Interval describe PartitionRange: [Start, End) in steps of Interval.
	Start, End, Interval int64
}

// PartitionType is the unit of partitioning.
type PartitionType uint8

const (
	PartitionNone PartitionType = iota
	PartitionHour
	PartitionDay
	PartitionMonth
	PartitionYear
	PartitionRange
)
