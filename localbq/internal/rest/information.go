package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
	"github.com/millrace-dev/millrace/localbq/internal/text"
)

// information is a view of the INFORMATION_SCHEMA of a dataset or of a region.
func (c *catalog) information(ref query.Ref, view string) (*query.Table, error) {
	if made, ok := regionViews[view]; ok {
		location, err := c.region(ref)
		if err != nil {
			return nil, err
		}
		rows, err := made.rows(c, ref.Project, location)
		if err != nil {
			return nil, err
		}
		return informationTable(ref, made.columns, rows), nil
	}
	made, ok := informationViews[view]
	if !ok {
		return nil, refusal.New(refusal.NotImplemented, "local BigQuery does not implement %s.%s", query.InformationSchema, view)
	}
	dataset := store.DatasetRef{Project: ref.Project, Dataset: ref.Dataset}
	d, err := c.server.Store.Dataset(dataset)
	if err == nil && c.location != "" && !strings.EqualFold(d.Location, c.location) || refusal.Is(err, refusal.NotFound) && c.location != "" {
		return nil, refusal.New(refusal.NotFound, "Not found: Dataset %s was not found in location %s", dataset, c.location)
	}
	if err != nil {
		return nil, err
	}
	tables, err := c.server.Store.Tables(dataset)
	if err != nil {
		return nil, err
	}
	var rows [][]any
	for _, t := range tables {
		found := made.rows
		if view == "PARTITIONS" {
			found = func(*store.Info) [][]any { return c.partitionRows(t) }
		}
		for _, row := range found(t.Info()) {
			rows = append(rows, append([]any{ref.Project, ref.Dataset, t.Ref().Table}, row...))
		}
	}
	return informationTable(ref, made.columns, rows), nil
}

func informationTable(ref query.Ref, columns *schema.Schema, rows [][]any) *query.Table {
	b := array.NewRecordBuilder(memory.DefaultAllocator, columns.Arrow())
	for _, row := range rows {
		for i, v := range row {
			appendInformation(b.Field(i), v)
		}
	}
	batch := b.NewRecordBatch()
	return &query.Table{Ref: ref, Schema: columns, Rows: batch.NumRows(), Batches: func() ([]arrow.RecordBatch, error) {
		if batch.NumRows() == 0 {
			return nil, nil
		}
		return []arrow.RecordBatch{batch}, nil
	}}
}

// region is the location that a view of a region is about.
func (c *catalog) region(ref query.Ref) (string, error) {
	location, ok := query.Region(ref.Dataset)
	if !ok {
		return cmp.Or(c.location, "US"), nil
	}
	if c.location != "" && !strings.EqualFold(location, c.location) {
		return "", refusal.New(refusal.NotFound, "Not found: Table %s was not found in location %s", ref, c.location)
	}
	return normalLocation(location), nil
}

// tableOption is a row of TABLE_OPTIONS: a table's option that has been set, with its value as SQL.
type tableOption struct{ name, kind, value string }

func optionsOf(d *schema.Definition) (out []tableOption) {
	add := func(set bool, name, kind, value string) {
		if set {
			out = append(out, tableOption{name, kind, value})
		}
	}
	add(d.Description != "", "description", "STRING", sqlString(d.Description))
	add(d.ExpirationMs != 0, "expiration_timestamp", "TIMESTAMP",
		`TIMESTAMP "`+time.UnixMilli(d.ExpirationMs).UTC().Format("2006-01-02T15:04:05.000Z")+`"`)
	add(d.FriendlyName != "", "friendly_name", "STRING", sqlString(d.FriendlyName))
	add(len(d.Labels) > 0, "labels", "ARRAY<STRUCT<STRING, STRING>>", sqlLabels(d.Labels))
	if s := d.MaxStaleness; s != nil { // the value is no literal (measured by another connector, 2026-08)
		add(true, "max_staleness", "INTERVAL", string(text.AppendInterval(nil, int64(s.Months), int64(s.Days), s.Micros)))
	}
	if p := d.Partition; p != nil {
		add(p.ExpirationMs != 0, "partition_expiration_days", "FLOAT64", days(p.ExpirationMs))
	}
	add(d.RequirePartitionFilter, "require_partition_filter", "BOOL", "true")
	return out
}

// days is a time in milliseconds as a FLOAT64 of days.
func days(ms int64) string {
	out := strconv.FormatFloat(float64(ms)/float64(24*time.Hour.Milliseconds()), 'f', -1, 64)
	if !strings.Contains(out, ".") {
		out += ".0"
	}
	return out
}

// sqlString is a string literal.
func sqlString(s string) string {
	quoted, err := json.Marshal(s) // its escapes are those of SQL too
	if err != nil {
		panic(err) // strings marshal
	}
	return string(quoted)
}

func sqlLabels(labels map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, fmt.Sprintf("STRUCT(%s, %s)", sqlString(key), sqlString(labels[key])))
	}
	return "[" + strings.Join(pairs, ", ") + "]"
}
