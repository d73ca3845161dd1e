package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// column is one column of an item of a FROM clause, or of a query's result.
type column struct {
	name   string // "" for one that cannot be named
	typ    Type
	sql    string
	stored bool // sql is the name of a column of a stored table, and members have names of their own
	pseudo bool // only its name finds it
}

// source is an item of a FROM clause.
type source struct {
	alias   string // "" for none
	columns []column
	// element is set where a row is one value, as of UNNEST: the alias then names the value, and the columns are its members.
	element *column
}

// scope is what names mean in one place of a statement.
type scope struct {
	parent  *scope // of the query around this one
	sources []*source
	// merged are the columns of JOIN USING, which take the place of those of both sides where no alias is given.
	merged []column
	// aliases are names of the SELECT list, which go before everything else where it can be referred to.
	aliases []aliased
	// grouped are the keys of an aggregation as SQL text; nil where there is none. A column is then only usable inside of
	// aggregates and of keys.
	grouped     map[string]bool
	aggregating bool
}

type aliased struct {
	name  string
	value value
}

// found is what a name resolved to: a value and how many components of the path it used.
type found struct {
	value value
	used  int
}

// resolve gives a path its meaning. The column it begins with belongs to this query or to one around it.
func (c *compiler) resolve(s *scope, p *googlesql.Path) (value, error) {
	for at := s; at != nil; at = at.parent {
		f, ok, err := at.find(p)
		if err != nil {
			return value{}, err
		}
		if !ok {
			continue
		}
		v := f.value
		v.pos = p.Pos
		if at == s && s.aggregating && !s.grouped[v.sql] && v.ungrouped == nil && !v.aggregate && !v.analytic {
			v.ungrouped = p
		}
		return c.fields(v, p.Names[f.used:], s)
	}
	return value{}, c.unrecognized(s, p)
}

// fields follows the rest of a path into structs and JSON.
func (c *compiler) fields(v value, names []googlesql.Name, s *scope) (value, error) {
	for _, n := range names {
		var err error
		if v, err = field(v, n); err != nil {
			return value{}, err
		}
		if s.grouped[v.sql] {
			v.ungrouped = nil
		}
	}
	return v, nil
}

// field is v.name.
func field(v value, name googlesql.Name) (value, error) {
	switch {
	case v.typ.is(schema.JSON):
		out := v.jsonStep(name.Text)
		out.name = name.Text
		return out, nil
	case v.typ.Array:
		return value{}, name.Pos.Errorf("Cannot access field %s on a value with type %s", name.Text, v.typ)
	case !v.typ.is(schema.Struct):
		return value{}, name.Pos.Errorf("Cannot access field %s on a value with type %s", name.Text, v.typ)
	}
	i := v.typ.field(name.Text)
	if i < 0 {
		return value{}, name.Pos.Errorf("Field name %s does not exist in %s", name.Text, v.typ)
	}
	out := v.member(i)
	out.name = name.Text
	return out, nil
}

// member is the i-th member of a struct.
func (v value) member(i int) value {
	if v.stored {
		out := expr(v.pos, v.typ.Fields[i].Type, []value{v}, "%s_%d", v.sql, i)
		out.stored = true
		return out
	}
	return expr(v.pos, v.typ.Fields[i].Type, []value{v}, "struct_extract(%s, '_%d')", v.sql, i)
}

// find looks a path up in this scope alone.
func (s *scope) find(p *googlesql.Path) (found, bool, error) {
	first := p.Names[0].Text
	for _, a := range s.aliases {
		if strings.EqualFold(a.name, first) {
			v := a.value
			v.name = first
			return found{v, 1}, true, nil
		}
	}
	if len(p.Names) > 1 {
		if f, ok, err := s.qualified(p); ok || err != nil {
			return f, ok, err
		}
	}
	if f, ok, err := s.unqualified(p.Names[0]); ok || err != nil {
		return f, ok, err
	}
	if src := s.source(first); src != nil {
		v, err := src.row(p.Names[0].Pos)
		v.name = first
		return found{v, 1}, err == nil, err
	}
	return found{}, false, nil
}

// qualified finds alias.column, and alias.member of a row that is one value.
func (s *scope) qualified(p *googlesql.Path) (found, bool, error) {
	src := s.source(p.Names[0].Text)
	if src == nil {
		return found{}, false, nil
	}
	if src.element != nil {
		return found{src.element.value(p.Names[0].Text), 1}, true, nil
	}
	matches := src.named(p.Names[1].Text)
	switch len(matches) {
	case 0:
		if _, ok, _ := s.unqualified(p.Names[0]); ok {
			return found{}, false, nil // a column of the same name as the alias
		}
		return found{}, false, p.Names[1].Pos.Errorf("Name %s not found inside %s", p.Names[1].Text, p.Names[0].Text)
	case 1:
		v := matches[0].value(p.Names[1].Text)
		return found{v, 2}, true, usable(matches[0], p.Names[1])
	}
	return found{}, false, p.Names[1].Pos.Errorf("Column name %s is ambiguous", p.Names[1].Text)
}

// unqualified finds a column by its name alone.
func (s *scope) unqualified(name googlesql.Name) (found, bool, error) {
	for _, m := range s.merged {
		if strings.EqualFold(m.name, name.Text) {
			return found{m.value(name.Text), 1}, true, nil
		}
	}
	var matches []column
	for _, src := range s.sources {
		matches = append(matches, src.named(name.Text)...)
	}
	switch len(matches) {
	case 0:
		return found{}, false, nil
	case 1:
		return found{matches[0].value(name.Text), 1}, true, usable(matches[0], name)
	}
	return found{}, false, name.Pos.Errorf("Column name %s is ambiguous", name.Text)
}

// usable refuses columns that cannot be computed with.
func usable(c column, name googlesql.Name) error {
	if c.typ.Picos {
		return name.Pos.Unsupported("TIMESTAMP columns of picoseconds in queries: %s", name.Text)
	}
	return nil
}

func (c column) value(name string) value {
	return value{sql: c.sql, typ: c.typ, name: name, stored: c.stored}
}

func (s *scope) source(alias string) *source {
	for _, src := range s.sources {
		if src.alias != "" && strings.EqualFold(src.alias, alias) {
			return src
		}
	}
	return nil
}

func (src *source) named(name string) []column {
	var out []column
	for _, c := range src.columns {
		if c.name != "" && strings.EqualFold(c.name, name) {
			out = append(out, c)
		}
	}
	return out
}

// row is the whole row as one value.
func (src *source) row(pos googlesql.Pos) (value, error) {
	if src.element != nil {
		return value{sql: src.element.sql, typ: src.element.typ, pos: pos}, nil
	}
	v := value{typ: Type{Kind: schema.Struct}, pos: pos}
	visible := slices.DeleteFunc(slices.Clone(src.columns), func(c column) bool { return c.pseudo })
	members := make([]string, len(visible))
	for i, c := range visible {
		if err := usable(c, googlesql.Name{Text: c.name, Pos: pos}); err != nil {
			return value{}, err
		}
		v.typ.Fields = append(v.typ.Fields, Field{c.name, c.typ})
		members[i] = fmt.Sprintf("_%d := %s", i, c.sql)
	}
	v.sql = "struct_pack(" + strings.Join(members, ", ") + ")"
	return v, nil
}

// unrecognized is the error for a name that means nothing, with the nearest one that would.
func (c *compiler) unrecognized(s *scope, p *googlesql.Path) error {
	texts := make([]string, len(p.Names))
	for i, n := range p.Names {
		texts[i] = n.Text
	}
	near := ""
	best := 3 // typing errors
	for at := s; at != nil; at = at.parent {
		for _, src := range at.sources {
			for _, col := range src.columns {
				if d := distance(strings.ToLower(col.name), strings.ToLower(texts[0])); col.name != "" && d < best && d < len(texts[0]) {
					near, best = col.name, d
				}
			}
		}
	}
	if near != "" {
		return p.Pos.Errorf("Unrecognized name: %s; Did you mean %s?", strings.Join(texts, "."), near)
	}
	return p.Pos.Errorf("Unrecognized name: %s", strings.Join(texts, "."))
}

// distance is the number of insertions, deletions and replacements between two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
