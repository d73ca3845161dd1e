package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// star spreads * or x.*, with EXCEPT and REPLACE.
func (s *selecting) star(i googlesql.SelectItem, sc *scope) ([]item, error) {
	items, err := s.spread(i, sc)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, i.Pos.Errorf("SELECT * would expand to zero columns")
	}
	for _, name := range i.Star.Except {
		before := len(items)
		items = slices.DeleteFunc(items, func(it item) bool { return strings.EqualFold(it.name, name.Text) })
		if len(items) == before {
			return nil, name.Pos.Errorf("Column %s in SELECT * EXCEPT list does not exist", name.Text)
		}
	}
	if len(items) == 0 {
		return nil, i.Pos.Errorf("SELECT * EXCEPT(...) does not leave any columns")
	}
	for _, r := range i.Star.Replace {
		at := slices.IndexFunc(items, func(it item) bool { return strings.EqualFold(it.name, r.Alias.Text) })
		if at < 0 {
			return nil, r.Alias.Pos.Errorf("Column %s in SELECT * REPLACE list does not exist", r.Alias.Text)
		}
		v, err := s.expr(r.X, sc)
		if err != nil {
			return nil, err
		}
		v.name = items[at].name
		items[at] = item{value: v}
	}
	return items, nil
}

func (s *selecting) spread(i googlesql.SelectItem, sc *scope) ([]item, error) {
	if i.X == nil {
		if len(sc.sources) == 0 {
			return nil, i.Pos.Errorf("SELECT * must have a FROM clause")
		}
		return sc.all(i.Pos)
	}
	if p, ok := i.X.(*googlesql.Path); ok && len(p.Names) == 1 {
		if _, isColumn, _ := sc.unqualified(p.Names[0]); !isColumn {
			if src := sc.source(p.Names[0].Text); src != nil {
				return src.items(i.Pos, sc, nil)
			}
		}
	}
	v, err := s.expr(i.X, sc)
	if err != nil {
		return nil, err
	}
	return members(v)
}

// members are the fields of a struct, each an item.
func members(v value) ([]item, error) {
	if !v.typ.is(schema.Struct) {
		return nil, v.pos.Errorf("Dot-star is not supported for type %s", v.typ)
	}
	out := make([]item, len(v.typ.Fields))
	for i, f := range v.typ.Fields {
		out[i] = item{value: v.member(i)}
		out[i].name = f.Name
	}
	return out, nil
}

// all are the columns of a FROM clause: those of USING first, then what each item has besides.
func (s *scope) all(pos googlesql.Pos) ([]item, error) {
	var out []item
	for _, m := range s.merged {
		out = append(out, item{value: s.column(m, pos)})
	}
	for _, src := range s.sources {
		items, err := src.items(pos, s, s.merged)
		if err != nil {
			return nil, err
		}
		out = append(out, items...)
	}
	return out, nil
}

// items are the columns of one item of a FROM clause, but for those named by hidden.
func (src *source) items(pos googlesql.Pos, s *scope, hidden []column) ([]item, error) {
	if src.element != nil && !src.element.typ.is(schema.Struct) {
		v := s.column(*src.element, pos)
		v.name = src.alias
		return []item{{value: v}}, nil
	}
	var out []item
	for _, c := range src.columns {
		if c.pseudo || slices.ContainsFunc(hidden, func(h column) bool { return strings.EqualFold(h.name, c.name) }) {
			continue
		}
		if err := usable(c, googlesql.Name{Text: c.name, Pos: pos}); err != nil {
			return nil, err
		}
		out = append(out, item{value: s.column(c, pos)})
	}
	return out, nil
}

// column is a column as a value at pos, which an aggregation has to group by.
func (s *scope) column(c column, pos googlesql.Pos) value {
	v := c.value(c.name)
	v.pos = pos
	if s.aggregating && !s.grouped[v.sql] {
		v.ungrouped = &googlesql.Path{Pos: pos, Names: []googlesql.Name{{Text: c.name, Pos: pos}}}
	}
	return v
}

// elementColumns are the members of a row that is one struct, as columns.
func elementColumns(e column) []column {
	if !e.typ.is(schema.Struct) {
		return nil
	}
	out := make([]column, len(e.typ.Fields))
	for i, f := range e.typ.Fields {
		out[i] = column{name: f.Name, typ: f.Type, sql: fmt.Sprintf("struct_extract(%s, '_%d')", e.sql, i)}
	}
	return out
}
