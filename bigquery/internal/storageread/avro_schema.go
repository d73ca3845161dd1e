package storageread

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// op says how a value's bytes become a row.Value.
type op uint8

const (
	opBool     op = iota + 1
	opInt         // zigzag varint of 32 bits
	opLong        // zigzag varint of 64 bits
	opDouble      // 8 bytes, little-endian
	opFloat       // 4 bytes, in defaults of a reader's schema only
	opBytes       // length and bytes; in a node also text
	opText        // length and text, which is UTF-8; in steps only
	opDecimal     // length and big-endian two's complement
	opDateTime    // length and text such as 2026-08-12T12:34:56.123456
	opStruct
	opArray
)

// node is the type of a value in a session's Avro schema, with the column type it stands for.
type node struct {
	op       op
	typ      table.Type
	nullable bool
	null     byte // first byte of a null, where nullable: the branch's number, zigzag encoded
	some     byte // first byte of a value, where nullable

	fields           []member   // opStruct
	elem             *node      // opArray
	element          table.Type // of a RANGE
	precision, scale int64      // opDecimal
	size             int        // how many columns it is, members of members included
}

type member struct {
	name string
	node *node
}

// maxDepth is how deeply types may nest. BigQuery allows 15 levels of STRUCT (BigQuery documentation, "Specify nested and
// repeated columns"); each may sit in an array and a union, and a RANGE may end the line.
const maxDepth = 50

// maxColumns keeps a schema whose records refer to each other from unfolding without end. A table has 10,000 columns at
// most, members of STRUCTs included (BigQuery quotas page, "Standard tables").
const maxColumns = 100_000

// parseSchema reads the Avro schema of a session: the record __root__, whose fields are the columns.
func parseSchema(text string) (*node, error) {
	p := schemaParser{named: map[string]*node{}}
	root, err := p.parse([]byte(text), "", 0)
	if err != nil {
		return nil, err
	}
	if root.op != opStruct || root.nullable || root.typ != table.Struct {
		return nil, schemaError("", "the session's schema is no record")
	}
	return root, nil
}

func schemaError(path, format string, args ...any) error {
	return &row.Error{Kind: row.KindDecode, Path: path, Offset: -1, Msg: fmt.Sprintf(format, args...)}
}

type schemaParser struct {
	named map[string]*node // records by name; nil while the record is being read
}

// avroType is the object form of an Avro type, of which every property but type is optional.
type avroType struct {
	Type        json.RawMessage `json:"type"`
	Name        string          `json:"name"`
	Namespace   string          `json:"namespace"`
	LogicalType string          `json:"logicalType"`
	SQLType     string          `json:"sqlType"`
	Precision   *int64          `json:"precision"`
	Scale       *int64          `json:"scale"`
	Items       json.RawMessage `json:"items"`
	Fields      []avroField     `json:"fields"`
}

type avroField struct {
	Name        string          `json:"name"`
	DisplayName string          `json:"displayName"` // a column name that Avro cannot hold
	Type        json.RawMessage `json:"type"`
}

func (p *schemaParser) parse(text json.RawMessage, path string, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, schemaError(path, "types nest more than %d levels deep", maxDepth)
	}
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) == 0 {
		return nil, schemaError(path, "the Avro schema names no type here")
	}
	switch text[0] {
	case '"':
		var name string
		if err := json.Unmarshal(text, &name); err != nil {
			return nil, schemaError(path, "the Avro schema is no valid JSON: %v", err)
		}
		return p.reference(name, path)
	case '[':
		return p.union(text, path, depth)
	}
	var t avroType
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, schemaError(path, "the Avro schema is no valid JSON: %v", err)
	}
	return p.object(&t, path, depth)
}

// reference reads a type that is only a name: a primitive, or a record defined before.
func (p *schemaParser) reference(name, path string) (*node, error) {
	if n, ok := p.named[name]; ok {
		if n == nil {
			return nil, schemaError(path, "the record %q contains itself", name)
		}
		return n, nil
	}
	return p.build(name, &avroType{}, path, 0)
}

// union reads ["null", T] and [T, "null"], the form of a nullable value.
func (p *schemaParser) union(text json.RawMessage, path string, depth int) (*node, error) {
	var branches []json.RawMessage
	if err := json.Unmarshal(text, &branches); err != nil {
		return nil, schemaError(path, "the Avro schema is no valid JSON: %v", err)
	}
	if len(branches) != 2 {
		return nil, schemaError(path, "a union of %d types: expected null and one other", len(branches))
	}
	some := 0
	if string(branches[0]) == `"null"` {
		some = 1
	} else if string(branches[1]) != `"null"` {
		return nil, schemaError(path, "a union without null: expected null and one other type")
	}
	n, err := p.parse(branches[some], path, depth+1)
	if err != nil {
		return nil, err
	}
	if n.nullable {
		return nil, schemaError(path, "a union inside a union")
	}
	named := *n
	named.nullable, named.some, named.null = true, byte(some)<<1, byte(1-some)<<1
	return &named, nil
}

func (p *schemaParser) object(t *avroType, path string, depth int) (*node, error) {
	var name string
	if err := json.Unmarshal(t.Type, &name); err != nil {
		// {"type": {…}}: a type in a wrapper.
		return p.parse(t.Type, path, depth+1)
	}
	return p.build(name, t, path, depth)
}

func (p *schemaParser) build(name string, t *avroType, path string, depth int) (*node, error) {
	switch name {
	case "record":
		return p.record(t, path, depth)
	case "array":
		return p.array(t, path, depth)
	case "bytes":
		return bytesNode(t, path)
	case "string":
		return stringNode(t, path)
	}
	return scalarNode(name, t, path)
}

func (p *schemaParser) array(t *avroType, path string, depth int) (*node, error) {
	elem, err := p.parse(t.Items, path, depth+1)
	if err != nil {
		return nil, err
	}
	if elem.op == opArray || elem.nullable {
		return nil, schemaError(path, "an array of arrays or of nullable elements: BigQuery has neither")
	}
	return &node{op: opArray, typ: elem.typ, elem: elem, size: elem.size}, nil
}

func (p *schemaParser) record(t *avroType, path string, depth int) (*node, error) {
	name := t.Name
	if t.Namespace != "" && !strings.Contains(name, ".") {
		name = t.Namespace + "." + name
	}
	if _, again := p.named[name]; again {
		return nil, schemaError(path, "the record %q is defined twice", name)
	}
	p.named[name] = nil
	n := &node{op: opStruct, typ: table.Struct, size: 1}
	for _, f := range t.Fields {
		m := member{name: f.Name}
		if f.DisplayName != "" {
			m.name = f.DisplayName
		}
		var err error
		if m.node, err = p.parse(f.Type, join(path, m.name), depth+1); err != nil {
			return nil, err
		}
		n.fields = append(n.fields, m)
		if n.size += m.node.size; n.size > maxColumns {
			return nil, schemaError(path, "more than %d columns", maxColumns)
		}
	}
	if len(n.fields) == 0 {
		return nil, schemaError(path, "a record without fields")
	}
	p.named[name] = n
	return n, special(n, t.SQLType, path)
}

// special turns the records that stand for RANGE and INTERVAL into what they are.
func special(n *node, sqlType, path string) error {
	switch {
	case strings.HasPrefix(sqlType, "RANGE"):
		if !isRange(n.fields) {
			return schemaError(path, "a RANGE that is no record of start and end, both dates or times")
		}
		n.typ, n.element = table.Range, n.fields[0].node.typ
	case sqlType == "INTERVAL":
		if len(n.fields) != 3 {
			return schemaError(path, "an INTERVAL that is no record of months, days and microseconds")
		}
		for i, want := range []string{"months", "days", "microseconds"} {
			if m := n.fields[i]; m.name != want || m.node.typ != table.Int64 || m.node.nullable {
				return schemaError(path, "an INTERVAL that is no record of months, days and microseconds")
			}
		}
		n.typ = table.Interval
	}
	return nil
}

func isRange(m []member) bool {
	if len(m) != 2 || m[0].name != "start" || m[1].name != "end" || m[0].node.typ != m[1].node.typ {
		return false
	}
	switch m[0].node.typ {
	case table.Date, table.DateTime, table.Timestamp:
		return m[0].node.op != opArray && m[1].node.op != opArray
	}
	return false
}

func bytesNode(t *avroType, path string) (*node, error) {
	switch t.LogicalType {
	case "":
		return &node{op: opBytes, typ: table.Bytes, size: 1}, nil
	case "decimal":
		// Without its scale a decimal has no value. Avro's own default would be 0; the service always says.
		if t.Precision == nil || t.Scale == nil {
			return nil, schemaError(path, "a decimal without precision and scale")
		}
		n := &node{op: opDecimal, typ: table.Numeric, size: 1, precision: *t.Precision, scale: *t.Scale}
		if n.precision < 1 || n.scale < 0 || n.scale > 38 || n.precision-n.scale > 39 {
			return nil, schemaError(path, "decimal(%d, %d) is outside of BIGNUMERIC", n.precision, n.scale)
		}
		if n.scale > 9 || n.precision-n.scale > 29 {
			n.typ = table.BigNumeric
		}
		return n, nil
	}
	return nil, unknownLogical("bytes", t, path)
}

func stringNode(t *avroType, path string) (*node, error) {
	n := &node{op: opBytes, typ: table.String, size: 1}
	switch {
	case t.LogicalType == "datetime":
		n.op, n.typ = opDateTime, table.DateTime
	case t.LogicalType != "":
		return nil, unknownLogical("string", t, path)
	case t.SQLType == "JSON":
		n.typ = table.JSON
	case t.SQLType == "GEOGRAPHY":
		n.typ = table.Geography
	}
	return n, nil
}

func scalarNode(name string, t *avroType, path string) (*node, error) {
	switch name + " " + t.LogicalType {
	case "boolean ":
		return &node{op: opBool, typ: table.Bool, size: 1}, nil
	case "int ":
		return &node{op: opInt, typ: table.Int64, size: 1}, nil
	case "int date":
		return &node{op: opInt, typ: table.Date, size: 1}, nil
	case "long ":
		return &node{op: opLong, typ: table.Int64, size: 1}, nil
	case "long time-micros":
		return &node{op: opLong, typ: table.Time, size: 1}, nil
	case "long timestamp-micros":
		return &node{op: opLong, typ: table.Timestamp, size: 1}, nil
	case "double ":
		return &node{op: opDouble, typ: table.Float64, size: 1}, nil
	}
	if t.LogicalType != "" {
		return nil, unknownLogical(name, t, path)
	}
	return nil, schemaError(path, "the Avro type %q: expected one that a read session uses", name)
}

// unknownLogical refuses what would otherwise be read as a plain number or text and silently mean something else.
func unknownLogical(name string, t *avroType, path string) error {
	return schemaError(path, "the Avro type %s with logical type %q: expected one that a read session uses", name, t.LogicalType)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// schema is the columns a record stands for.
//
// A session tells its schema as Avro only, and asking REST for the table's would cost a call that may say something
// else by then. What Avro does not tell stays unset: descriptions, lengths, defaults, policy tags. A BIGNUMERIC(P, S)
// whose precision and scale fit a NUMERIC is reported as one, since their values are the same; without parameters the
// two differ.
func (n *node) schema() *table.Schema { return &table.Schema{Fields: n.columns()} }

func (n *node) columns() []table.Field {
	fields := make([]table.Field, len(n.fields))
	for i, m := range n.fields {
		fields[i] = m.node.column(m.name)
	}
	return fields
}

func (n *node) column(name string) table.Field {
	f := table.Field{Name: name, Mode: table.Required}
	if n.op == opArray {
		f.Mode, n = table.Repeated, n.elem
	} else if n.nullable {
		f.Mode = table.Nullable
	}
	f.Type, f.Range = n.typ, n.element
	switch {
	case n.typ == table.Struct:
		f.Fields = n.columns()
	case n.typ == table.Numeric && (n.precision != 38 || n.scale != 9),
		n.typ == table.BigNumeric && (n.precision != 77 || n.scale != 38):
		f.Precision, f.Scale = n.precision, n.scale
	}
	return f
}
