package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/job/plan"
)

// compare holds a table that exists to what the job would write and make.
func (l *look) compare(t plan.Table, info *bigquery.TableInfo, r *Report) {
	thing := "table " + t.Name
	if info.Kind != "TABLE" {
		r.add(Error, thing, "is a "+info.Kind+", which rows cannot be appended to", "name a table")
		return
	}
	if t.Schema == nil {
		r.add(OK, thing, "is there; its columns cannot be compared before the job runs", "")
	} else {
		l.schema(t, info.Schema, r)
	}
	l.layout(thing, info.Options, r)
}

// schema tells how the rows of the job differ from the columns of a table, what the job would change about that, and what it
// could not.
func (l *look) schema(t plan.Table, live *table.Schema, r *Report) {
	thing := "table " + t.Name
	allowed := l.job.Sink.BigQuery.SchemaUpdate
	options := table.UnionOptions{AllowNewFields: allowed.AllowNewFields, AllowFieldRelaxation: allowed.AllowFieldRelaxation}
	union, err := live.Union(t.Schema, table.UnionOptions{AllowNewFields: true, AllowFieldRelaxation: options.AllowFieldRelaxation})
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			r.add(Error, thing, strings.TrimSpace(line), "change the schema of the job, or write to another table")
		}
		return
	}
	sound := true
	for _, d := range live.Diff(union) {
		text := fmt.Sprintf("%v: %v", d.Change, d)
		switch {
		case d.Change == table.Added && !options.AllowNewFields:
			sound = false
			r.add(Error, thing, text, "add it, let the job (schemaUpdate.allowNewFields), or take the columns from the table and drop the rest (schema.table: true, schema.unknownFields: ignore)")
		default:
			r.add(OK, thing, text+", which the job would change", "")
		}
	}
	for _, path := range needed(live.Fields, t.Schema.Fields, "") {
		sound = false
		r.add(Error, thing, "column "+path+" is REQUIRED, and rows have no such column", "make it NULLABLE in the table, or have the records say it")
	}
	if !options.AllowFieldRelaxation {
		for _, path := range optional(live.Fields, t.Schema.Fields, "") {
			r.add(Warn, thing, "column "+path+" is REQUIRED, and rows may have none", "records without it fail; schemaUpdate.allowFieldRelaxation makes it NULLABLE")
		}
	}
	if sound {
		r.add(OK, thing, "is there, and takes what the job writes", "")
	}
}

// needed are REQUIRED columns of the table that rows lack.
func needed(live, rows []table.Field, parent string) []string {
	return walk(live, rows, parent, func(have, row *table.Field) bool { return row == nil && have.Mode == table.Required })
}

// optional are REQUIRED columns of the table that rows need not have.
func optional(live, rows []table.Field, parent string) []string {
	return walk(live, rows, parent, func(have, row *table.Field) bool {
		return row != nil && have.Mode == table.Required && row.Mode != table.Required
	})
}

// walk are the paths of columns of the table that pick picks, given what rows have under that name.
func walk(live, rows []table.Field, parent string, pick func(have, row *table.Field) bool) (paths []string) {
	for i := range live {
		have := &live[i]
		var row *table.Field
		if at := slices.IndexFunc(rows, func(f table.Field) bool { return table.FoldName(f.Name) == table.FoldName(have.Name) }); at >= 0 {
			row = &rows[at]
		}
		path := table.Join(parent, have.Name)
		if pick(have, row) {
			paths = append(paths, path)
		}
		if row != nil {
			paths = append(paths, walk(have.Fields, row.Fields, path, pick)...)
		}
	}
	return paths
}

// layout tells where a table is laid out otherwise than the job would make it.
func (l *look) layout(thing string, have table.CreateOptions, r *Report) {
	want := l.job.Options().Create.Options
	if want.Partition.Type != table.PartitionNone && (have.Partition.Type != want.Partition.Type || !strings.EqualFold(have.Partition.Field, want.Partition.Field)) {
		r.add(Warn, thing, "is not partitioned "+l.plan.Create.Partition+", and stays as it is", "leave create.partition out, or write to another table")
	}
	if len(want.Cluster) > 0 && !slices.EqualFunc(have.Cluster, want.Cluster, strings.EqualFold) {
		r.add(Warn, thing, fmt.Sprintf("is clustered by [%s], not by [%s], and stays as it is", strings.Join(have.Cluster, ", "), strings.Join(want.Cluster, ", ")),
			"leave create.cluster out, or change the table")
	}
}
