package compile

import (
	"fmt"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

var noInstant time.Time

func joined(path []googlesql.Name) string {
	parts := make([]string, len(path))
	for i, n := range path {
		parts[i] = n.Text
	}
	return strings.Join(parts, ".")
}

// insertRows compiles VALUES.
func (c *compiler) insertRows(i *googlesql.Insert, fields []*schema.Field) (result, error) {
	r := result{columns: columnsOf(fields)}
	var rows []string
	for _, row := range i.Rows {
		if len(row) != len(fields) {
			return r, row[0].At().Errorf("Inserted row has wrong column count; Has %d, expected %d", len(row), len(fields))
		}
		items := make([]string, len(row))
		err := c.within("VALUES", func() error {
			for k, x := range row {
				v, err := c.expr(x, &scope{})
				if err != nil {
					return err
				}
				t := TypeOf(fields[k])
				w, ok := coerce(v, t)
				if !ok {
					return v.pos.Errorf("Value has type %s which cannot be inserted into column %s, which has type %s", v.typ, fields[k].Name, t)
				}
				items[k] = fmt.Sprintf("%s AS c%d", cast(w.sql, t), k)
			}
			return nil
		})
		if err != nil {
			return r, err
		}
		rows = append(rows, "SELECT "+strings.Join(items, ", "))
	}
	r.sql = strings.Join(rows, " UNION ALL ")
	return r, nil
}

// insertQuery compiles INSERT … SELECT.
func (c *compiler) insertQuery(i *googlesql.Insert, fields []*schema.Field) (result, error) {
	r, err := c.query(i.Query, nil)
	if err != nil {
		return r, err
	}
	r = r.unfold(c)
	if len(r.columns) != len(fields) {
		return r, i.Query.Pos.Errorf("Inserted row has wrong column count; Has %d, expected %d", len(r.columns), len(fields))
	}
	return c.fit(r, fields, i.Query.Pos)
}

// fit gives a result the names and types of columns.
func (c *compiler) fit(r result, fields []*schema.Field, pos googlesql.Pos) (result, error) {
	name := c.newName()
	items := make([]string, len(fields))
	for k, col := range r.columns {
		t := TypeOf(fields[k])
		v, ok := coerce(value{sql: fmt.Sprintf("%s.c%d", name, k), typ: col.typ}, t)
		if !ok {
			return r, pos.Errorf("Query column %d has type %s which cannot be inserted into column %s, which has type %s", k+1, col.typ, fields[k].Name, t)
		}
		items[k] = fmt.Sprintf("%s AS c%d", v.sql, k)
	}
	r.sql = fmt.Sprintf("SELECT %s FROM (%s) AS %s", strings.Join(items, ", "), r.sql, name)
	r.columns = columnsOf(fields)
	return r, nil
}

func columnsOf(fields []*schema.Field) []column {
	out := make([]column, len(fields))
	for i, f := range fields {
		out[i] = column{name: f.Name, typ: TypeOf(f)}
	}
	return out
}
