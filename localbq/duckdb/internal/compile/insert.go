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
			return r, wrongCount(row[0].At(), len(row), len(fields))
		}
		items := make([]string, len(row))
		err := c.within("VALUES", func() error {
			for k, x := range row {
				sql, err := c.assigned(x, fields[k], TypeOf(fields[k]), &scope{}, cannotInsert(fields[k]))
				if err != nil {
					return err
				}
				items[k] = fmt.Sprintf("%s AS c%d", sql, k)
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
		return r, wrongCount(i.Query.Pos, len(r.columns), len(fields))
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
