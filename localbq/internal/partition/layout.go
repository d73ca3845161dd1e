// Package partition tells which partition of a table a row is in, and reads the decorators that name one, as in t$20260102
// (BigQuery documentation, "Introduction to partitioned tables").
package partition

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// Layout is how a table is partitioned.
type Layout struct {
	unit   string // of time: DAY, HOUR, MONTH or YEAR; "" is by ranges of an integer
	field  string // "" is by ingestion time
	ranges *schema.RangePartition
}

// Of is the layout of a definition, and whether it has one.
func Of(d *schema.Definition) (Layout, bool) {
	switch {
	case d.Ranges != nil:
		return Layout{field: d.Ranges.Field, ranges: d.Ranges}, true
	case d.Partition != nil:
		return Layout{unit: d.Partition.Type, field: d.Partition.Field}, true
	}
	return Layout{}, false
}

// Ingestion reports whether rows are in the partition of the time at which they were ingested.
func (l Layout) Ingestion() bool { return l.unit != "" && l.field == "" }

// Daily reports whether partitions are days.
func (l Layout) Daily() bool { return l.unit == "DAY" }

// Key is one partition of a table. Comparable.
type Key struct {
	kind  kind
	start int64 // microseconds since 1970, or the first integer
}

type kind uint8

const (
	ordinary      kind = iota
	null               // rows whose column is NULL
	unpartitioned      // rows whose integer is in no range, or that have just been streamed
)

const (
	nullID          = "__NULL__"
	unpartitionedID = "__UNPARTITIONED__"
)

// Start is when a partition of time begins.
func (k Key) Start() time.Time { return time.UnixMicro(k.start).UTC() }

// Ingested is a time of ingestion that puts rows in the partition, as store.Rows has it.
func (k Key) Ingested() int64 {
	if k.start == 0 { // which stands for now there
		return 1
	}
	return k.start
}

// formats are the ids of partitions of time.
var formats = map[string]string{"HOUR": "2006010215", "DAY": "20060102", "MONTH": "200601", "YEAR": "2006"}

// Parse reads the id of a partition.
func (l Layout) Parse(id string) (Key, error) {
	switch {
	case id == unpartitionedID:
		return Key{kind: unpartitioned}, nil
	case id == nullID && l.field != "":
		return Key{kind: null}, nil
	case l.ranges != nil:
		return l.parseRange(id)
	}
	format := formats[l.unit]
	if len(id) == len(format) {
		if at, err := time.Parse(format, id); err == nil && at.Year() > 0 {
			return Key{start: at.UnixMicro()}, nil
		}
	}
	return Key{}, refusal.New(refusal.Invalid, "Invalid partition decorator $%s: expected the start of a partition by %s, as in $%s", id, l.unit, time.Unix(1767323045, 0).UTC().Format(format))
}

func (l Layout) parseRange(id string) (Key, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	r := l.ranges
	if err != nil || n < r.Start || n >= r.End || uint64(n-r.Start)%uint64(r.Interval) != 0 || strconv.FormatInt(n, 10) != id {
		return Key{}, refusal.New(refusal.Invalid, "Invalid partition decorator $%s: expected the start of a range, which is %d plus a multiple of %d and below %d", id, r.Start, r.Interval, r.End)
	}
	return Key{start: n}, nil
}

// ID is a partition's id, which Parse reads.
func (l Layout) ID(k Key) string {
	switch {
	case k.kind == null:
		return nullID
	case k.kind == unpartitioned:
		return unpartitionedID
	case l.ranges != nil:
		return strconv.FormatInt(k.start, 10)
	}
	return k.Start().Format(formats[l.unit])
}

// Writable refuses a partition that only BigQuery puts rows in.
func (l Layout) Writable(k Key) error {
	if k.kind == unpartitioned && l.ranges == nil {
		return refusal.New(refusal.Invalid, "Partition $%s cannot be written", unpartitionedID)
	}
	return nil
}

// At is the partition of an instant, in microseconds since 1970.
func (l Layout) At(micros int64) Key {
	const hour = 3_600_000_000
	switch l.unit {
	case "HOUR":
		return Key{start: floor(micros, hour)}
	case "DAY":
		return Key{start: floor(micros, 24*hour)}
	}
	t := time.UnixMicro(micros).UTC()
	month := t.Month()
	if l.unit == "YEAR" {
		month = time.January
	}
	return Key{start: time.Date(t.Year(), month, 1, 0, 0, 0, 0, time.UTC).UnixMicro()}
}

// floor is the greatest multiple of unit that is not above n.
func floor(n, unit int64) int64 {
	rest := n % unit
	if rest < 0 {
		rest += unit
	}
	return n - rest
}

// within is the range of an integer.
func (l Layout) within(n int64) Key {
	r := l.ranges
	if n < r.Start || n >= r.End {
		return Key{kind: unpartitioned}
	}
	return Key{start: n - int64(uint64(n-r.Start)%uint64(r.Interval))}
}

// String is the layout as messages name it.
func (l Layout) String() string {
	if l.ranges != nil {
		return fmt.Sprintf("range(start:%d,end:%d,interval:%d,field:%s)", l.ranges.Start, l.ranges.End, l.ranges.Interval, l.field)
	}
	if l.field == "" {
		return fmt.Sprintf("interval(type:%s)", l.unit)
	}
	return fmt.Sprintf("interval(type:%s,field:%s)", l.unit, l.field)
}

// Same reports whether rows are in partitions of the same bounds, by the same column.
func (l Layout) Same(other Layout) bool { return l.String() == other.String() }

// Streamable refuses a partition that rows cannot be streamed into by name: from 31 days ago to 16 days ahead (BigQuery
// documentation, "Use the legacy streaming API", "Stream data into partitioned tables").
func (l Layout) Streamable(k Key, now time.Time) error {
	const past, ahead = 31, 16
	today := time.UnixMicro(floor(now.UnixMicro(), 24*3_600_000_000)).UTC()
	days := math.Round(k.Start().Sub(today).Hours() / 24)
	if !l.Daily() || k.kind != ordinary || days < -past || days > ahead {
		return refusal.New(refusal.Invalid, "Rows can be streamed into partitions of a day only, from %d days ago to %d days ahead: $%s", past, ahead, l.ID(k))
	}
	return nil
}
