package storageread

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/restriction"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// resolveView answers the query that makes the rows of a view, nil where the table is none and is read as it is.
func (c *Config) resolveView(ctx context.Context, a Attempt) (*Query, error) {
	rest, err := c.Connection.REST(ctx)
	if err != nil {
		return nil, ofSource(err)
	}
	defer rest.Close()
	r := queryRun{rest: rest, pacer: c.Pacer, log: a.Log}
	t, err := r.tableAt(ctx, c.Table)
	switch {
	case isHTTP(err, http.StatusNotFound):
		return nil, fmt.Errorf("the table or view %s does not exist: %w", c.Table, err)
	case err != nil:
		return nil, err
	case t.Type != "VIEW" && t.Type != "MATERIALIZED_VIEW":
		a.Log.InfoContext(ctx, "the table is no view, and is read as it is", "destination", c.Table.String(), "type", t.Type)
		return nil, nil
	}
	q := *c.Views
	q.SQL = viewSQL(c.Table, c.SelectedFields, c.viewLimit())
	return &q, nil
}

// viewLimit is a limit that the query may have: one that is exact, of rows that no restriction drops afterwards.
func (c *Config) viewLimit() int64 {
	if c.RowRestriction != "" {
		return 0
	}
	return c.Limit
}

// viewSQL selects the columns that are read, since their scan is billed. Of a dotted path it selects the whole column: the
// member alone would be another column, by another name. The restriction is left to the session, whose syntax it has.
func viewSQL(view table.Destination, fields []string, limit int64) string {
	var columns []string
	seen := map[string]bool{}
	for _, path := range fields {
		name, _, _ := strings.Cut(path, ".")
		if key := strings.ToLower(name); !seen[key] {
			seen[key] = true
			columns = append(columns, restriction.QuoteName(name))
		}
	}
	sql := "SELECT *"
	if len(columns) > 0 {
		sql = "SELECT " + strings.Join(columns, ", ")
	}
	sql += " FROM " + restriction.QuoteName(view.String())
	if limit > 0 {
		sql += fmt.Sprintf(" LIMIT %d", limit)
	}
	return sql
}
