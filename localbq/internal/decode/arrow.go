package decode

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/arrowipc"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// CompileArrow matches a writer's Arrow schema with the columns of a table, as Compile does a descriptor: what Arrow
// type feeds what column is BigQuery's documentation, "Supported Apache Arrow data types", and where that is silent the
// table for protocol buffers by the kind most alike.
func CompileArrow(s *arrowipc.Schema, table string, t *schema.Schema) (*Plan, error) {
	c := arrowCompiler{compiler{table: table}}
	var columns []*schema.Field
	if t != nil {
		columns = t.Fields
	}
	if len(s.Fields) == 0 {
		return nil, &SchemaError{Message: "The Arrow schema has no fields"}
	}
	root, err := c.columns(s.Fields, columns, newVectors(columns), "")
	if err != nil {
		return nil, err
	}
	if err := c.verdict(); err != nil {
		return nil, err
	}
	return &Plan{schema: t.Arrow(), root: root.node, arrow: root, clean: true}, nil
}

type arrowCompiler struct{ compiler }

// arrowNode is the columns of a table, or the members of a STRUCT, and what of an Arrow batch feeds them.
type arrowNode struct {
	*node
	feeds []feed // by column
}

// feed appends value i of an Arrow column, which is not NULL, to a vector.
type feed struct {
	field int // where the Arrow column lies among its siblings; -1 for a column that nothing feeds
	put   func(c *arrowipc.Column, i int) error
	bulk  func(c *arrowipc.Column) bool // all values at once, if it can; may be nil
	done  bool                          // it could, for the batch at hand
}

// columns compiles fields for a list of columns and their vectors.
func (c *arrowCompiler) columns(fields []*arrowipc.Field, columns []*schema.Field, vectors []vector, parent string) (*arrowNode, error) {
	n := &arrowNode{node: &node{columns: make([]column, len(columns))}, feeds: make([]feed, len(columns))}
	position := make(map[string]int, len(columns))
	for i, f := range columns {
		n.node.columns[i] = column{name: f.Name, path: within(parent, f.Name), vector: vectors[i], required: f.Mode == schema.Required}
		n.node.columns[i].list, _ = vectors[i].(*list)
		n.feeds[i].field = -1
		position[strings.ToLower(f.Name)] = i
	}
	for at, f := range fields {
		i, ok := position[strings.ToLower(f.Name)]
		switch {
		case !ok && parent == "" && slices.Contains(changeColumns, strings.ToUpper(f.Name)):
			return nil, &SchemaError{Message: "Change data capture takes proto rows only: field " + f.Name}
		case !ok:
			c.extra = append(c.extra, within(parent, f.Name))
			continue
		case n.feeds[i].field >= 0:
			return nil, &SchemaError{Message: fmt.Sprintf("The input schema has more than one field for column %s of table %s", n.node.columns[i].path, c.table)}
		}
		put, err := c.feed(&n.node.columns[i], f, columns[i])
		if err != nil {
			return nil, err
		}
		n.feeds[i] = feed{field: at, put: put, bulk: bulk(f, columns[i], vectors[i])}
		n.node.columns[i].put = func(raw) error { return nil } // it is fed
	}
	return n, c.complete(n.node, columns, parent == "")
}

// feed compiles one field for its column.
func (c *arrowCompiler) feed(col *column, f *arrowipc.Field, target *schema.Field) (func(*arrowipc.Column, int) error, error) {
	repeated := target.Mode == schema.Repeated
	if repeated != (f.Kind == arrowipc.List) {
		return nil, c.mismatchArrow(col.path, f, target)
	}
	if !repeated {
		return c.value(f, target, col.path, col.vector)
	}
	element, err := c.value(f.Fields[0], target, col.path, col.list.element)
	if err != nil {
		return nil, err
	}
	return func(a *arrowipc.Column, i int) error {
		elements := a.Fields[0]
		for from, to := a.Range(i); from < to; from++ {
			if elements.Null(from) {
				return onField(col.path, "Field %s: an element of a REPEATED field cannot be NULL", col.path)
			}
			if err := element(elements, from); err != nil {
				return err
			}
			col.list.open++
		}
		return nil
	}, nil
}

// value compiles a field that is no list.
func (c *arrowCompiler) value(f *arrowipc.Field, target *schema.Field, path string, v vector) (func(*arrowipc.Column, int) error, error) {
	switch {
	case target.Type == schema.Struct && f.Kind == arrowipc.Struct && len(f.Fields) > 0:
		return c.group(f, target, path, v.(*group))
	case target.Type == schema.Range && f.Kind == arrowipc.Struct:
		if put := arrowRange(f, target, path, v.(*group)); put != nil {
			return put, nil
		}
	case target.Type != schema.Struct && target.Type != schema.Range:
		if put := arrowScalar(f, target, path, v); put != nil {
			return put, nil
		}
	}
	return nil, c.mismatchArrow(path, f, target)
}

func (c *arrowCompiler) mismatchArrow(path string, f *arrowipc.Field, target *schema.Field) error {
	typ := f.Type
	if f.Kind == arrowipc.List {
		typ = "list of " + f.Fields[0].Type
	}
	column := target.Type.Legacy()
	if target.Mode == schema.Repeated {
		column = target.Mode.String() + " " + column
	}
	return &SchemaError{Message: fmt.Sprintf("The Arrow field mismatched with BigQuery field at %s.%s, the Arrow field type %s, BigQuery field type %s",
		c.table, path, typ, column)}
}

// group compiles a struct.
func (c *arrowCompiler) group(f *arrowipc.Field, target *schema.Field, path string, v *group) (func(*arrowipc.Column, int) error, error) {
	n, err := c.columns(f.Fields, target.Fields, v.members, path)
	if err != nil {
		return nil, err
	}
	for i := range n.feeds {
		n.feeds[i].bulk = nil // a NULL struct's members are passed over
	}
	return func(a *arrowipc.Column, i int) error {
		v.valid()
		return n.row(a.Fields, i)
	}, nil
}

// row appends one row, or the members of one struct.
func (n *arrowNode) row(columns []*arrowipc.Column, i int) error {
	for k := range n.feeds {
		f := &n.feeds[k]
		if f.done {
			continue
		}
		if err := n.cell(&n.node.columns[k], f, columns, i); err != nil {
			return err
		}
	}
	return nil
}

func (n *arrowNode) cell(c *column, f *feed, columns []*arrowipc.Column, i int) error {
	null := f.field < 0 || columns[f.field].Null(i)
	switch {
	case c.list != nil && null && f.field >= 0:
		return onField(c.path, "Field %s: a REPEATED field cannot be NULL, send an empty list", c.path)
	case c.list != nil && null:
		return c.endList()
	case c.list != nil:
		if err := f.put(columns[f.field], i); err != nil {
			return err
		}
		return c.endList()
	case null:
		return c.missing()
	}
	return f.put(columns[f.field], i)
}

// DecodeArrow is Decode for a batch of the schema that CompileArrow was given.
func (p *Plan) DecodeArrow(b *arrowipc.Batch, q Request) []RowError {
	p.root.missing(q)
	limit := q.MaxErrors
	if limit == 0 {
		limit = 100
	}
	for k := range p.arrow.feeds {
		f := &p.arrow.feeds[k]
		f.done = f.bulk != nil && f.bulk(b.Columns[f.field])
	}
	var bad []RowError
	for i := range b.Rows {
		if err := p.arrow.row(b.Columns, i); err != nil {
			p.clean = false
			if bad = append(bad, RowError{Index: i, Message: err.Error()}); len(bad) == limit {
				break
			}
		}
	}
	p.rows += b.Rows
	return bad
}
