package parquetfile

import (
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// node is a column of the file, or a group of them.
type node struct {
	name     string
	path     string
	written  string // the physical type as messages name it
	target   schema.Type
	mode     schema.Mode
	def, rep int // the levels from which there is a value, and at which it is repeated
	first    int // the first leaf's index, and how many there are
	count    int
	members  []*node // of a group
	list     *node   // the repeated part of a list that is read as one
	leaf     *leaf
	emptied  bool // a list that is read as none
}

// leaf is what the values of a column are.
type leaf struct {
	kind    parquet.Kind
	scale   int
	decimal bool
	unit    int64 // of a time: how many make a microsecond, or minus how many microseconds it is
	text    bool
}

type compiler struct {
	Options
	leaves int
}

// group compiles a group. def and rep are the levels of what is around it.
func (c *compiler) group(p parquet.Node, path string, def, rep int) (*node, error) {
	out := &node{path: path, written: "group", target: schema.Struct, first: c.leaves}
	for _, f := range p.Fields() {
		m, err := c.field(f, path, def, rep)
		if err != nil {
			return nil, err
		}
		out.members = append(out.members, m)
	}
	out.count = c.leaves - out.first
	if out.count == 0 {
		return nil, fmt.Errorf("Parquet group '%s' has no columns", path)
	}
	return out, nil
}

func (c *compiler) field(f parquet.Field, parent string, def, rep int) (*node, error) {
	path := f.Name()
	if parent != "" {
		path = parent + "." + path
	}
	mode := schema.Required
	switch {
	case f.Repeated():
		mode = schema.Repeated
		def, rep = def+1, rep+1
	case f.Optional():
		mode = schema.Nullable
		def++
	}
	var out *node
	var err error
	switch {
	case f.Leaf():
		out, err = c.column(f, path)
	case c.ListInference && mode != schema.Repeated && isList(f):
		return c.listed(f, path, mode, def, rep)
	default:
		out, err = c.group(f, path, def, rep)
	}
	if err != nil {
		return nil, err
	}
	out.name, out.path, out.mode, out.def, out.rep = f.Name(), path, mode, def, rep
	return out, nil
}

func isList(f parquet.Node) bool {
	t := f.Type().LogicalType()
	if t == nil {
		return false
	}
	_, list := t.Value.(*format.ListType)
	inner := f.Fields()
	return list && len(inner) == 1 && inner[0].Repeated()
}

// listed compiles a list: a group around one repeated field, which holds the elements, mostly in a field of their own
// (parquet-format, LogicalTypes.md, "Lists").
func (c *compiler) listed(f parquet.Field, path string, mode schema.Mode, def, rep int) (*node, error) {
	out := &node{name: f.Name(), path: path, mode: mode, def: def, rep: rep, written: "group", target: schema.Struct, first: c.leaves}
	inner, err := c.field(f.Fields()[0], path, def, rep)
	out.list, out.count = inner, c.leaves-out.first
	return out, err
}

// element is what a list's elements are: nil where they are what the repeated field is.
func (n *node) element() *node {
	if r := n.list; r.leaf == nil && len(r.members) == 1 && r.name != n.name+"_tuple" && r.name != "array" {
		return r.members[0]
	}
	return nil
}

func (c *compiler) column(f parquet.Field, path string) (*node, error) {
	t := f.Type()
	out := &node{written: t.Kind().String(), first: c.leaves, count: 1, leaf: &leaf{kind: t.Kind()}}
	c.leaves++
	switch t.Kind() {
	case parquet.Boolean:
		out.target = schema.Bool
	case parquet.Int32, parquet.Int64:
		out.target = schema.Int64
	case parquet.Float, parquet.Double:
		out.target = schema.Float64
	case parquet.Int96:
		out.target = schema.Timestamp
	default:
		out.target = schema.Bytes
	}
	if l := t.LogicalType(); l != nil {
		return out, c.annotated(out, l.Value, path)
	}
	return out, nil
}

// annotated gives a column the type of its annotation (BigQuery documentation, "Loading Parquet data", "Type conversions"). A
// column of JSON is BYTES (measured by another connector against the service, 2026-08).
func (c *compiler) annotated(n *node, a format.LogicalTypeValue, path string) error {
	switch a := a.(type) {
	case *format.StringType:
		n.target, n.leaf.text = schema.String, true
	case *format.EnumType:
		if c.EnumAsString {
			n.target, n.leaf.text = schema.String, true
		}
	case *format.DateType:
		n.target = schema.Date
	case *format.TimeType:
		n.target, n.leaf.unit = schema.Time, unit(a.Unit.String())
	case *format.TimestampType:
		n.target, n.leaf.unit = schema.DateTime, unit(a.Unit.String())
		if a.IsAdjustedToUTC {
			n.target = schema.Timestamp
		}
	case *format.DecimalType:
		t, ok := c.Target(int(a.Precision), int(a.Scale))
		if !ok {
			return fmt.Errorf("field %s: decimal(%d, %d) fits none of the types in decimalTargetTypes", path, a.Precision, a.Scale)
		}
		n.target, n.leaf.decimal, n.leaf.scale = t, true, int(a.Scale)
	}
	return nil
}

func unit(name string) int64 {
	switch {
	case strings.HasPrefix(name, "MILLI"):
		return -1000
	case strings.HasPrefix(name, "NANO"):
		return 1000
	}
	return 1
}

func (n *node) fields() []*schema.Field {
	var out []*schema.Field
	for _, m := range n.members {
		out = append(out, m.field())
	}
	return out
}

func (n *node) field() *schema.Field {
	if n.list != nil {
		inner := n.list
		if e := n.element(); e != nil {
			inner = e
		}
		f := inner.field()
		f.Name, f.Mode = n.name, schema.Repeated
		return f
	}
	f := &schema.Field{Name: n.name, Type: n.target, Mode: n.mode}
	if n.leaf == nil {
		f.Fields = n.fields()
	}
	return f
}

func (n *node) checkMembers(columns []*schema.Field) error {
	for _, m := range n.members {
		for _, f := range columns {
			if strings.EqualFold(f.Name, m.name) {
				if err := m.check(f); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (n *node) check(f *schema.Field) error {
	inner := n
	repeated := n.mode == schema.Repeated
	if n.list != nil {
		repeated = true
		if inner = n.element(); inner == nil {
			inner = n.list
		}
	}
	n.emptied = f.Mode == schema.Repeated && !repeated && n.leaf == nil && len(n.members) == 1 && n.members[0].mode == schema.Repeated
	switch {
	case n.emptied:
		// A list that is not read as one leaves its column empty without an error (measured by another connector against the
		// service, 2026-08).
		return nil
	case repeated != (f.Mode == schema.Repeated), !inner.feeds(f.Type):
		return fmt.Errorf("Parquet column '%s' has type %s which does not match the target cpp_type %s.", n.path, inner.written, f.Type)
	case f.Type == schema.Struct:
		return inner.checkMembers(f.Fields)
	}
	return nil
}

func (n *node) feeds(t schema.Type) bool {
	if n.target == t {
		return true
	}
	switch n.target {
	case schema.String:
		return t == schema.Geography || n.leaf.decimal && (t == schema.Numeric || t == schema.BigNumeric)
	case schema.Bytes:
		return t == schema.String && n.leaf.kind == parquet.ByteArray
	case schema.Int64:
		return t == schema.Float64 || t == schema.Numeric || t == schema.BigNumeric
	case schema.Numeric, schema.BigNumeric:
		return t == schema.Numeric || t == schema.BigNumeric
	}
	return false
}
