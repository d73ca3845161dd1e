package compile

import (
	"fmt"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

func (c *compiler) unary(e *googlesql.Unary, s *scope) (value, error) {
	v, err := c.expr(e.X, s)
	if err != nil {
		return value{}, err
	}
	switch e.Op {
	case "NOT":
		b, ok := coerce(v, boolean)
		if !ok {
			return value{}, noSignature("operator NOT", []value{v}, e.Pos)
		}
		return expr(e.Pos, boolean, []value{v}, "(NOT %s)", b.sql), nil
	case "-":
		return c.operator("operator -", "$NEGATE", []value{v}, e.Pos)
	case "~":
		return c.operator("operator ~", "$BITNOT", []value{v}, e.Pos)
	}
	return c.operator("operator +", "$PLUS", []value{v}, e.Pos)
}

func (c *compiler) binary(e *googlesql.Binary, s *scope) (value, error) {
	x, err := c.expr(e.X, s)
	if err != nil {
		return value{}, err
	}
	y, err := c.expr(e.Y, s)
	if err != nil {
		return value{}, err
	}
	switch e.Op {
	case "AND", "OR":
		a, okX := coerce(x, boolean)
		b, okY := coerce(y, boolean)
		if !okX || !okY {
			return value{}, noSignature("operator "+e.Op, []value{x, y}, e.Pos)
		}
		return expr(e.Pos, boolean, []value{x, y}, "(%s %s %s)", a.sql, e.Op, b.sql), nil
	case "=", "<>", "<", ">", "<=", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM":
		return c.compare(e.Op, x, y, e.Pos)
	case "||":
		if x.typ.Array || y.typ.Array {
			return c.operator("operator ||", "ARRAY_CONCAT", []value{x, y}, e.Pos)
		}
	}
	return c.operator("operator "+e.Op, "$"+e.Op, []value{x, y}, e.Pos)
}

// operator compiles an operator that the table of functions has.
func (c *compiler) operator(what, name string, operands []value, pos googlesql.Pos) (value, error) {
	v, ok, err := c.apply(name, operands, pos)
	if err == nil && !ok {
		err = noSignature(what, operands, pos)
	}
	return v, err
}

// compare compiles a comparison.
func (c *compiler) compare(op string, x, y value, pos googlesql.Pos) (value, error) {
	t, operands, err := together([]value{x, y}, pos, "operator "+op)
	if err != nil {
		return value{}, err
	}
	equality := op == "=" || op == "<>" || strings.HasPrefix(op, "IS")
	for _, k := range []schema.Type{schema.JSON, schema.Geography} {
		if t.holds(k) {
			if equality {
				return value{}, pos.Errorf("Equality is not defined for arguments of type %s", t)
			}
			return value{}, pos.Errorf("Less than is not defined for arguments of type %s", t)
		}
	}
	if !equality && (t.is(schema.Struct) || t.Array) {
		return value{}, pos.Errorf("Less than is not defined for arguments of type %s", t)
	}
	return expr(pos, boolean, []value{x, y}, "(%s %s %s)", operands[0].sql, op, operands[1].sql), nil
}

func not(n bool) string {
	if n {
		return "NOT "
	}
	return ""
}

// like compiles LIKE, whose patterns escape with a backslash.
func (c *compiler) like(e *googlesql.Like, s *scope) (value, error) {
	x, err := c.expr(e.X, s)
	if err != nil {
		return value{}, err
	}
	patterns, err := c.exprs(e.Patterns, s)
	if err != nil {
		return value{}, err
	}
	text, ok := coerce(x, stringType)
	if !ok {
		return value{}, noSignature("operator LIKE", append([]value{x}, patterns...), e.Pos)
	}
	parts := make([]string, len(patterns))
	for i, p := range patterns {
		p, ok := coerce(p, stringType)
		if !ok {
			return value{}, noSignature("operator LIKE", []value{x, p}, e.Pos)
		}
		parts[i] = fmt.Sprintf(`(%s LIKE %s ESCAPE '\')`, text.sql, p.sql)
	}
	join := " OR "
	if e.Quantifier == "ALL" {
		join = " AND "
	}
	return expr(e.Pos, boolean, append(patterns, x), "(%s(%s))", not(e.Not), strings.Join(parts, join)), nil
}

func (c *compiler) between(e *googlesql.Between, s *scope) (value, error) {
	values, err := c.exprs([]googlesql.Expr{e.X, e.Low, e.High}, s)
	if err != nil {
		return value{}, err
	}
	low, err := c.compare(">=", values[0], values[1], e.Pos)
	if err != nil {
		return value{}, err
	}
	high, err := c.compare("<=", values[0], values[2], e.Pos)
	if err != nil {
		return value{}, err
	}
	return expr(e.Pos, boolean, values, "(%s(%s AND %s))", not(e.Not), low.sql, high.sql), nil
}

func (c *compiler) in(e *googlesql.In, s *scope) (value, error) {
	x, err := c.expr(e.X, s)
	if err != nil {
		return value{}, err
	}
	switch {
	case e.Query != nil:
		return c.inQuery(e, x, s)
	case e.Unnest != nil:
		return c.inUnnest(e, x, s)
	}
	list, err := c.exprs(e.List, s)
	if err != nil {
		return value{}, err
	}
	all, err := inTypes(append([]value{x}, list...), e.Pos)
	if err != nil {
		return value{}, err
	}
	items := make([]string, len(list))
	for i, v := range all[1:] {
		items[i] = v.sql
	}
	return expr(e.Pos, boolean, all, "(%s %sIN (%s))", all[0].sql, not(e.Not), strings.Join(items, ", ")), nil
}

// inTypes gives the operands of IN one type, which has to be comparable.
func inTypes(values []value, pos googlesql.Pos) ([]value, error) {
	t, all, err := together(values, pos, "operator IN")
	if err == nil && (t.holds(schema.JSON) || t.holds(schema.Geography)) {
		err = pos.Errorf("Equality is not defined for arguments of type %s", t)
	}
	return all, err
}

func (c *compiler) inQuery(e *googlesql.In, x value, s *scope) (value, error) {
	r, err := c.query(e.Query, s)
	if err != nil {
		return value{}, err
	}
	if len(r.columns) != 1 {
		return value{}, e.Pos.Errorf("Subquery of type IN must have only one output column")
	}
	name := c.newName()
	both, err := inTypes([]value{x, {sql: name + ".c0", typ: r.columns[0].typ, pos: e.Pos}}, e.Pos)
	if err != nil {
		return value{}, err
	}
	return expr(e.Pos, boolean, []value{x}, "(%s %sIN (SELECT %s FROM (%s) AS %s))", both[0].sql, not(e.Not), both[1].sql, r.sql, name), nil
}

// inUnnest compiles x IN UNNEST(array).
func (c *compiler) inUnnest(e *googlesql.In, x value, s *scope) (value, error) {
	a, err := c.expr(e.Unnest, s)
	if err != nil {
		return value{}, err
	}
	if !a.typ.Array {
		return value{}, a.pos.Errorf("Second argument of IN UNNEST must be an array but was %s", a.typ)
	}
	name := c.newName()
	both, err := inTypes([]value{x, {sql: name + ".c0", typ: a.typ.element(), pos: e.Pos}}, e.Pos)
	if err != nil {
		return value{}, err
	}
	return expr(e.Pos, boolean, []value{x, a}, "(%s %sIN (SELECT %s FROM (SELECT unnest(%s) AS c0) AS %s))",
		both[0].sql, not(e.Not), both[1].sql, a.sql, name), nil
}

func (c *compiler) is(e *googlesql.Is, s *scope) (value, error) {
	v, err := c.expr(e.X, s)
	if err != nil {
		return value{}, err
	}
	what := e.What
	if what != "NULL" {
		b, ok := coerce(v, boolean)
		if !ok {
			return value{}, noSignature("operator IS "+what, []value{v}, e.Pos)
		}
		v.sql = b.sql
		if what == "UNKNOWN" {
			what = "NULL"
		}
	}
	return expr(e.Pos, boolean, []value{v}, "(%s IS %s%s)", v.sql, not(e.Not), what), nil
}
