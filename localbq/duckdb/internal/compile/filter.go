package compile

import (
	"regexp"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/query"
)

// filter is a partitioning column that a table wants to be filtered by.
type filter struct {
	ref    query.Ref
	column column
	pos    googlesql.Pos
}

// requireFilter notes the column that a table has to be filtered by.
func (c *compiler) requireFilter(t *table, src *source, pos googlesql.Pos) error {
	if t.PartitionColumn == "" {
		return nil
	}
	for _, col := range src.columns {
		if strings.EqualFold(col.name, t.PartitionColumn) {
			c.filters = append(c.filters, filter{t.Ref, col, pos})
			return nil
		}
	}
	return pos.Unsupported("a filter over %s, which table %s requires", t.PartitionColumn, t.Ref)
}

// missingFilter refuses a SELECT that reads a table and neither its own conditions nor, perhaps, those of a query around it
// name the column to filter by.
func (s *selecting) missingFilter(required []filter, out *clauses) error {
	for _, f := range required {
		outside := s.filtered > 0 && s.tree.Where == nil || s.filtered > 1
		if !f.in(out.where) && !f.in(joins(out.from)) && !outside {
			return f.missing()
		}
	}
	return nil
}

// filteredBy refuses a statement whose conditions do not name every column that a table wants to be filtered by.
func (c *compiler) filteredBy(conditions string) error {
	for _, f := range c.filters {
		if !f.in(conditions) {
			return f.missing()
		}
	}
	return nil
}

// in reports whether a text of the engine's names the column.
func (f filter) in(sql string) bool {
	return regexp.MustCompile(regexp.QuoteMeta(f.column.sql) + `\b`).MatchString(sql)
}

func (f filter) missing() error {
	return f.pos.Errorf("Cannot query over table '%s.%s.%s' without a filter over column(s) '%s' that can be used for partition elimination",
		f.ref.Project, f.ref.Dataset, f.ref.Table, f.column.name)
}

// joins is what follows the first ON of a FROM clause.
func joins(from string) string {
	_, on, _ := strings.Cut(from, " ON ")
	return on
}
