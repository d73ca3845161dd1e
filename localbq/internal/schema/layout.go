package schema

import "slices"

func (d *Definition) checkPartitioning() error {
	if d.Partition != nil && d.Ranges != nil {
		return invalid("Only one of timePartitioning and rangePartitioning should be specified.")
	}
	if d.RequirePartitionFilter && d.Partition == nil && d.Ranges == nil {
		return invalid("require_partition_filter can only be set on partitioned tables.")
	}
	if d.Partition != nil {
		return d.Partition.check(d.Schema)
	}
	if d.Ranges != nil {
		return d.Ranges.check(d.Schema)
	}
	return nil
}

func (p *TimePartition) check(s *Schema) error {
	if !slices.Contains([]string{"DAY", "HOUR", "MONTH", "YEAR"}, p.Type) {
		return invalid("Invalid partitioning type %q: expected DAY, HOUR, MONTH or YEAR", p.Type)
	}
	if p.ExpirationMs < 0 {
		return invalid("timePartitioning.expirationMs must not be negative, got %d", p.ExpirationMs)
	}
	if p.Field == "" {
		return nil
	}
	f := s.Field(p.Field)
	switch {
	case f == nil:
		return invalid("The field specified for partitioning cannot be found in the schema.")
	case f.Mode == Repeated:
		return invalid("The field specified for partitioning must not be REPEATED: %s", p.Field)
	case f.Type == Date && p.Type != "HOUR", f.Type == DateTime, f.Type == Timestamp:
		return nil
	case f.Type == Date:
		return invalid("Partitioning by HOUR is not supported for the DATE column %s", p.Field)
	default:
		return invalid("The field specified for partitioning has an invalid type: %s is %s, expected DATE, DATETIME or TIMESTAMP", p.Field, f.Type)
	}
}

func (p *RangePartition) check(s *Schema) error {
	f := s.Field(p.Field)
	switch {
	case f == nil:
		return invalid("The field specified for partitioning cannot be found in the schema.")
	case f.Mode == Repeated:
		return invalid("The field specified for partitioning must not be REPEATED: %s", p.Field)
	case f.Type != Int64:
		return invalid("The field specified for range partitioning has an invalid type: %s is %s, expected INT64", p.Field, f.Type)
	case p.Interval <= 0:
		return invalid("rangePartitioning.range.interval must be greater than 0, got %d", p.Interval)
	case p.Start >= p.End:
		return invalid("rangePartitioning.range.start must be less than end, got [%d, %d)", p.Start, p.End)
	case (uint64(p.End)-uint64(p.Start)-1)/uint64(p.Interval) >= maxPartitions:
		return invalid("rangePartitioning.range makes too many partitions: at most %d are allowed", maxPartitions)
	}
	return nil
}

const (
	maxPartitions = 10_000
	maxClustering = 4
)

func (d *Definition) checkClustering() error {
	if len(d.Clustering) > maxClustering {
		return invalid("Too many clustering fields: %d, at most %d are allowed", len(d.Clustering), maxClustering)
	}
	for i, name := range d.Clustering {
		f := d.Schema.Field(name)
		switch {
		case f == nil:
			return invalid("The field specified for clustering cannot be found in the schema. Invalid field: %s", name)
		case f.Mode == Repeated:
			return invalid("Clustering is not supported on repeated fields. Invalid field: %s", name)
		case !f.clusterable():
			return invalid("Clustering is not supported on type %s. Invalid field: %s", f.Type, name)
		case slices.Contains(d.Clustering[:i], name):
			return invalid("Duplicate clustering field: %s", name)
		}
	}
	return nil
}

// clusterable is the list of BigQuery documentation, "Create clustered tables", "Clustering column types".
func (f *Field) clusterable() bool {
	switch f.Type {
	case Bool, Int64, Numeric, BigNumeric, String, Date, DateTime, Timestamp, Geography, Range:
		return true
	}
	return false
}
