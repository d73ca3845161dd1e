package restriction

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/millrace-dev/millrace/bigquery/table"
)

const (
	// NullPartition holds the rows whose partitioning column is NULL.
	NullPartition = "__NULL__"
	// Unpartitioned holds rows that have not been sorted into partitions yet. No condition finds them.
	Unpartitioned = "__UNPARTITIONED__"
)

// Partitions holds for the rows of some partitions of a table, which are called as INFORMATION_SCHEMA.PARTITIONS calls them:
// yyyy, yyyyMM, yyyyMMdd or yyyyMMddHH in UTC, the first number of a range, or NullPartition.
func Partitions(p table.Partition, ids ...string) (Condition, error) {
	if p.Type == table.PartitionNone {
		return Condition{}, errors.New("the table is not partitioned")
	}
	column := p.Field
	if column == "" {
		column = "_PARTITIONTIME" // of partitions by the time of arrival
	}
	var parts []Condition
	var faults []error
	for _, id := range ids {
		bounds, err := boundsOf(p, id)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		parts = append(parts, Condition{kind: partition, rendered: bounds.text(QuoteName(column))})
	}
	switch {
	case faults != nil:
		return Condition{}, errors.Join(faults...)
	case len(parts) == 1:
		return parts[0], nil
	}
	return Any(parts...), nil
}

// bounds are the first value of a partition and the first behind it, as text; "" is none.
type bounds struct {
	null    bool
	from    string
	through string // exclusive
}

func (b bounds) text(column string) string {
	switch {
	case b.null:
		return "(" + column + " IS NULL)"
	case b.through == "":
		return "(" + column + " >= " + b.from + ")"
	}
	return "(" + column + " >= " + b.from + " AND " + column + " < " + b.through + ")"
}

// unit is how the partitions of a unit of time are called, and how their bounds are written.
type unit struct {
	id, bound string
	next      func(time.Time) time.Time
}

var units = map[table.PartitionType]unit{
	table.PartitionHour:  {"2006010215", "2006-01-02 15:00:00", func(t time.Time) time.Time { return t.Add(time.Hour) }},
	table.PartitionDay:   {"20060102", "2006-01-02", func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }},
	table.PartitionMonth: {"200601", "2006-01-02", func(t time.Time) time.Time { return t.AddDate(0, 1, 0) }},
	table.PartitionYear:  {"2006", "2006-01-02", func(t time.Time) time.Time { return t.AddDate(1, 0, 0) }},
}

func boundsOf(p table.Partition, id string) (bounds, error) {
	if id == NullPartition {
		return bounds{null: true}, nil
	}
	if id == Unpartitioned {
		return bounds{}, fmt.Errorf("the partition %s holds rows that no condition finds until BigQuery has sorted them: leave it out", id)
	}
	if p.Type == table.PartitionRange {
		return rangeBounds(p, id)
	}
	u := units[p.Type]
	from, err := time.Parse(u.id, id)
	if err != nil || from.Format(u.id) != id || from.Year() < 1 {
		return bounds{}, fmt.Errorf("%q is no partition of the table: expected such as %s", id, time.Date(2026, 8, 12, 10, 0, 0, 0, time.UTC).Format(u.id))
	}
	b := bounds{from: "'" + from.Format(u.bound) + "'"}
	if next := u.next(from); next.Year() <= 9999 { // behind it, no value of a column is
		b.through = "'" + next.Format(u.bound) + "'"
	}
	return b, nil
}

// rangeBounds: a partition is called by its first number, and holds those up to an interval behind it.
func rangeBounds(p table.Partition, id string) (bounds, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != id {
		return bounds{}, fmt.Errorf("%q is no partition of the table: expected the first number of one, such as %d", id, p.Start)
	}
	if p.Interval <= 0 {
		return bounds{}, errors.New("the table's partitions have no interval")
	}
	b := bounds{from: id}
	if n <= math.MaxInt64-p.Interval {
		b.through = strconv.FormatInt(n+p.Interval, 10)
	}
	return b, nil
}
