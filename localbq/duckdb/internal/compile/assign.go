package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// assigned is a value that a statement gives to a column, as the type of the column. Refused answers the fault of another type.
func (c *compiler) assigned(x googlesql.Expr, f *schema.Field, t Type, s *scope, refused func(value) error) (string, error) {
	if d, ok := x.(*googlesql.Default); ok {
		return c.standard(f, d.Pos)
	}
	v, err := c.expr(x, s)
	if err != nil {
		return "", err
	}
	w, ok := coerce(v, t)
	if !ok {
		return "", refused(v)
	}
	return cast(w.sql, t), nil
}

func cannotInsert(f *schema.Field) func(value) error {
	return func(v value) error {
		return v.pos.Errorf("Value has type %s which cannot be inserted into column %s, which has type %s", v.typ, f.Name, TypeOf(f))
	}
}

// standard is a column's default, or NULL.
func (c *compiler) standard(f *schema.Field, pos googlesql.Pos) (string, error) {
	t := TypeOf(f)
	if f.Default == "" {
		return cast("NULL", t), nil
	}
	x, err := googlesql.ParseExpression(f.Default)
	if err != nil {
		return "", pos.Errorf("Default of column %s: %v", f.Name, err)
	}
	var v value
	alone := c.alone
	c.alone = true
	err = c.within("a default value", func() (err error) {
		v, err = c.expr(x, &scope{})
		return err
	})
	c.alone = alone
	if err != nil {
		return "", err
	}
	w, ok := coerce(v, t)
	if !ok {
		return "", pos.Errorf("Default of column %s has type %s, which is not that of the column, %s", f.Name, v.typ, t)
	}
	return cast(w.sql, t), nil
}

// setting is what a SET list gives to a column, or to members of it.
type setting struct {
	sql     string // of the whole
	members map[int]*setting
}

// assignments are the values that columns of a table get by a SET list, by index. Names mean what they mean in s.
func (c *compiler) assignments(set []googlesql.Assignment, m *mutated, s *scope) (map[int]string, error) {
	root := &setting{members: map[int]*setting{}}
	fields := fieldsOf(m.Schema)
	for _, a := range set {
		if err := c.assign(a, root, m, s); err != nil {
			return nil, err
		}
	}
	out := map[int]string{}
	for i, given := range root.members {
		t := TypeOf(fields[i])
		out[i] = given.over(value{sql: m.scope.sources[0].columns[i].sql, typ: t, stored: true})
	}
	return out, nil
}

// assign adds one assignment to those there are.
func (c *compiler) assign(a googlesql.Assignment, at *setting, m *mutated, s *scope) error {
	path := columnPath(a.Path, m)
	fields := fieldsOf(m.Schema)
	text := joined(path)
	i := slices.IndexFunc(fields, func(f *schema.Field) bool { return strings.EqualFold(f.Name, path[0].Text) })
	if i < 0 {
		return path[0].Pos.Errorf("Column %s is not present in table %s", path[0].Text, m.ref.Dataset+"."+m.ref.Table)
	}
	f := fields[i]
	t := TypeOf(f)
	for k := 0; ; k++ {
		if at.sql != "" {
			return path[0].Pos.Errorf("Update item %s overlaps with %s", text, joined(path[:k]))
		}
		if at.members == nil {
			at.members = map[int]*setting{}
		}
		if at.members[i] == nil {
			at.members[i] = &setting{}
		}
		at = at.members[i]
		if k == len(path)-1 {
			break
		}
		if !t.is(schema.Struct) {
			return path[k+1].Pos.Errorf("Cannot access field %s on a value with type %s", path[k+1].Text, t)
		}
		if i = t.field(path[k+1].Text); i < 0 {
			return path[k+1].Pos.Errorf("Field name %s does not exist in %s", path[k+1].Text, t)
		}
		f, t = f.Fields[i], t.Fields[i].Type
	}
	switch {
	case at.sql != "" && len(path) == 1:
		return path[0].Pos.Errorf("Update item %s assigned more than once", f.Name)
	case at.sql != "":
		return path[0].Pos.Errorf("Update item %s assigned more than once", text)
	case at.members != nil:
		return path[0].Pos.Errorf("Update item %s overlaps with a member of it", text)
	}
	return c.within("UPDATE SET", func() (err error) {
		at.sql, err = c.assigned(a.Value, f, t, s, func(v value) error {
			return v.pos.Errorf("Value of type %s cannot be assigned to %s, which has type %s", v.typ, text, t)
		})
		return err
	})
}

// columnPath is the path of an assignment without the name of the table that it may begin with.
func columnPath(path []googlesql.Name, m *mutated) []googlesql.Name {
	own := m.scope.sources[0]
	if len(path) > 1 && strings.EqualFold(path[0].Text, own.alias) && len(own.named(path[1].Text)) > 0 {
		return path[1:]
	}
	return path
}

// over is the value that comes of it where v was before.
func (g *setting) over(v value) string {
	if g.sql != "" {
		return g.sql
	}
	members := make([]string, len(v.typ.Fields))
	for i := range members {
		member := v.member(i)
		sql := member.sql
		if given := g.members[i]; given != nil {
			sql = given.over(member)
		}
		members[i] = fmt.Sprintf("_%d := %s", i, sql)
	}
	// The inner CASE is NULL, or fails: that of a conjunction would be computed for every row.
	return fmt.Sprintf("CASE WHEN (CASE WHEN %s IS NULL THEN bq_error(%s) END) IS NULL THEN struct_pack(%s) END",
		v.sql, quote("Cannot set field of NULL "+v.typ.String()), strings.Join(members, ", "))
}
