// Package projection picks columns, and members of structs, out of a table: what a read session, tabledata.list and
// tables.get call selected fields.
package projection

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// Projection is a choice of columns. Safe for concurrent use.
type Projection struct {
	// Schema is what is chosen, in the table's order and spelling.
	Schema *schema.Schema
	nodes  []node // nil for all columns as they are
	arrow  *arrow.Schema
}

// node is one chosen field.
type node struct {
	index   int    // among its siblings
	members []node // the chosen members of a struct; nil for all of it
}

// Of chooses by dotted paths, without regard to case; none at all chooses everything. Naming a struct takes all of it.
// The second answer is the paths that lead nowhere, as they were given.
func Of(s *schema.Schema, paths []string) (*Projection, []string) {
	if s == nil {
		s = &schema.Schema{}
	}
	tree := &choice{}
	var unknown []string
	for _, path := range paths {
		if !tree.add(s.Fields, strings.Split(path, ".")) {
			unknown = append(unknown, path)
		}
	}
	p := &Projection{Schema: s, arrow: s.Arrow()}
	if len(paths) > 0 {
		fields, nodes := tree.pick(s.Fields)
		p.Schema, p.nodes = &schema.Schema{Fields: fields}, nodes
		p.arrow = p.Schema.Arrow()
	}
	return p, unknown
}

// choice is what has been named of a list of fields.
type choice struct {
	whole   bool
	members map[int]*choice // by index
}

func (c *choice) add(fields []*schema.Field, path []string) bool {
	if len(path) == 0 {
		c.whole = true
		return true
	}
	for i, f := range fields {
		if !strings.EqualFold(f.Name, strings.TrimSpace(path[0])) {
			continue
		}
		if c.members == nil {
			c.members = map[int]*choice{}
		}
		if c.members[i] == nil {
			c.members[i] = &choice{}
		}
		return c.members[i].add(f.Fields, path[1:])
	}
	return false
}

// pick is the chosen part of a list of fields.
func (c *choice) pick(fields []*schema.Field) ([]*schema.Field, []node) {
	var picked []*schema.Field
	var nodes []node
	for i, f := range fields {
		m := c.members[i]
		switch {
		case m == nil:
			continue
		case m.whole:
			picked, nodes = append(picked, f), append(nodes, node{index: i})
		default:
			members, below := m.pick(f.Fields)
			if len(members) == 0 {
				continue // a path that leads nowhere below a struct that exists
			}
			part := *f
			part.Fields = members
			picked, nodes = append(picked, &part), append(nodes, node{i, below})
		}
	}
	return picked, nodes
}

// Apply is the chosen part of a batch of the table the projection was made for. It shares the batch's memory.
func (p *Projection) Apply(b arrow.RecordBatch) arrow.RecordBatch {
	if p.nodes == nil && len(p.Schema.Fields) == int(b.NumCols()) {
		return b
	}
	columns := make([]arrow.Array, len(p.nodes))
	for i, n := range p.nodes {
		columns[i] = b.Column(n.index)
		if n.members != nil {
			columns[i] = array.MakeFromData(n.apply(columns[i].Data(), p.arrow.Field(i).Type))
		}
	}
	return array.NewRecordBatch(p.arrow, columns, b.NumRows())
}

// apply is the chosen part of a struct, or of an array of structs.
func (n node) apply(d arrow.ArrayData, target arrow.DataType) arrow.ArrayData {
	if n.members == nil {
		return d
	}
	if list, ok := target.(*arrow.ListType); ok {
		child := n.apply(d.Children()[0], list.Elem())
		return array.NewData(target, d.Len(), d.Buffers(), []arrow.ArrayData{child}, d.NullN(), d.Offset())
	}
	children := make([]arrow.ArrayData, len(n.members))
	for i, m := range n.members {
		children[i] = m.apply(d.Children()[m.index], target.(*arrow.StructType).Field(i).Type)
	}
	return array.NewData(target, d.Len(), d.Buffers(), children, d.NullN(), d.Offset())
}
