package partition

import (
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// keys tells the partitions of a batch's rows, by their values in the column that the table is partitioned by.
func (l Layout) keys(columns *schema.Schema, b arrow.RecordBatch) func(row int) Key {
	column := b.Column(columns.Index(l.field))
	value := func(int) int64 { return 0 }
	switch c := column.(type) {
	case *array.Int64:
		value = c.Value
	case *array.Date32:
		value = func(row int) int64 { return int64(c.Value(row)) * 24 * 3_600_000_000 }
	case *array.Timestamp:
		value = func(row int) int64 { return int64(c.Value(row)) }
	case *array.String: // a TIMESTAMP of picoseconds
		value = func(row int) int64 {
			at, _ := time.Parse(time.RFC3339Nano, c.Value(row)) // it has been written by this service
			return at.UnixMicro()
		}
	}
	return func(row int) Key {
		switch {
		case column.IsNull(row):
			return Key{kind: null}
		case l.ranges != nil:
			return l.within(value(row))
		}
		return l.At(value(row))
	}
}

// Check refuses rows that belong to another partition.
func (l Layout) Check(k Key, columns *schema.Schema, batches []arrow.RecordBatch) error {
	if l.Ingestion() {
		return nil
	}
	for _, b := range batches {
		at := l.keys(columns, b)
		for row := range int(b.NumRows()) {
			if at(row) != k {
				return refusal.New(refusal.Invalid, "Some rows belong to different partitions rather than destination partition %s", l.ID(k))
			}
		}
	}
	return nil
}

// maxTouched is how many partitions one job may write (BigQuery documentation, "Quotas and limits", "Partitioned tables").
const maxTouched = 4000

// CheckTouched refuses rows of too many partitions.
func (l Layout) CheckTouched(columns *schema.Schema, batches []arrow.RecordBatch) error {
	if l.Ingestion() {
		return nil
	}
	seen := map[Key]bool{}
	for _, b := range batches {
		at := l.keys(columns, b)
		for row := range int(b.NumRows()) {
			if seen[at(row)] = true; len(seen) > maxTouched {
				return refusal.New(refusal.Invalid, "Too many partitions produced by query, allowed %d, query produces at least %d partitions", maxTouched, len(seen))
			}
		}
	}
	return nil
}

// run is rows of a part that are in the same partition, by place in it.
type run struct {
	first, count int64
	key          Key
	ingested     int64
}

// runs are the rows of a part of a snapshot.
func (l Layout) runs(t *store.Table, columns *schema.Schema, p store.Part) (out []run) {
	if !l.Ingestion() {
		at := l.keys(columns, p.Batch)
		for row := range p.Batch.NumRows() {
			out = extend(out, run{row, 1, at(int(row)), 0})
		}
		return out
	}
	place := int64(0)
	for _, ids := range p.Ranges() {
		for _, r := range t.Ingested(ids.First, ids.Count) {
			out = extend(out, run{place + r.First - ids.First, r.Count, l.At(r.At), r.At})
		}
		place += ids.Count
	}
	return out
}

// extend adds a run behind others, to the last of them if it can.
func extend(runs []run, r run) []run {
	if n := len(runs); n > 0 {
		if last := &runs[n-1]; last.key == r.key && last.ingested == r.ingested && last.first+last.count == r.first {
			last.count += r.count
			return runs
		}
	}
	return append(runs, r)
}

// Select are the rows of a partition.
func (l Layout) Select(k Key, t *store.Table, s *store.Snapshot) (out []arrow.RecordBatch) {
	for _, p := range s.Parts() {
		for _, r := range l.runs(t, s.Info.Schema, p) {
			if r.key == k {
				out = append(out, p.Batch.NewSlice(r.first, r.first+r.count))
			}
		}
	}
	return out
}

// IDs are the ids of a partition's rows, ascending.
func (l Layout) IDs(k Key, t *store.Table, s *store.Snapshot) (out []store.Range) {
	for _, p := range s.Parts() {
		for _, r := range l.runs(t, s.Info.Schema, p) {
			if r.key == k {
				out = append(out, within(p.Ranges(), r.first, r.count)...)
			}
		}
	}
	return out
}

// within are the ids of rows of a part, by place.
func within(ids []store.Range, first, count int64) (out []store.Range) {
	at := int64(0)
	for _, r := range ids {
		if from, to := max(first, at), min(first+count, at+r.Count); from < to {
			out = append(out, store.Range{First: r.First + from - at, Count: to - from})
		}
		at += r.Count
	}
	return out
}

// Split are all rows of a table that is partitioned by ingestion time, with the time of each batch as store.Rows has it.
func (l Layout) Split(t *store.Table, s *store.Snapshot) (batches []arrow.RecordBatch, ingested []int64) {
	for _, p := range s.Parts() {
		for _, r := range l.runs(t, s.Info.Schema, p) {
			batches, ingested = append(batches, p.Batch.NewSlice(r.first, r.first+r.count)), append(ingested, r.ingested)
		}
	}
	return batches, ingested
}

// Share is what of a table is in one partition.
type Share struct {
	Key
	Rows, Bytes int64 // bytes are logical
}

// Shares are the partitions that have rows, by id.
func (l Layout) Shares(t *store.Table, s *store.Snapshot) []Share {
	found := map[Key]*Share{}
	for _, p := range s.Parts() {
		for _, r := range l.runs(t, s.Info.Schema, p) {
			share := found[r.key]
			if share == nil {
				share = &Share{Key: r.key}
				found[r.key] = share
			}
			share.Rows += r.count
			rows := p.Batch.NewSlice(r.first, r.first+r.count)
			for i, f := range s.Info.Schema.Fields {
				share.Bytes += store.LogicalBytes(f, rows.Column(i))
			}
		}
	}
	out := make([]Share, 0, len(found))
	for _, share := range found {
		out = append(out, *share)
	}
	slices.SortFunc(out, func(a, b Share) int { return strings.Compare(l.ID(a.Key), l.ID(b.Key)) })
	return out
}
