package query

import "github.com/millrace-dev/millrace/localbq/internal/schema"

// RequiredFilter is the column that reads of a table have to filter by; "" where the table asks for none.
func RequiredFilter(d *schema.Definition) string {
	switch {
	case !d.RequirePartitionFilter:
		return ""
	case d.Ranges != nil:
		return d.Ranges.Field
	case d.Partition != nil && d.Partition.Field != "":
		return d.Partition.Field
	}
	return "_PARTITIONTIME"
}
