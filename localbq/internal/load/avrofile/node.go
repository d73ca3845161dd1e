package avrofile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/avro"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// node is a type of the file.
type node struct {
	kind     string // record, array, map, union (of several types), and the primitive, enum and fixed types
	written  string // the type as messages name it
	logical  string // where it counts
	scale    int
	target   schema.Type // of a scalar
	nullable bool        // it was a union with null
	tag      string      // of the one type beside null, "" where it is no union
	name     string
	members  []member // of a record or a union
	element  *node    // of an array, or the values of a map
	docs     string
}

type member struct {
	name string
	tag  string // of a union's type
	node *node
}

// compile reads a type. above holds the names of the records around it.
func compile(n *avro.SchemaNode, o Options, path string, above []string) (*node, error) {
	switch n.Type {
	case "union":
		return union(n, o, path, above)
	case "record", "error":
		full := fullName(n)
		if slices.Contains(above, full) {
			return nil, fmt.Errorf("field %s: recursive types are not supported: %s", path, full)
		}
		out := &node{kind: "record", written: "record", name: n.Name, target: schema.Struct}
		for i := range n.Fields {
			f := &n.Fields[i]
			m, err := compile(&f.Type, o, dotted(path, f.Name), append(above[:len(above):len(above)], full))
			if err != nil {
				return nil, err
			}
			m.docs = f.Doc
			out.members = append(out.members, member{name: f.Name, node: m})
		}
		return out, nil
	case "array":
		element, err := compile(n.Items, o, path, above)
		if err == nil && (element.kind == "array" || element.kind == "map") {
			err = fmt.Errorf("field %s: an array of arrays cannot be loaded", path)
		}
		return &node{kind: "array", written: "array", element: element}, err
	case "map":
		value, err := compile(n.Values, o, path, above)
		return &node{kind: "map", written: "map", element: value, target: schema.Struct}, err
	}
	return scalar(n, o, path)
}

func fullName(n *avro.SchemaNode) string {
	if n.Namespace == "" || strings.Contains(n.Name, ".") {
		return n.Name
	}
	return n.Namespace + "." + n.Name
}

func dotted(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}

// union makes a union of null and one type that type, nullable, and any other a record of nullable members. The members are
// named after their types, which is inferred: BigQuery's documentation leaves the names open.
func union(n *avro.SchemaNode, o Options, path string, above []string) (*node, error) {
	out := &node{kind: "union", written: "union", target: schema.Struct}
	for i := range n.Branches {
		b := &n.Branches[i]
		if b.Type == "null" {
			out.nullable = true
			continue
		}
		tag, name := b.Type, b.Type+"_value"
		if b.Name != "" && slices.Contains([]string{"record", "error", "enum", "fixed"}, b.Type) {
			tag, name = fullName(b), b.Name
		}
		m, err := compile(b, o, dotted(path, name), above)
		if err != nil {
			return nil, err
		}
		out.members = append(out.members, member{name: name, tag: tag, node: m})
	}
	switch {
	case len(out.members) == 0:
		return nil, fmt.Errorf("field %s: type null cannot be loaded", path)
	case len(out.members) == 1:
		one := out.members[0].node
		one.nullable, one.tag = out.nullable, out.members[0].tag
		return one, nil
	}
	return out, nil
}

// targets are the types that are loaded without logical types.
var targets = map[string]schema.Type{
	"boolean": schema.Bool, "int": schema.Int64, "long": schema.Int64, "float": schema.Float64, "double": schema.Float64,
	"bytes": schema.Bytes, "fixed": schema.Bytes, "string": schema.String, "enum": schema.String,
}

// logical are the types of logical types, by the type beneath (BigQuery documentation, "Loading Avro data", "Logical types").
var logical = map[string]schema.Type{
	"int date": schema.Date, "int time-millis": schema.Time, "long time-micros": schema.Time,
	"long timestamp-millis": schema.Timestamp, "long timestamp-micros": schema.Timestamp,
	"long local-timestamp-millis": schema.DateTime, "long local-timestamp-micros": schema.DateTime,
}

func scalar(n *avro.SchemaNode, o Options, path string) (*node, error) {
	out := &node{kind: n.Type, written: n.Type, target: targets[n.Type], name: n.Name}
	switch {
	case n.Type == "null":
		return nil, fmt.Errorf("field %s: type null cannot be loaded", path)
	case out.target == 0: // a name that was not followed: it would have no end, or none in sight
		return nil, fmt.Errorf("field %s: recursive types are not supported: %s", path, n.Type)
	}
	if !o.Logical {
		return out, nil
	}
	if t, ok := logical[n.Type+" "+n.LogicalType]; ok {
		out.target, out.logical = t, n.LogicalType
	}
	if n.LogicalType == "decimal" && (n.Type == "bytes" || n.Type == "fixed") {
		t, ok := Target(n.Precision, n.Scale, o.Decimals)
		if !ok {
			return nil, fmt.Errorf("field %s: decimal(%d, %d) fits none of the types in decimalTargetTypes", path, n.Precision, n.Scale)
		}
		out.target, out.logical, out.scale = t, "decimal", n.Scale
	}
	return out, nil
}

// maxScale is the most digits behind the point of a decimal that becomes text, which has all of them for each
// value, however short it is.
const maxScale = 1000

// Target is the type that decimals of a precision and scale are loaded as: the first of NUMERIC, BIGNUMERIC and STRING that is
// among types and holds them; of (77,38) BIGNUMERIC holds a part, and its values are checked. No types at all are NUMERIC and BIGNUMERIC (BigQuery documentation, decimalTargetTypes).
func Target(precision, scale int, types []schema.Type) (schema.Type, bool) {
	if len(types) == 0 {
		types = []schema.Type{schema.Numeric, schema.BigNumeric}
	}
	if scale < 0 || scale > maxScale {
		return 0, false
	}
	for _, t := range []schema.Type{schema.Numeric, schema.BigNumeric, schema.String} {
		if !slices.Contains(types, t) {
			continue
		}
		whole := precision - scale
		if t == schema.String || t == schema.Numeric && scale <= 9 && whole <= 29 || t == schema.BigNumeric && scale <= 38 && whole <= 39 {
			return t, true
		}
	}
	return 0, false
}

// fields are the columns of a record or a union.
func (n *node) fields() []*schema.Field {
	var out []*schema.Field
	for _, m := range n.members {
		f := m.node.field(m.name)
		if n.kind == "union" && f.Mode == schema.Required {
			f.Mode = schema.Nullable
		}
		out = append(out, f)
	}
	return out
}

// field is the column that a type asks for.
func (n *node) field(name string) *schema.Field {
	f := &schema.Field{Name: name, Type: n.target, Mode: schema.Required, Description: n.docs}
	if n.nullable {
		f.Mode = schema.Nullable
	}
	switch n.kind {
	case "array":
		element := n.element.field(name)
		f.Type, f.Fields, f.Mode = element.Type, element.Fields, schema.Repeated
	case "map":
		f.Mode = schema.Repeated
		f.Fields = []*schema.Field{{Name: "key", Type: schema.String, Mode: schema.Required}, n.element.field("value")}
	case "record", "union":
		f.Fields = n.fields()
	}
	return f
}

// checkMembers holds the columns of a table or a STRUCT to a record's types.
func (n *node) checkMembers(columns []*schema.Field, parent string) error {
	members := n.members
	if n.kind == "map" {
		members = []member{{name: "key", node: &node{kind: "string", written: "string", target: schema.String}}, {name: "value", node: n.element}}
	}
	for _, m := range members {
		for _, f := range columns {
			if strings.EqualFold(f.Name, m.name) {
				if err := m.node.check(f, dotted(parent, f.Name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (n *node) check(f *schema.Field, path string) error {
	element := n
	if n.kind == "array" {
		element = n.element
	}
	repeated := n.kind == "array" || n.kind == "map"
	if repeated != (f.Mode == schema.Repeated) {
		return fmt.Errorf("Field %s has incompatible modes. Configured schema: %s; Avro file: %s.", path, strings.ToLower(f.Mode.String()), element.mode(repeated))
	}
	if !element.feeds(f.Type) {
		return fmt.Errorf("Field %s has incompatible types. Configured schema: %s; Avro file: %s.", path, typeName(f.Type), element.written)
	}
	if f.Type == schema.Struct {
		return element.checkMembers(f.Fields, path)
	}
	return nil
}

func (n *node) mode(repeated bool) string {
	switch {
	case repeated:
		return "repeated"
	case n.nullable:
		return "nullable"
	}
	return "required"
}

func typeName(t schema.Type) string {
	if t == schema.Struct {
		return "record"
	}
	return strings.ToLower(t.Legacy())
}

// feeds reports whether values may become those of a column. A plain string feeds JSON and GEOGRAPHY, and nothing else that
// is no text (measured by another connector against the service, 2026-08).
func (n *node) feeds(t schema.Type) bool {
	switch n.target {
	case t:
		return true
	case schema.String:
		return n.logical == "" && (t == schema.JSON || t == schema.Geography) || n.logical == "decimal" && (t == schema.Numeric || t == schema.BigNumeric)
	case schema.Numeric, schema.BigNumeric:
		return t == schema.Numeric || t == schema.BigNumeric
	case schema.Int64:
		return t == schema.Float64 || t == schema.Numeric || t == schema.BigNumeric
	}
	return false
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
