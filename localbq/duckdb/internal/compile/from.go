package compile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// from compiles an item of a FROM clause and adds it to the scope, where later items and the rest of the SELECT see it.
func (c *compiler) from(f googlesql.From, s *scope) (string, error) {
	switch f := f.(type) {
	case *googlesql.Join:
		return c.join(f, s)
	case *googlesql.Derived:
		return c.derived(f, s)
	case *googlesql.Unnest:
		v, err := c.expr(f.X, s)
		if err != nil {
			return "", err
		}
		return c.unnest(v, f.Pos, f.Alias, f.WithOffset, f.OffsetAlias, s)
	default:
		return c.table(f.(*googlesql.Table), s)
	}
}

// add puts an item into the scope; two items of one name would be ambiguous.
func (s *scope) add(src *source, pos googlesql.Pos) error {
	if src.alias != "" && s.source(src.alias) != nil {
		return pos.Errorf("Duplicate table alias %s in the same FROM clause", src.alias)
	}
	s.sources = append(s.sources, src)
	return nil
}

func aliasOf(given *googlesql.Name, otherwise string) string {
	if given != nil {
		return given.Text
	}
	return otherwise
}

// renamed are a table's columns as columns of an item named sql.
func renamed(columns []column, sql string) []column {
	out := make([]column, len(columns))
	for i, col := range columns {
		out[i] = column{name: col.name, typ: col.typ, sql: fmt.Sprintf("%s.c%d", sql, i)}
	}
	return out
}

// sourceOf is an item over the rows of a query or a WITH table.
func sourceOf(columns []column, element bool, alias, sql string) *source {
	src := &source{alias: alias, columns: renamed(columns, sql)}
	if element {
		src.element = &src.columns[0]
		src.columns = elementColumns(*src.element)
	}
	return src
}

func (c *compiler) derived(d *googlesql.Derived, s *scope) (string, error) {
	r, err := c.query(d.Query, s.parent)
	if err != nil {
		return "", err
	}
	name := c.newName()
	return fmt.Sprintf("(%s) AS %s", r.sql, name), s.add(sourceOf(r.columns, r.element, aliasOf(d.Alias, ""), name), d.Pos)
}

// table compiles a path: a WITH table, an array of an earlier item, or a table of the catalog.
func (c *compiler) table(t *googlesql.Table, s *scope) (string, error) {
	if len(t.Parts) == 1 && t.AsOf == nil {
		if w := c.cte(t.Parts[0].Text); w != nil {
			name := c.newName()
			src := sourceOf(w.columns, w.element, aliasOf(t.Alias, t.Parts[0].Text), name)
			return fmt.Sprintf("%s AS %s", w.sql, name), s.add(src, t.Pos)
		}
	}
	if path := arrayPath(t, s); path != nil {
		v, err := c.expr(path, s)
		if err != nil {
			return "", err
		}
		alias := t.Alias
		if alias == nil {
			alias = &t.Parts[len(t.Parts)-1]
		}
		return c.unnest(v, t.Pos, alias, t.WithOffset, t.OffsetAlias, s)
	}
	if t.WithOffset {
		return "", t.Pos.Errorf("WITH OFFSET can only be used with array scans")
	}
	return c.stored(t, s)
}

func (c *compiler) cte(name string) *cte {
	for i := len(c.ctes) - 1; i >= 0; i-- {
		if strings.EqualFold(c.ctes[i].name, name) {
			return &c.ctes[i]
		}
	}
	return nil
}

// arrayPath is the path as an expression where it begins with an item that is in scope; nil for the name of a table.
func arrayPath(t *googlesql.Table, s *scope) *googlesql.Path {
	if len(t.Parts) < 2 || strings.Contains(t.Parts[0].Text, ".") {
		return nil
	}
	for at := s; at != nil; at = at.parent {
		if at.source(t.Parts[0].Text) != nil {
			return &googlesql.Path{Pos: t.Pos, Names: t.Parts}
		}
	}
	return nil
}

// unnest compiles the elements of an array as rows.
func (c *compiler) unnest(v value, pos googlesql.Pos, alias *googlesql.Name, offset bool, offsetAlias *googlesql.Name, s *scope) (string, error) {
	if !v.typ.Array {
		return "", pos.Errorf("Values referenced in UNNEST must be arrays. UNNEST contains expression of type %s", v.typ)
	}
	name := c.newName()
	element := column{typ: settled(v.typ.element()), sql: name + ".c0"}
	src := &source{alias: aliasOf(alias, ""), element: &element, columns: elementColumns(element)}
	if err := s.add(src, pos); err != nil {
		return "", err
	}
	list := "unnest(" + v.sql + ") AS c0"
	if offset {
		list += ", generate_subscripts(" + v.sql + ", 1) - 1 AS c1"
		o := column{name: aliasOf(offsetAlias, "offset"), typ: int64Type, sql: name + ".c1"}
		if err := s.add(&source{columns: []column{o}}, pos); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("LATERAL (SELECT %s) AS %s", list, name), nil
}

// stored compiles a table or view of the catalog.
func (c *compiler) stored(t *googlesql.Table, s *scope) (string, error) {
	if c.alone {
		return "", t.Pos.Errorf("Tables are not allowed in %s", c.clause)
	}
	ref, err := c.reference(t)
	if err != nil {
		return "", err
	}
	at, err := c.instant(t.AsOf)
	if err != nil {
		return "", err
	}
	opened, err := c.open(ref, at)
	if err != nil {
		return "", err
	}
	alias := aliasOf(t.Alias, strings.TrimPrefix(ref.Table, query.InformationSchema+"."))
	if opened.View != "" {
		return c.view(opened, alias, t, s)
	}
	name := c.newName()
	visible := fieldsOf(opened.Schema)
	fields := append(slices.Clone(visible), opened.Pseudo...)
	c.reads[name] = scanned{opened.id, fields}
	src := &source{alias: alias, columns: storedColumns(fields, len(visible), name)}
	if err := c.requireFilter(opened, src, t.Pos); err != nil {
		return "", err
	}
	return fmt.Sprintf("bq_scan(%d) AS %s", opened.id, name), s.add(src, t.Pos)
}

func fieldsOf(s *schema.Schema) []*schema.Field {
	if s == nil {
		return nil
	}
	return s.Fields
}

// reference reads a table's path: project.dataset.table, dataset.table, or table with the default dataset. One quoted name
// may hold several components.
func (c *compiler) reference(t *googlesql.Table) (query.Ref, error) {
	var parts []string
	for _, p := range t.Parts {
		parts = append(parts, strings.Split(p.Text, ".")...)
	}
	n := len(parts)
	if slices.Contains(parts, "") {
		return query.Ref{}, t.Pos.Errorf("Invalid table name: `%s`", strings.Join(parts, "."))
	}
	if named, err := informationSchema(t, parts); err != nil {
		return query.Ref{}, err
	} else if named != nil {
		if view := named[len(named)-1]; slices.Contains(query.RegionViews, strings.TrimPrefix(view, query.InformationSchema+".")) {
			return c.regional(named[:len(named)-1], view), nil
		}
		return c.complete(t, named)
	}
	if strings.HasSuffix(parts[n-1], "*") {
		return query.Ref{}, t.Pos.Unsupported("wildcard tables")
	}
	return c.complete(t, parts)
}

// informationSchema makes the table of a path that ends in INFORMATION_SCHEMA.view one component; nil where it does not.
func informationSchema(t *googlesql.Table, parts []string) ([]string, error) {
	for i, p := range parts {
		if !strings.EqualFold(p, query.InformationSchema) {
			continue
		}
		if i != len(parts)-2 || !slices.Contains(slices.Concat(query.InformationViews, query.RegionViews), strings.ToUpper(parts[i+1])) {
			return nil, t.Pos.Unsupported("%s", strings.ToUpper(strings.Join(parts[i:], ".")))
		}
		if t.AsOf != nil {
			return nil, t.Pos.Unsupported("FOR SYSTEM_TIME AS OF of %s", query.InformationSchema)
		}
		return append(slices.Clone(parts[:i]), query.InformationSchema+"."+strings.ToUpper(parts[i+1])), nil
	}
	return nil, nil
}

// regional is a view of a project in a region, behind [project.][region].
func (c *compiler) regional(before []string, view string) query.Ref {
	out := query.Ref{Project: c.env.Project, Table: view}
	if n := len(before); n > 0 {
		if _, ok := query.Region(before[n-1]); ok {
			out.Dataset, before = before[n-1], before[:n-1]
		}
	}
	if len(before) > 0 {
		out.Project = strings.Join(before, ".")
	}
	return out
}

// complete is the table that a path names, with what it leaves out from the environment.
func (c *compiler) complete(t *googlesql.Table, parts []string) (query.Ref, error) {
	n := len(parts)
	switch {
	case n >= 3:
		return query.Ref{Project: strings.Join(parts[:n-2], "."), Dataset: parts[n-2], Table: parts[n-1]}, nil
	case n == 2:
		return query.Ref{Project: c.env.Project, Dataset: parts[0], Table: parts[1]}, nil
	case c.env.DefaultDataset == "":
		return query.Ref{}, t.Pos.Errorf("Table \"%s\" must be qualified with a dataset (e.g. dataset.table)", parts[0])
	}
	project := c.env.DefaultProject
	if project == "" {
		project = c.env.Project
	}
	return query.Ref{Project: project, Dataset: c.env.DefaultDataset, Table: parts[0]}, nil
}

// instant evaluates FOR SYSTEM_TIME AS OF, whose expression may not depend on rows.
func (c *compiler) instant(x googlesql.Expr) (time.Time, error) {
	if x == nil {
		return time.Time{}, nil
	}
	var v value
	err := c.within("FOR SYSTEM_TIME AS OF", func() (err error) {
		v, err = c.expr(x, &scope{})
		return err
	})
	if err != nil {
		return time.Time{}, err
	}
	v, ok := coerce(v, timestamp)
	if !ok {
		return time.Time{}, v.pos.Errorf("FOR SYSTEM_TIME AS OF must be of type TIMESTAMP but was of type %s", v.typ)
	}
	return c.env.Instant("SELECT " + v.sql + " AS c0")
}

// open opens a table once for each instant.
func (c *compiler) open(ref query.Ref, at time.Time) (*table, error) {
	key := ref.String() + "@" + at.String()
	if t := c.tables[key]; t != nil {
		return t, nil
	}
	opened, err := c.env.Table(ref, at)
	if err != nil {
		return nil, err
	}
	t := &table{Table: opened}
	if opened.View == "" {
		t.id = c.env.Scan(opened)
		if !slices.Contains(c.refs, ref) {
			c.refs = append(c.refs, ref)
		}
	}
	c.tables[key] = t
	return t, nil
}

// maxViews bounds how deep views may refer to views (BigQuery documentation, "Quotas and limits", "Views").
const maxViews = 16

// view compiles a view's text in its place. Bare names in it belong to its own dataset, and it sees no parameters.
func (c *compiler) view(t *table, alias string, at *googlesql.Table, s *scope) (string, error) {
	if c.views >= maxViews {
		return "", at.Pos.Errorf("Too many nested views/persistent user-defined functions or possible circular reference of views, at %s", t.Ref)
	}
	tree, err := googlesql.Parse(t.View)
	if err != nil {
		return "", at.Pos.Errorf("View %s: %v", t.Ref, err)
	}
	env, ctes := c.env, c.ctes
	c.env.Project, c.env.DefaultProject, c.env.DefaultDataset, c.env.Parameters = t.Ref.Project, t.Ref.Project, t.Ref.Dataset, nil
	c.ctes = nil
	c.views++
	r, err := c.query(tree, nil)
	c.views--
	c.env, c.ctes = env, ctes
	if err != nil {
		return "", err
	}
	r = r.unfold(c)
	name := c.newName()
	return fmt.Sprintf("(%s) AS %s", r.sql, name), s.add(sourceOf(r.columns, false, alias, name), at.Pos)
}

// join compiles a join of two items.
func (c *compiler) join(j *googlesql.Join, s *scope) (string, error) {
	left, err := c.from(j.Left, s)
	if err != nil {
		return "", err
	}
	boundary, merged := len(s.sources), s.merged
	right, err := c.from(j.Right, s)
	if err != nil {
		return "", err
	}
	if _, nested := j.Right.(*googlesql.Join); nested {
		right = "(" + right + ")"
	}
	condition, err := c.joinCondition(j, s, boundary, merged)
	if err != nil {
		return "", err
	}
	kind := j.Kind
	switch {
	case condition == "" && (kind == "INNER" || kind == "CROSS"):
		kind = "CROSS"
	case condition == "":
		condition = " ON TRUE"
	}
	return fmt.Sprintf("%s %s JOIN %s%s", left, kind, right, condition), nil
}

func (c *compiler) joinCondition(j *googlesql.Join, s *scope, boundary int, merged []column) (string, error) {
	if j.Using != nil {
		return c.using(j, s, boundary, merged)
	}
	if j.On == nil {
		if j.Kind == "RIGHT" || j.Kind == "FULL" {
			return "", j.Pos.Errorf("Array scan is not allowed with %s JOIN", j.Kind)
		}
		if t, ok := j.Right.(*googlesql.Table); ok && j.Kind != "CROSS" && s.sources[boundary].element == nil {
			return "", t.Pos.Errorf("Syntax error: Expected keyword ON or keyword USING after the joined table")
		}
		return "", nil
	}
	var v value
	err := c.within("JOIN ON clause", func() (err error) {
		v, err = c.condition(j.On, s, "JOIN ON clause")
		return err
	})
	return " ON " + v.sql, err
}

// using compares the columns of both sides that have a name, and leaves one column of it.
func (c *compiler) using(j *googlesql.Join, s *scope, boundary int, merged []column) (string, error) {
	left := &scope{sources: s.sources[:boundary], merged: merged}
	right := &scope{sources: s.sources[boundary:], merged: s.merged[len(merged):]}
	var conditions []string
	var columns []column
	for _, name := range j.Using {
		l, okLeft, err := left.unqualified(name)
		if err != nil {
			return "", err
		}
		r, okRight, err := right.unqualified(name)
		if err != nil {
			return "", err
		}
		switch {
		case !okLeft:
			return "", name.Pos.Errorf("Column %s in USING clause not found on left side of join", name.Text)
		case !okRight:
			return "", name.Pos.Errorf("Column %s in USING clause not found on right side of join", name.Text)
		}
		v, err := c.compare("=", l.value, r.value, name.Pos)
		if err != nil {
			return "", err
		}
		conditions = append(conditions, v.sql)
		columns = append(columns, usingColumn(j.Kind, name.Text, l.value, r.value))
	}
	kept := slices.DeleteFunc(slices.Clone(s.merged), func(m column) bool {
		return slices.ContainsFunc(columns, func(c column) bool { return strings.EqualFold(c.name, m.name) })
	})
	s.merged = append(columns, kept...)
	return " ON (" + strings.Join(conditions, " AND ") + ")", nil
}

func usingColumn(kind, name string, l, r value) column {
	switch kind {
	case "RIGHT":
		return column{name: name, typ: r.typ, sql: r.sql}
	case "FULL":
		t, _ := supertype(l.typ, r.typ) // they have been compared
		return column{name: name, typ: t, sql: fmt.Sprintf("COALESCE(%s, %s)", l.sql, r.sql)}
	}
	return column{name: name, typ: l.typ, sql: l.sql}
}
