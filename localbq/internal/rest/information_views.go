package rest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// informationView is a view of a dataset's INFORMATION_SCHEMA. Its first three columns name the table that a row is about; rows
// answers the others, for one table (BigQuery documentation, the page of each view).
type informationView struct {
	columns *schema.Schema
	rows    func(*store.Info) [][]any
}

// informationViews are the views by name: those of query.InformationViews. Columns of BigQuery's that are not here are not
// found by name: the ddl of TABLES, what speaks of replicas and of change history.
var informationViews = map[string]informationView{
	"TABLE_OPTIONS": {informationColumns("option_name", "option_type", "option_value"), func(t *store.Info) (out [][]any) {
		for _, o := range optionsOf(t.Definition) {
			out = append(out, []any{o.name, o.kind, o.value})
		}
		return out
	}},
	"TABLES": {informationColumns("table_type", "is_insertable_into", "is_typed", "creation_time:TIMESTAMP"), func(t *store.Info) [][]any {
		kind, insertable := "BASE TABLE", "YES"
		if t.View != nil {
			kind, insertable = strings.ReplaceAll(t.Kind(), "_", " "), "NO"
		}
		return [][]any{{kind, insertable, "NO", t.Created}}
	}},
	"COLUMNS": {informationColumns("column_name", "ordinal_position:INT64", "is_nullable", "data_type", "is_generated",
		"generation_expression", "is_stored", "is_hidden", "is_updatable", "is_system_defined", "is_partitioning_column",
		"clustering_ordinal_position:INT64", "collation_name", "column_default", "rounding_mode"), columnRows},
	"COLUMN_FIELD_PATHS": {informationColumns("column_name", "field_path", "data_type", "description", "collation_name", "rounding_mode"), func(t *store.Info) (out [][]any) {
		if t.Schema != nil {
			for _, f := range t.Schema.Fields {
				out = append(out, fieldPaths(f.Name, f.Name, f)...)
			}
		}
		return out
	}},
	// The rows of PARTITIONS are those of partitionRows.
	"PARTITIONS": {informationColumns("partition_id", "total_rows:INT64", "total_logical_bytes:INT64", "last_modified_time:TIMESTAMP", "storage_tier"), nil},
	"VIEWS": {informationColumns("view_definition", "check_option", "use_standard_sql"), func(t *store.Info) [][]any {
		if t.View == nil || t.View.Materialized {
			return nil
		}
		return [][]any{{t.View.Query, nil, "YES"}}
	}},
	"TABLE_CONSTRAINTS": {informationColumns("constraint_catalog", "constraint_schema", "constraint_name", "constraint_type",
		"is_deferrable", "initially_deferred", "enforced"), func(t *store.Info) (out [][]any) {
		for _, k := range keysOf(t) {
			out = append(out, []any{t.Ref.Project, t.Ref.Dataset, k.name, k.kind, "NO", "NO", "NO"})
		}
		return out
	}},
	"KEY_COLUMN_USAGE": {informationColumns("constraint_catalog", "constraint_schema", "constraint_name", "column_name",
		"ordinal_position:INT64", "position_in_unique_constraint:INT64"), func(t *store.Info) (out [][]any) {
		for _, k := range keysOf(t) {
			for i, column := range k.columns {
				var position any
				if k.kind == "FOREIGN KEY" {
					position = int64(i + 1)
				}
				out = append(out, []any{t.Ref.Project, t.Ref.Dataset, k.name, column, int64(i + 1), position})
			}
		}
		return out
	}},
}

// informationColumns are the columns of a view behind those that name the table: "name" of type STRING, or "name:TYPE".
func informationColumns(names ...string) *schema.Schema {
	return namedColumns(append([]string{"table_catalog", "table_schema", "table_name"}, names...)...)
}

func namedColumns(names ...string) *schema.Schema {
	out := &schema.Schema{}
	for _, n := range names {
		f := &schema.Field{Name: n, Type: schema.String}
		if name, kind, ok := strings.Cut(n, ":"); ok {
			f.Name = name
			f.Type, _ = schema.ParseType(kind) // the names above are types
		}
		out.Fields = append(out.Fields, f)
	}
	return out
}

func appendInformation(b array.Builder, v any) {
	switch v := v.(type) {
	case string:
		b.(*array.StringBuilder).Append(v)
	case int64:
		b.(*array.Int64Builder).Append(v)
	case bool:
		b.(*array.BooleanBuilder).Append(v)
	case time.Time:
		b.(*array.TimestampBuilder).Append(arrow.Timestamp(v.UnixMicro()))
	case members:
		group := b.(*array.StructBuilder)
		group.Append(true)
		for i, m := range v {
			appendInformation(group.FieldBuilder(i), m)
		}
	case []any:
		list := b.(*array.ListBuilder)
		list.Append(true)
		for _, e := range v {
			appendInformation(list.ValueBuilder(), e)
		}
	default:
		b.AppendNull()
	}
}

// members is a STRUCT.
type members []any

func columnRows(t *store.Info) (out [][]any) {
	if t.Schema == nil {
		return nil
	}
	for i, f := range t.Schema.Fields {
		row := []any{f.Name, int64(i + 1), yes(f.Mode != schema.Required), dataType(f), "NEVER", nil, nil, "NO", nil, "NO",
			yes(partitions(t.Definition, f.Name)), nil, "NULL", "NULL", nil}
		if at := slices.IndexFunc(t.Clustering, func(c string) bool { return strings.EqualFold(c, f.Name) }); at >= 0 {
			row[11] = int64(at + 1)
		}
		if f.Collation != "" {
			row[12] = f.Collation
		}
		if f.Default != "" {
			row[13] = f.Default
		}
		if f.RoundingMode != "" {
			row[14] = f.RoundingMode
		}
		out = append(out, row)
	}
	return out
}

func yes(b bool) string {
	if b {
		return "YES"
	}
	return "NO"
}

// partitions reports whether a table is partitioned by the column.
func partitions(d *schema.Definition, column string) bool {
	return d.Partition != nil && strings.EqualFold(d.Partition.Field, column) || d.Ranges != nil && strings.EqualFold(d.Ranges.Field, column)
}

// dataType is a column's type as SQL writes it.
func dataType(f *schema.Field) string {
	out := f.Type.String()
	switch {
	case f.Type == schema.Struct:
		members := make([]string, len(f.Fields))
		for i, m := range f.Fields {
			members[i] = m.Name + " " + dataType(m)
		}
		out += "<" + strings.Join(members, ", ") + ">"
	case f.Type == schema.Range:
		out += "<" + f.RangeElement.String() + ">"
	case f.MaxLength > 0:
		out += fmt.Sprintf("(%d)", f.MaxLength)
	case f.Scale > 0:
		out += fmt.Sprintf("(%d, %d)", f.Precision, f.Scale)
	case f.Precision > 0:
		out += fmt.Sprintf("(%d)", f.Precision)
	case f.Picos():
		out += "(12)"
	}
	if f.Mode == schema.Repeated {
		return "ARRAY<" + out + ">"
	}
	return out
}

// tableKey is a constraint.
type tableKey struct {
	name, kind string
	columns    []string
}

// keysOf are a table's constraints with the names that BigQuery gives them.
func keysOf(t *store.Info) (out []tableKey) {
	if len(t.PrimaryKey) > 0 {
		out = append(out, tableKey{t.Ref.Table + "." + schema.PrimaryKeyName, "PRIMARY KEY", t.PrimaryKey})
	}
	for i, f := range t.ForeignKeys {
		out = append(out, tableKey{t.Ref.Table + "." + t.ForeignKeyName(i), "FOREIGN KEY", f.Columns})
	}
	return out
}
