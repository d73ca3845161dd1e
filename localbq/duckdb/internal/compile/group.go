package compile

import (
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// groupBy compiles the keys. A key that is a number names an item of the list; so does a key that is an item's alias, which
// goes before a column of that name.
func (s *selecting) groupBy() error {
	g := s.tree.GroupBy
	if g == nil {
		return nil
	}
	if g.All {
		return s.groupByAll()
	}
	var parts []string
	err := s.within("GROUP BY", func() error {
		for _, k := range g.Keys {
			part, err := s.groupKey(k)
			if err != nil {
				return err
			}
			parts = append(parts, part)
		}
		return nil
	})
	s.group = " GROUP BY " + strings.Join(parts, ", ")
	return err
}

func (s *selecting) groupByAll() error {
	for _, it := range s.items {
		if !it.aggregate && !it.analytic {
			if err := groupable(it.value); err != nil {
				return err
			}
			s.keys = append(s.keys, it.sql)
		}
	}
	if s.keys != nil {
		s.group = " GROUP BY " + strings.Join(s.keys, ", ")
	}
	return nil
}

func (s *selecting) groupKey(k googlesql.GroupKey) (string, error) {
	if k.Kind == "" {
		v, err := s.key(k.X)
		return v.sql, err
	}
	sets := make([]string, len(k.Sets))
	for i, set := range k.Sets {
		keys := make([]string, len(set))
		for j, x := range set {
			v, err := s.key(x)
			if err != nil {
				return "", err
			}
			keys[j] = v.sql
		}
		sets[i] = "(" + strings.Join(keys, ", ") + ")"
	}
	return k.Kind + " (" + strings.Join(sets, ", ") + ")", nil
}

func (s *selecting) key(x googlesql.Expr) (value, error) {
	v, err := s.keyValue(x)
	if err != nil {
		return v, err
	}
	if v.aggregate || v.analytic {
		return v, x.At().Errorf("Aggregate and analytic functions are not allowed in GROUP BY")
	}
	s.keys = append(s.keys, v.sql)
	return v, groupable(v)
}

func (s *selecting) keyValue(x googlesql.Expr) (value, error) {
	switch x := x.(type) {
	case *googlesql.Literal:
		if x.Kind == googlesql.Integer {
			i, ok := ordinal(x, len(s.items))
			if !ok {
				return value{}, x.Pos.Errorf("GROUP BY column number SELECT list index is out of range: %s", x.Text)
			}
			return s.items[i].value, nil
		}
		return value{}, x.Pos.Errorf("Cannot GROUP BY literal values")
	case *googlesql.Path:
		if len(x.Names) == 1 {
			for _, it := range s.items {
				if it.alias && strings.EqualFold(it.name, x.Names[0].Text) {
					return it.value, nil
				}
			}
		}
	}
	return s.expr(x, s.scope)
}

// ordinal reads the number of an item, from 1, as an index from 0.
func ordinal(l *googlesql.Literal, n int) (int, bool) {
	i, err := strconv.Atoi(l.Text)
	return i - 1, err == nil && i >= 1 && i <= n
}

func groupable(v value) error {
	for _, k := range []schema.Type{schema.JSON, schema.Geography} {
		if v.typ.holds(k) {
			return v.pos.Errorf("Grouping by expressions of type %s is not allowed", v.typ)
		}
	}
	return nil
}
