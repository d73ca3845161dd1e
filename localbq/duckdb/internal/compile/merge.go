package compile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// merging is a MERGE that is compiled. Target and source are joined once; of each pair the first clause that holds is picked,
// and a second SELECT around the join computes what that clause makes of the row. It reads the columns of both as members of
// one struct each, named as the items of the FROM clause are, so that every expression reads the same inside and outside.
type merging struct {
	*compiler
	tree   *googlesql.Merge
	target *mutated
	// both, own and source are what names mean with both rows, and with one of them.
	both, own, source *scope
	rows              string // the item of the source
	present           string // a column that is not NULL where there is a row of the source
	conditions        []string
}

// merge compiles MERGE to the ids of the rows that go, what is done about each, and the rows that come.
func (c *compiler) merge(tree *googlesql.Merge) (*Plan, error) {
	target, err := c.mutated(tree.Table, tree.Alias, tree.Pos)
	if err != nil {
		return nil, err
	}
	m := &merging{compiler: c, tree: tree, target: target, own: target.scope, source: &scope{}}
	if m.rows, err = c.from(tree.Source, m.source); err != nil {
		return nil, err
	}
	m.both = &scope{sources: m.own.sources}
	for _, src := range m.source.sources {
		if err := m.both.add(src, tree.Source.At()); err != nil {
			return nil, err
		}
	}
	sql, err := m.sql()
	if err != nil {
		return nil, err
	}
	columns := []column{{name: query.RowID, typ: int64Type}, {name: query.Action, typ: int64Type}}
	columns = append(columns, columnsOf(fieldsOf(target.Schema))...)
	return c.changing(result{sql: sql, columns: columns}, "MERGE", target.ref), nil
}

// What is done about a row, as query.Action says it.
var mergeActions = map[string]int{"DELETE": query.Deletes, "UPDATE": query.Updates, "INSERT": query.Inserts}

func (m *merging) sql() (string, error) {
	on, err := m.condition(m.tree.On, m.both, "MERGE ON clause")
	if err != nil {
		return "", err
	}
	mark := m.newName()
	m.present = mark + ".c0"
	var pick, actions strings.Builder
	values := make([]strings.Builder, len(fieldsOf(m.target.Schema)))
	for i, w := range m.tree.Whens {
		guard, row, err := m.when(w)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&pick, " WHEN %s THEN %d", guard, i)
		fmt.Fprintf(&actions, " WHEN %d THEN %d", i, mergeActions[w.Action])
		for k, sql := range row {
			fmt.Fprintf(&values[k], " WHEN %d THEN %s", i, sql)
		}
	}
	if err := m.filteredBy(strings.Join(m.conditions, " ")); err != nil {
		return "", err
	}
	row := m.newName()
	items := []string{
		fmt.Sprintf("CASE WHEN %s.picked IN (%s) THEN NULL ELSE %s END AS c0", row, m.inserting(), m.target.id),
		fmt.Sprintf("CAST(CASE %s.picked%s END AS BIGINT) AS c1", row, actions.String()),
	}
	for k, own := range m.own.sources[0].columns[:len(values)] {
		sql := own.sql
		if given := values[k].String(); given != "" {
			sql = fmt.Sprintf("CASE %s.picked%s ELSE %s END", row, given, sql)
		}
		items = append(items, fmt.Sprintf("%s AS c%d", sql, k+2))
	}
	inner := fmt.Sprintf("SELECT %s, CASE%s END AS picked FROM %s %s JOIN (%s CROSS JOIN (SELECT TRUE AS c0) AS %s) ON %s",
		strings.Join(m.names(), ", "), pick.String(), m.target.sql, m.kind(), m.rows, mark, on)
	return fmt.Sprintf("SELECT %s FROM (%s) AS %s WHERE %s.picked IS NOT NULL ORDER BY c1", strings.Join(items, ", "), inner, row, row), nil
}

// condition compiles a condition of the statement's own.
func (m *merging) condition(x googlesql.Expr, s *scope, clause string) (string, error) {
	var v value
	err := m.within(clause, func() (err error) {
		v, err = m.compiler.condition(x, s, clause)
		return err
	})
	m.conditions = append(m.conditions, v.sql)
	return v.sql, err
}

// when compiles a clause: when it holds, and what columns of the row that it makes are.
func (m *merging) when(w googlesql.MergeClause) (guard string, row map[int]string, err error) {
	s := m.both
	guard = fmt.Sprintf("%s IS NOT NULL AND %s IS NOT NULL", m.target.id, m.present)
	switch w.Kind {
	case googlesql.NotByTarget:
		s, guard = m.source, m.target.id+" IS NULL"
	case googlesql.NotBySource:
		s, guard = m.own, m.present+" IS NULL"
	}
	if w.And != nil {
		and, err := m.condition(w.And, s, "WHEN clause")
		if err != nil {
			return "", nil, err
		}
		// Conditions of other rows may fail: the rest of a conjunction is computed for all of them.
		guard = fmt.Sprintf("CASE WHEN %s THEN %s ELSE FALSE END", guard, and)
	}
	switch w.Action {
	case "UPDATE":
		row, err = m.assignments(w.Set, m.target, s)
	case "INSERT":
		row, err = m.insertion(w)
	}
	return guard, row, err
}

// insertion compiles the row of an INSERT, whose columns that are not given take their defaults.
func (m *merging) insertion(w googlesql.MergeClause) (map[int]string, error) {
	fields, err := insertColumns(&googlesql.Insert{Table: m.tree.Table, Columns: w.Columns}, m.target.Schema)
	if err != nil {
		return nil, err
	}
	given := map[*schema.Field]string{}
	if w.Values == nil {
		err = m.insertRow(w, fields, given)
	} else {
		err = m.insertValues(w, fields, given)
	}
	if err != nil {
		return nil, err
	}
	row := map[int]string{}
	for i, f := range fieldsOf(m.target.Schema) {
		sql, ok := given[f]
		if !ok {
			if sql, err = m.standard(f, w.Pos); err != nil {
				return nil, err
			}
		}
		row[i] = sql
	}
	return row, nil
}

func (m *merging) insertValues(w googlesql.MergeClause, fields []*schema.Field, given map[*schema.Field]string) error {
	if len(w.Values) != len(fields) {
		return wrongCount(w.Values[0].At(), len(w.Values), len(fields))
	}
	return m.within("VALUES", func() (err error) {
		for i, x := range w.Values {
			if given[fields[i]], err = m.assigned(x, fields[i], TypeOf(fields[i]), m.source, cannotInsert(fields[i])); err != nil {
				return err
			}
		}
		return nil
	})
}

// insertRow is INSERT ROW: the columns of the source in their order.
func (m *merging) insertRow(w googlesql.MergeClause, fields []*schema.Field, given map[*schema.Field]string) error {
	items, err := m.source.all(w.Pos)
	if err != nil {
		return err
	}
	if len(items) != len(fields) {
		return wrongCount(w.Pos, len(items), len(fields))
	}
	for i, f := range fields {
		t := TypeOf(f)
		v, ok := coerce(items[i].value, t)
		if !ok {
			items[i].pos = w.Pos
			return cannotInsert(f)(items[i].value)
		}
		given[f] = cast(v.sql, t)
	}
	return nil
}

func wrongCount(pos googlesql.Pos, has, want int) error {
	return pos.Errorf("Inserted row has wrong column count; Has %d, expected %d", has, want)
}

// inserting are the numbers of the clauses that insert.
func (m *merging) inserting() string {
	numbers := []string{"-1"}
	for i, w := range m.tree.Whens {
		if w.Action == "INSERT" {
			numbers = append(numbers, fmt.Sprint(i))
		}
	}
	return strings.Join(numbers, ", ")
}

// kind is the join that has the rows that clauses are about, and no others.
func (m *merging) kind() string {
	var target, source bool // rows of either alone
	for _, w := range m.tree.Whens {
		target = target || w.Kind == googlesql.NotBySource
		source = source || w.Kind == googlesql.NotByTarget
	}
	switch {
	case target && source:
		return "FULL"
	case target:
		return "LEFT"
	case source:
		return "RIGHT"
	}
	return "INNER"
}

var itemName = regexp.MustCompile(`\bt\d+\b`)

// names are the items of the join that have columns.
func (m *merging) names() []string {
	var out []string
	for _, src := range m.both.sources {
		columns := src.columns
		if src.element != nil {
			columns = []column{*src.element}
		}
		if len(columns) > 0 {
			if name := itemName.FindString(columns[0].sql); name != "" && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}
