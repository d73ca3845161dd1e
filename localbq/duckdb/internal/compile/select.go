package compile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// item is one column of a SELECT list.
type item struct {
	value
	alias bool // given by AS
}

// selecting is one SELECT on its way.
type selecting struct {
	*compiler
	tree  *googlesql.Select
	scope *scope // of the FROM clause
	items []item
	// after is the scope of HAVING, QUALIFY and ORDER BY: the FROM clause behind the aliases of the list.
	after *scope
	keys  []string // of GROUP BY
	group string   // GROUP BY clause
}

// selection compiles a SELECT and the ORDER BY behind it.
func (c *compiler) selection(tree *googlesql.Select, order []googlesql.OrderItem, parent *scope) (result, error) {
	s := &selecting{compiler: c, tree: tree, scope: &scope{parent: parent}}
	c.windows = append(slices.Clone(c.windows), tree.Windows...)
	var out clauses
	if err := s.from(&out); err != nil {
		return result{}, err
	}
	if err := s.list(order); err != nil {
		return result{}, err
	}
	for _, clause := range []func(*clauses) error{s.having, s.qualify} {
		if err := clause(&out); err != nil {
			return result{}, err
		}
	}
	if order != nil {
		columns := make([]value, len(s.items))
		for i, it := range s.items {
			columns[i] = it.value
		}
		keys, err := c.orderKeys(order, s.after, columns)
		if err != nil {
			return result{}, err
		}
		out.order = " ORDER BY " + keys
	}
	out.group = s.group
	return s.finish(out)
}

// clauses are the parts of a SELECT behind its list, each with its word and a space before it.
type clauses struct{ from, where, group, having, qualify, order string }

func (o clauses) String() string { return o.from + o.where + o.group + o.having + o.qualify + o.order }

func (s *selecting) from(out *clauses) error {
	before := len(s.filters)
	if s.tree.From != nil {
		if s.tree.Where != nil {
			s.filtered++
			defer func() { s.filtered-- }()
		}
		sql, err := s.compiler.from(s.tree.From, s.scope)
		if err != nil {
			return err
		}
		out.from = " FROM " + sql
	}
	if err := s.where(out); err != nil {
		return err
	}
	required := s.filters[before:]
	s.filters = s.filters[:before]
	return s.missingFilter(required, out)
}

func (s *selecting) where(out *clauses) error {
	if s.tree.Where == nil {
		return nil
	}
	if s.tree.From == nil {
		return s.tree.Where.At().Errorf("Query without FROM clause cannot have a WHERE clause")
	}
	return s.within("WHERE clause", func() error {
		v, err := s.condition(s.tree.Where, s.scope, "WHERE clause")
		out.where = " WHERE " + v.sql
		return err
	})
}

// list compiles the SELECT list and the GROUP BY keys, which may name items of the list. Whether an item uses a column that
// is not a key is only known then, so the list of an aggregation is compiled again, with the keys.
func (s *selecting) list(order []googlesql.OrderItem) (err error) {
	if s.items, err = s.compileItems(s.scope); err != nil {
		return err
	}
	aggregating, err := s.aggregates(order)
	if err != nil {
		return err
	}
	if !aggregating {
		s.after = s.scope.behind(s.items)
		return nil
	}
	if err := s.groupBy(); err != nil {
		return err
	}
	grouped := *s.scope
	grouped.aggregating, grouped.grouped = true, map[string]bool{}
	for _, k := range s.keys {
		grouped.grouped[k] = true
	}
	if s.items, err = s.compileItems(&grouped); err != nil {
		return err
	}
	for _, it := range s.items {
		if err := neither(it.value, "SELECT list"); err != nil {
			return err
		}
	}
	s.after = grouped.behind(s.items)
	return nil
}

// neither refuses a column that is neither grouped nor aggregated.
func neither(v value, clause string) error {
	if v.ungrouped == nil {
		return nil
	}
	names := make([]string, len(v.ungrouped.Names))
	for i, n := range v.ungrouped.Names {
		names[i] = n.Text
	}
	return v.ungrouped.Pos.Errorf("%s expression references column %s which is neither grouped nor aggregated", clause, strings.Join(names, "."))
}

// behind is the scope with the aliases of a SELECT list before it.
func (s *scope) behind(items []item) *scope {
	out := *s
	out.aliases = nil
	for _, it := range items {
		if it.name != "" {
			out.aliases = append(out.aliases, aliased{it.name, it.value})
		}
	}
	return &out
}

// aggregates reports whether the SELECT aggregates, with or without GROUP BY.
func (s *selecting) aggregates(order []googlesql.OrderItem) (bool, error) {
	if s.tree.GroupBy != nil {
		return true, nil
	}
	for _, it := range s.items {
		if it.aggregate {
			return true, nil
		}
	}
	exprs := []googlesql.Expr{}
	if s.tree.Having != nil {
		exprs = append(exprs, s.tree.Having)
	}
	for _, o := range order {
		exprs = append(exprs, o.X)
	}
	after := s.scope.behind(s.items)
	for _, e := range exprs {
		v, err := s.expr(e, after)
		if err != nil {
			return false, err
		}
		if v.aggregate {
			return true, nil
		}
	}
	if s.tree.Having != nil {
		return false, s.tree.Having.At().Errorf("The HAVING clause requires GROUP BY or aggregation to be present")
	}
	return false, nil
}

// compileItems compiles the SELECT list, stars spread.
func (s *selecting) compileItems(sc *scope) ([]item, error) {
	var out []item
	for _, i := range s.tree.Items {
		if i.Star != nil {
			spread, err := s.star(i, sc)
			if err != nil {
				return nil, err
			}
			out = append(out, spread...)
			continue
		}
		v, err := s.expr(i.X, sc)
		if err != nil {
			return nil, err
		}
		it := item{value: v}
		if i.Alias != nil {
			it.name, it.alias = i.Alias.Text, true
		}
		out = append(out, it)
	}
	return out, nil
}

func (s *selecting) having(out *clauses) error {
	if s.tree.Having == nil {
		return nil
	}
	v, err := s.condition(s.tree.Having, s.after, "HAVING clause")
	if err != nil {
		return err
	}
	out.having = " HAVING " + v.sql
	return neither(v, "HAVING clause")
}

func (s *selecting) qualify(out *clauses) error {
	if s.tree.Qualify == nil {
		return nil
	}
	v, err := s.condition(s.tree.Qualify, s.after, "QUALIFY clause")
	if err != nil {
		return err
	}
	analytic := v.analytic || slices.ContainsFunc(s.items, func(i item) bool { return i.analytic })
	if !analytic {
		return v.pos.Errorf("The QUALIFY clause requires analytic function to be present in the QUALIFY clause or the SELECT list")
	}
	out.qualify = " QUALIFY " + v.sql
	return neither(v, "QUALIFY clause")
}

// finish writes the statement.
func (s *selecting) finish(out clauses) (result, error) {
	if s.tree.Distinct {
		for i, it := range s.items {
			if it.typ.holds(schema.JSON) || it.typ.holds(schema.Geography) {
				return result{}, it.pos.Errorf("Column %s of type %s cannot be used in SELECT DISTINCT", nameOf(it, i), it.typ)
			}
		}
	}
	switch s.tree.As {
	case "STRUCT":
		v := packed(s.items, s.tree.Pos)
		return result{sql: s.word() + v.sql + " AS c0" + out.String(), columns: []column{{typ: v.typ}}, element: true}, nil
	case "VALUE":
		if len(s.items) != 1 {
			return result{}, s.tree.Pos.Errorf("SELECT AS VALUE query must have exactly one column")
		}
		return result{sql: s.word() + s.items[0].sql + " AS c0" + out.String(), columns: []column{{typ: s.items[0].typ}}, element: true}, nil
	}
	r := result{}
	list := make([]string, len(s.items))
	unnamed := 0
	for i, it := range s.items {
		name := it.name
		if name == "" {
			name = fmt.Sprintf("f%d_", unnamed)
			unnamed++
		}
		list[i] = fmt.Sprintf("%s AS c%d", it.sql, i)
		r.columns = append(r.columns, column{name: name, typ: it.typ})
	}
	r.sql = s.word() + strings.Join(list, ", ") + out.String()
	return r, nil
}

func (s *selecting) word() string {
	if s.tree.Distinct {
		return "SELECT DISTINCT "
	}
	return "SELECT "
}

func nameOf(it item, i int) string {
	if it.name != "" {
		return it.name
	}
	return strconv.Itoa(i + 1)
}

// packed is a struct of a list's items.
func packed(items []item, pos googlesql.Pos) value {
	v := value{typ: Type{Kind: schema.Struct}, pos: pos}
	members := make([]string, len(items))
	for i, it := range items {
		v.typ.Fields = append(v.typ.Fields, Field{it.name, settled(it.typ)})
		members[i] = fmt.Sprintf("_%d := %s", i, it.sql)
		v = v.from(it.value)
	}
	v.sql = "struct_pack(" + strings.Join(members, ", ") + ")"
	if len(items) == 0 {
		v.sql = "struct_pack(_ := TRUE)"
	}
	return v
}

// settled is what an untyped NULL becomes where nothing says what it is.
func settled(t Type) Type {
	if t.untyped() {
		t.Kind = schema.Int64
	}
	return t
}

// orderKeys compiles ORDER BY. A key that is a number names one of columns; nil where numbers are not allowed to.
func (c *compiler) orderKeys(order []googlesql.OrderItem, s *scope, columns []value) (string, error) {
	keys := make([]string, len(order))
	for i, o := range order {
		v, err := c.orderKey(o, s, columns)
		if err != nil {
			return "", err
		}
		if v.typ.holds(schema.JSON) || v.typ.holds(schema.Geography) || v.typ.Array || v.typ.is(schema.Struct) {
			return "", o.X.At().Errorf("ORDER BY does not support expressions of type %s", v.typ)
		}
		if err := neither(v, "ORDER BY clause"); err != nil {
			return "", err
		}
		keys[i] = v.sql + direction(o)
	}
	return strings.Join(keys, ", "), nil
}

func (c *compiler) orderKey(o googlesql.OrderItem, s *scope, columns []value) (value, error) {
	l, ok := o.X.(*googlesql.Literal)
	switch {
	case !ok || columns == nil:
		return c.expr(o.X, s)
	case l.Kind != googlesql.Integer:
		return value{}, l.Pos.Errorf("Cannot ORDER BY literal expressions")
	}
	i, ok := ordinal(l, len(columns))
	if !ok {
		return value{}, l.Pos.Errorf("ORDER BY column number item is out of range: %s", l.Text)
	}
	return columns[i], nil
}

// direction writes out GoogleSQL's defaults: NULL comes first in ascending order and last in descending order.
func direction(o googlesql.OrderItem) string {
	nulls := o.Nulls
	switch {
	case nulls == "" && o.Desc:
		nulls = "LAST"
	case nulls == "":
		nulls = "FIRST"
	}
	if o.Desc {
		return " DESC NULLS " + nulls
	}
	return " ASC NULLS " + nulls
}
