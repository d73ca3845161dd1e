package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/query"
)

// mutated is the table of an UPDATE or DELETE in its own FROM clause.
type mutated struct {
	*query.Table
	ref   query.Ref
	sql   string // the item of the FROM clause
	id    string // the column of row ids
	scope *scope
}

// mutated opens the table that a statement changes, with the ids of its rows.
func (c *compiler) mutated(path []googlesql.Name, alias *googlesql.Name, pos googlesql.Pos) (*mutated, error) {
	ref, err := c.target(path, pos)
	if err != nil {
		return nil, err
	}
	opened, err := c.env.Table(ref, noInstant)
	if err != nil {
		return nil, err
	}
	if opened.View != "" || opened.RowIDs == nil {
		return nil, pos.Errorf("Cannot change rows of %s, which is no table", ref)
	}
	m := &mutated{Table: opened.RowIDs(), ref: ref, scope: &scope{}}
	t := &table{Table: m.Table, id: c.env.Scan(m.Table)}
	c.refs = append(c.refs, ref)
	name := c.newName()
	visible := fieldsOf(m.Schema)
	fields := append(slices.Clone(visible), m.Pseudo...)
	c.reads[name] = scanned{t.id, fields}
	columns := storedColumns(fields, len(visible), name)
	last := len(columns) - 1
	m.sql, m.id = fmt.Sprintf("bq_scan(%d) AS %s", t.id, name), columns[last].sql
	src := &source{alias: aliasOf(alias, ref.Table), columns: columns[:last]}
	if err := c.requireFilter(t, src, pos); err != nil {
		return nil, err
	}
	return m, m.scope.add(src, pos)
}

// where compiles the condition, which has to name the column that the table wants to be filtered by.
func (c *compiler) where(x googlesql.Expr, s *scope) (string, error) {
	var v value
	err := c.within("WHERE clause", func() (err error) {
		v, err = c.condition(x, s, "WHERE clause")
		return err
	})
	if err != nil {
		return "", err
	}
	return v.sql, c.filteredBy(v.sql)
}

// delete compiles DELETE to the ids of the rows that go.
func (c *compiler) delete(d *googlesql.Delete) (*Plan, error) {
	m, err := c.mutated(d.Table, d.Alias, d.Pos)
	if err != nil {
		return nil, err
	}
	where, err := c.where(d.Where, m.scope)
	if err != nil {
		return nil, err
	}
	r := result{sql: fmt.Sprintf("SELECT %s AS c0 FROM %s WHERE %s", m.id, m.sql, where), columns: []column{{name: query.RowID, typ: int64Type}}}
	return c.changing(r, "DELETE", m.ref), nil
}

func (c *compiler) changing(r result, kind string, ref query.Ref) *Plan {
	plan := c.plan(r)
	plan.Change = &query.Change{Kind: kind, Target: ref}
	return plan
}

// update compiles UPDATE to the ids of the rows that go and the rows that come in their place.
func (c *compiler) update(u *googlesql.Update) (*Plan, error) {
	m, err := c.mutated(u.Table, u.Alias, u.Pos)
	if err != nil {
		return nil, err
	}
	own := m.scope.sources[0]
	from := m.sql
	if u.From != nil {
		sql, err := c.from(u.From, m.scope)
		if err != nil {
			return nil, err
		}
		from += " CROSS JOIN (" + sql + ")"
		if _, join := u.From.(*googlesql.Join); !join {
			from = m.sql + " CROSS JOIN " + sql
		}
	}
	where, err := c.where(u.Where, m.scope)
	if err != nil {
		return nil, err
	}
	values, err := c.assignments(u.Set, m, m.scope)
	if err != nil {
		return nil, err
	}
	items := []string{m.id + " AS c0"}
	columns := []column{{name: query.RowID, typ: int64Type}}
	for i, f := range fieldsOf(m.Schema) {
		sql, set := values[i]
		if !set {
			sql = own.columns[i].sql
		}
		items = append(items, fmt.Sprintf("%s AS c%d", sql, i+1))
		columns = append(columns, column{name: f.Name, typ: TypeOf(f)})
	}
	r := result{sql: fmt.Sprintf("SELECT %s FROM %s WHERE %s", strings.Join(items, ", "), from, where), columns: columns}
	return c.changing(r, "UPDATE", m.ref), nil
}
