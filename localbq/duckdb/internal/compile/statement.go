package compile

import (
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// Statement compiles a statement of any kind. The plan of one that is no query has a Change, and SQL only where it has rows.
func Statement(sql string, env Env) (*Plan, error) {
	tree, err := googlesql.ParseStatement(sql)
	if err != nil {
		return nil, err
	}
	c := newCompiler(env)
	switch s := tree.(type) {
	case *googlesql.Query:
		r, err := c.rows(s)
		if err != nil {
			return nil, err
		}
		return c.plan(r), nil
	case *googlesql.Insert:
		return c.insert(s)
	case *googlesql.Update:
		return c.update(s)
	case *googlesql.Delete:
		return c.delete(s)
	case *googlesql.Merge:
		return c.merge(s)
	case *googlesql.Truncate:
		ref, err := c.target(s.Table, s.Pos)
		return &Plan{Change: &query.Change{Kind: "TRUNCATE_TABLE", Target: ref}}, err
	case *googlesql.CreateTable:
		return c.createTable(s)
	case *googlesql.CreateView:
		return c.createView(s)
	case *googlesql.CreateSchema:
		return c.createSchema(s)
	case *googlesql.Drop:
		return c.drop(s)
	case *googlesql.Alter:
		return c.alter(s)
	}
	return nil, tree.At().Unsupported("this statement")
}

func newCompiler(env Env) *compiler {
	return &compiler{env: env, tables: map[string]*table{}, reads: map[string]scanned{}}
}

// rows compiles a query whose result is a table.
func (c *compiler) rows(q *googlesql.Query) (result, error) {
	r, err := c.query(q, nil)
	if err != nil {
		return r, err
	}
	r = r.unfold(c)
	return r, r.unique(q.Pos)
}

// plan is the plan of a result.
func (c *compiler) plan(r result) *Plan {
	plan := &Plan{SQL: r.sql, Volatile: c.volatile, Tables: c.refs, Scans: c.readColumns(r.sql)}
	for _, col := range r.columns {
		plan.Columns = append(plan.Columns, Column{col.name, col.typ})
	}
	return plan
}

// target is the table that a statement changes.
func (c *compiler) target(path []googlesql.Name, pos googlesql.Pos) (query.Ref, error) {
	ref, err := c.reference(&googlesql.Table{Pos: path[0].Pos, Parts: path})
	if err == nil && strings.HasPrefix(ref.Table, query.InformationSchema+".") {
		err = path[0].Pos.Errorf("%s cannot be changed", ref.Table)
	}
	return ref, err
}

// insert compiles the rows that go into a table, as the types of the columns that they go to.
func (c *compiler) insert(i *googlesql.Insert) (*Plan, error) {
	ref, err := c.target(i.Table, i.Pos)
	if err != nil {
		return nil, err
	}
	opened, err := c.env.Table(ref, noInstant)
	if err != nil {
		return nil, err
	}
	if opened.View != "" {
		return nil, i.Pos.Errorf("Cannot insert into view %s", ref)
	}
	fields, err := insertColumns(i, opened.Schema)
	if err != nil {
		return nil, err
	}
	var r result
	if i.Query != nil {
		r, err = c.insertQuery(i, fields)
	} else {
		r, err = c.insertRows(i, fields)
	}
	if err != nil {
		return nil, err
	}
	plan := c.plan(r)
	plan.Change = &query.Change{Kind: "INSERT", Target: ref}
	return plan, nil
}

// insertColumns are the columns that the rows go to.
func insertColumns(i *googlesql.Insert, s *schema.Schema) ([]*schema.Field, error) {
	if i.Columns == nil {
		return fieldsOf(s), nil
	}
	var out []*schema.Field
	seen := map[*schema.Field]bool{}
	for _, name := range i.Columns {
		f := s.Field(name.Text)
		switch {
		case f == nil:
			return nil, name.Pos.Errorf("Column %s is not present in table %s", name.Text, joined(i.Table))
		case seen[f]:
			return nil, name.Pos.Errorf("INSERT has columns with duplicate name: %s", f.Name)
		}
		seen[f] = true
		out = append(out, f)
	}
	return out, nil
}
