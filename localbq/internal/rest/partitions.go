package rest

import (
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/partition"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// Partition decorators: the id of a table with the id of a partition behind a $ means that partition, where rows are written
// or read whole.

// target is a table, or one partition of it.
type target struct {
	ref       store.TableRef
	partition string // the id; "" is the whole table
}

// splitTable takes a decorated id apart.
func splitTable(id string) (table, partition string, err error) {
	table, partition, decorated := strings.Cut(id, "$")
	if decorated && (table == "" || partition == "") {
		return "", "", refusal.New(refusal.Invalid, "Invalid table ID %q: expected the id of a partition behind the $", id)
	}
	return table, partition, nil
}

// undecorated is the id of a table without the decorators that may be behind it.
func undecorated(id string) string {
	if at := strings.IndexAny(id, "$@"); at >= 0 {
		return id[:at]
	}
	return id
}

// targetOf is a table of a configuration that has been checked.
func targetOf(t *bqapi.TableReference, project string) target {
	_, id, _ := strings.Cut(t.TableId, "$")
	return target{tableRef(t, project), id}
}

// target is the table of a request's path, which from now on is the bare table.
func (c *call) target() (target, error) {
	id, partition, err := splitTable(c.r.PathValue("table"))
	if err == nil {
		c.r.SetPathValue("table", id)
	}
	return target{c.table(), partition}, err
}

func (p target) String() string {
	if p.partition == "" {
		return p.ref.String()
	}
	return p.ref.String() + "$" + p.partition
}

// key is the partition of a table of that definition.
func (p target) key(d *schema.Definition) (partition.Layout, partition.Key, error) {
	layout, ok := partition.Of(d)
	if !ok {
		return layout, partition.Key{}, refusal.New(refusal.Invalid, "Cannot read partition information from a table that is not partitioned: %s", p)
	}
	key, err := layout.Parse(p.partition)
	return layout, key, err
}

// place lets a write concern the partition alone: its rows have to belong there, only that is truncated, and only that has to
// be empty. t is nil where the write makes the table.
func (p target) place(t *store.Table, rows *store.Rows) error {
	d := rows.Definition
	if d == nil {
		d = rows.Info.Definition
	}
	if p.partition == "" {
		if layout, ok := partition.Of(d); ok {
			return layout.CheckTouched(d.Schema, rows.Batches)
		}
		return nil
	}
	layout, key, err := p.key(d)
	if err == nil {
		err = layout.Writable(key)
	}
	if err == nil {
		err = layout.Check(key, d.Schema, rows.Batches)
	}
	if err != nil {
		return err
	}
	if layout.Ingestion() {
		rows.Ingested = slices.Repeat([]int64{key.Ingested()}, len(rows.Batches))
	}
	if t != nil && (rows.Truncate || rows.Empty) {
		truncate := rows.Truncate
		rows.Pick = func(found *store.Snapshot) ([]store.Range, error) {
			there := layout.IDs(key, t, found)
			if !truncate && len(there) > 0 {
				return nil, refusal.New(refusal.Duplicate, "Already Exists: Table %s", p)
			}
			return there, nil
		}
	}
	rows.Truncate, rows.Empty = false, false
	return nil
}

// checkStream refuses a partition that tabledata.insertAll cannot write.
func (p target) checkStream(d *schema.Definition, now time.Time) error {
	if p.partition == "" {
		return nil
	}
	layout, key, err := p.key(d)
	if err != nil {
		return err
	}
	return layout.Streamable(key, now)
}

// source is rows that are read: of a table, or of a partition of it.
type source struct {
	info     *store.Info
	batches  []arrow.RecordBatch
	ingested []int64 // as in store.Rows; nil where the table is not partitioned by ingestion time
	rows     int64
}

// source is what a snapshot of the table has of the target.
func (p target) source(t *store.Table, s *store.Snapshot) (*source, error) {
	out := &source{info: s.Info}
	layout, partitioned := partition.Of(s.Info.Definition)
	switch {
	case p.partition != "":
		layout, key, err := p.key(s.Info.Definition)
		if err != nil {
			return nil, err
		}
		if out.batches = layout.Select(key, t, s); layout.Ingestion() {
			out.ingested = slices.Repeat([]int64{key.Ingested()}, len(out.batches))
		}
	case partitioned && layout.Ingestion():
		out.batches, out.ingested = layout.Split(t, s)
	default:
		out.batches = parts(s)
	}
	for _, b := range out.batches {
		out.rows += b.NumRows()
	}
	return out, nil
}

// delete takes the rows of a partition away.
func (p target) delete(t *store.Table) error {
	rows := store.Rows{Info: t.Info(), Truncate: true}
	if err := p.place(t, &rows); err != nil {
		return err
	}
	_, err := t.Write(rows)
	return err
}
