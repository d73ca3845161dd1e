package compile

import (
	"fmt"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// result is a compiled query: its columns are c0, c1, … .
type result struct {
	sql     string
	columns []column
	// element is set for SELECT AS STRUCT and AS VALUE: each row is the one value c0.
	element bool
}

// unfold spreads the members of rows that are one struct, as a statement's result does.
func (r result) unfold(c *compiler) result {
	if !r.element || !r.columns[0].typ.is(schema.Struct) {
		return r
	}
	out := result{}
	var items []string
	name := c.newName()
	for i, f := range r.columns[0].typ.Fields {
		out.columns = append(out.columns, column{name: f.Name, typ: f.Type})
		items = append(items, fmt.Sprintf("struct_extract(%s.c0, '_%d') AS c%d", name, i, i))
	}
	out.sql = fmt.Sprintf("SELECT %s FROM (%s) AS %s", strings.Join(items, ", "), r.sql, name)
	for i, n := 0, 0; i < len(out.columns); i++ {
		if out.columns[i].name == "" {
			out.columns[i].name = fmt.Sprintf("f%d_", n)
			n++
		}
	}
	return out
}

// unique refuses a result of which two columns have one name.
func (r result) unique(pos googlesql.Pos) error {
	seen := map[string]bool{}
	for _, c := range r.columns {
		key := strings.ToLower(c.name)
		if seen[key] {
			return pos.Errorf("Duplicate column names in the result are not supported when a destination table is present. Found duplicate(s): %s", c.name)
		}
		seen[key] = true
	}
	return nil
}

// query compiles a query; parent is the scope of the query around it, nil for none.
func (c *compiler) query(q *googlesql.Query, parent *scope) (result, error) {
	if c.alone {
		return result{}, q.Pos.Errorf("Subqueries are not allowed in %s", c.clause)
	}
	clause, windows, visible := c.clause, c.windows, len(c.ctes)
	c.clause, c.windows = "", nil
	defer func() { c.clause, c.windows, c.ctes = clause, windows, c.ctes[:visible] }()

	with, err := c.with(q)
	if err != nil {
		return result{}, err
	}
	r, err := c.body(q.Body, q.OrderBy, parent)
	if err != nil {
		return result{}, err
	}
	limit, err := c.limit(q)
	if err != nil {
		return result{}, err
	}
	r.sql = with + r.sql + limit
	return r, nil
}

// with compiles the tables of a WITH clause and answers the clause.
func (c *compiler) with(q *googlesql.Query) (string, error) {
	var tables []string
	for _, w := range q.With {
		t := cte{name: w.Name.Text, sql: c.newName()}
		if q.Recursive {
			if union := recursion(w); union != nil {
				text, err := c.recursive(union, t)
				if err != nil {
					return "", err
				}
				tables = append(tables, text)
				continue
			}
		}
		r, err := c.query(w.Query, nil)
		if err != nil {
			return "", err
		}
		t.columns, t.element = r.columns, r.element
		tables = append(tables, fmt.Sprintf("%s AS (%s)", t.sql, r.sql))
		c.ctes = append(c.ctes, t)
	}
	switch {
	case tables == nil:
		return "", nil
	case q.Recursive:
		return "WITH RECURSIVE " + strings.Join(tables, ", ") + " ", nil
	}
	return "WITH " + strings.Join(tables, ", ") + " ", nil
}

// recursion is the union of a recursive table's first rows and its step; nil for another shape.
func recursion(w googlesql.CTE) *googlesql.SetOperation {
	if len(w.Query.With) > 0 || w.Query.OrderBy != nil || w.Query.Limit != nil {
		return nil
	}
	op, ok := w.Query.Body.(*googlesql.SetOperation)
	if !ok || op.Op != "UNION" {
		return nil
	}
	return op
}

// recursive compiles a recursive table. The types of its columns are those of its first rows.
func (c *compiler) recursive(union *googlesql.SetOperation, t cte) (string, error) {
	first, err := c.body(union.Left, nil, nil)
	if err != nil {
		return "", err
	}
	t.columns = first.columns
	c.ctes = append(c.ctes, t)
	step, err := c.body(union.Right, nil, nil)
	if err != nil {
		return "", err
	}
	if step, err = c.reshape(step, first.columns, union, "recursive query"); err != nil {
		return "", err
	}
	op := "UNION"
	if union.All {
		op = "UNION ALL"
	}
	names := make([]string, len(t.columns))
	for i := range names {
		names[i] = fmt.Sprintf("c%d", i)
	}
	return fmt.Sprintf("%s(%s) AS ((%s) %s (%s))", t.sql, strings.Join(names, ", "), first.sql, op, step.sql), nil
}

// body compiles a body with the order of its rows.
func (c *compiler) body(b googlesql.Body, order []googlesql.OrderItem, parent *scope) (result, error) {
	switch b := b.(type) {
	case *googlesql.Select:
		return c.selection(b, order, parent)
	case *googlesql.SetOperation:
		r, err := c.setOperation(b, parent)
		if err != nil {
			return result{}, err
		}
		return c.ordered(r, order, parent)
	default:
		r, err := c.query(b.(*googlesql.Query), parent)
		if err != nil {
			return result{}, err
		}
		r.sql = "(" + r.sql + ")"
		return c.ordered(r, order, parent)
	}
}

// ordered sorts the rows of a result by what can be said about its columns.
func (c *compiler) ordered(r result, order []googlesql.OrderItem, parent *scope) (result, error) {
	if order == nil {
		return r, nil
	}
	name := c.newName()
	src := &source{}
	for i, col := range r.columns {
		src.columns = append(src.columns, column{name: col.name, typ: col.typ, sql: fmt.Sprintf("%s.c%d", name, i)})
	}
	s := &scope{parent: parent, sources: []*source{src}}
	columns := make([]value, len(src.columns))
	for i, col := range src.columns {
		columns[i] = col.value("")
	}
	keys, err := c.orderKeys(order, s, columns)
	if err != nil {
		return result{}, err
	}
	r.sql = fmt.Sprintf("SELECT %s.* FROM (%s) AS %s ORDER BY %s", name, r.sql, name, keys)
	return r, nil
}

// limit compiles LIMIT and OFFSET.
func (c *compiler) limit(q *googlesql.Query) (string, error) {
	out := ""
	for _, l := range []struct {
		word string
		x    googlesql.Expr
	}{{"LIMIT", q.Limit}, {"OFFSET", q.Offset}} {
		if l.x == nil {
			continue
		}
		sql, err := c.count(l.x, l.word)
		if err != nil {
			return "", err
		}
		out += " " + l.word + " " + sql
	}
	return out, nil
}

// count compiles an INT64 literal or parameter that is not negative.
func (c *compiler) count(x googlesql.Expr, word string) (string, error) {
	switch x.(type) {
	case *googlesql.Literal, *googlesql.Param, *googlesql.Cast:
	default:
		return "", x.At().Errorf("Syntax error: Unexpected expression in %s: expected an integer literal or a parameter", word)
	}
	v, err := c.expr(x, &scope{})
	if err != nil {
		return "", err
	}
	if v, ok := coerce(v, int64Type); ok && !v.typ.untyped() {
		if v.literal != nil && strings.HasPrefix(v.literal.Text, "-") {
			return "", v.pos.Errorf("Syntax error: Unexpected \"-\"")
		}
		return v.sql, nil
	}
	return "", v.pos.Errorf("%s expects an integer literal or parameter, but got %s", word, v.typ)
}

// setOperation compiles UNION, INTERSECT or EXCEPT. Both sides get the types that values of both become.
func (c *compiler) setOperation(op *googlesql.SetOperation, parent *scope) (result, error) {
	left, err := c.body(op.Left, nil, parent)
	if err != nil {
		return result{}, err
	}
	right, err := c.body(op.Right, nil, parent)
	if err != nil {
		return result{}, err
	}
	name := op.Op + " DISTINCT"
	word := op.Op
	if op.All {
		name, word = op.Op+" ALL", op.Op+" ALL"
	}
	columns, err := unite(left, right, op, name)
	if err != nil {
		return result{}, err
	}
	if left, err = c.reshape(left, columns, op, name); err != nil {
		return result{}, err
	}
	if right, err = c.reshape(right, columns, op, name); err != nil {
		return result{}, err
	}
	return result{
		sql: fmt.Sprintf("(%s) %s (%s)", left.sql, word, right.sql), columns: columns, element: left.element && right.element,
	}, nil
}

// unite is the columns of a set operation.
func unite(left, right result, op *googlesql.SetOperation, name string) ([]column, error) {
	if len(left.columns) != len(right.columns) {
		return nil, op.Pos.Errorf("Queries in %s have mismatched column count; query 1 has %d %s, query 2 has %d %s", name,
			len(left.columns), plural(len(left.columns)), len(right.columns), plural(len(right.columns)))
	}
	columns := make([]column, len(left.columns))
	for i, l := range left.columns {
		t, ok := supertype(l.typ, right.columns[i].typ)
		if !ok {
			return nil, op.Pos.Errorf("Column %d in %s has incompatible types: %s, %s", i+1, name, l.typ, right.columns[i].typ)
		}
		if !op.All && t.holds(schema.JSON) {
			return nil, op.Pos.Errorf("Column %d in %s has type that does not support set operation comparisons: %s", i+1, name, t)
		}
		columns[i] = column{name: l.name, typ: t}
	}
	return columns, nil
}

func plural(n int) string {
	if n == 1 {
		return "column"
	}
	return "columns"
}

// reshape gives a result's columns other types.
func (c *compiler) reshape(r result, columns []column, op *googlesql.SetOperation, what string) (result, error) {
	name := c.newName()
	items := make([]string, len(columns))
	changed := false
	for i, col := range r.columns {
		v, ok := coerce(value{sql: fmt.Sprintf("%s.c%d", name, i), typ: col.typ}, columns[i].typ)
		if !ok {
			return result{}, op.Pos.Errorf("Column %d in %s has incompatible types: %s, %s", i+1, what, columns[i].typ, col.typ)
		}
		changed = changed || !col.typ.same(columns[i].typ)
		items[i] = fmt.Sprintf("%s AS c%d", v.sql, i)
	}
	if changed {
		r.sql = fmt.Sprintf("SELECT %s FROM (%s) AS %s", strings.Join(items, ", "), r.sql, name)
	}
	return r, nil
}
