package decode

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/localbq/internal/cdc"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// SchemaError refuses a writer's descriptor; the message is the service's.
type SchemaError struct {
	Message string
	// Extra is the descriptor's fields that the table has no column for, by path; then nothing else is wrong.
	Extra []string
	// Unimplemented says that BigQuery would take the descriptor and this service does not.
	Unimplemented bool
}

func (e *SchemaError) Error() string { return e.Message }

// RowError is one bad row.
type RowError struct {
	Index   int // in the request
	Message string
}

// Missing says what stands for a value that a row does not carry.
type Missing uint8

const (
	MissingNull    Missing = iota // NULL, or the empty list
	MissingDefault                // the column's default where it has one
)

// Request is what an append request says about its rows as a whole.
type Request struct {
	Missing Missing
	// Columns overrides Missing by top-level column name; it may be nil.
	Columns map[string]Missing
	// Now is the time that defaults such as CURRENT_TIMESTAMP() take.
	Now time.Time
	// MaxErrors bounds the row errors reported; 0 is 100.
	MaxErrors int
	// Inserts takes the change type INSERT for UPSERT.
	Inserts bool
}

// Plan decodes the rows of one writer's descriptor for one definition of a table. It is for one goroutine.
type Plan struct {
	schema *arrow.Schema
	root   *node
	arrow  *arrowNode // of a plan for Arrow rows: what feeds root
	rows   int
	// changes is nil for rows that are none.
	changes *changes
	clean   bool // no row has been refused since the last Take or Reset
}

// Compile matches a writer's descriptor with the columns of a table, whose id appears in messages. It returns a
// *SchemaError where BigQuery refuses the descriptor.
func Compile(d *descriptorpb.DescriptorProto, table string, s *schema.Schema) (*Plan, error) {
	m, err := resolve(d)
	if err != nil {
		return nil, err
	}
	c := compiler{table: table}
	var columns []*schema.Field
	if s != nil {
		columns = s.Fields
	}
	root, err := c.node(m, columns, newVectors(columns), "", nil)
	if err != nil {
		return nil, err
	}
	if err := c.verdict(); err != nil {
		return nil, err
	}
	if err := c.changes.complete(); err != nil {
		return nil, err
	}
	return &Plan{schema: s.Arrow(), root: root, changes: c.changes, clean: true}, nil
}

type compiler struct {
	table  string
	extra  []string
	absent string // the first REQUIRED column that nothing feeds
	// changes are the fields of change data capture; nil where there are none.
	changes *changes
}

// verdict refuses fields without a column, and REQUIRED columns without a field.
func (c *compiler) verdict() error {
	switch {
	case len(c.extra) > 0:
		return &SchemaError{
			Message: fmt.Sprintf("Input schema has more fields than BigQuery schema, extra fields: '%s'", strings.Join(c.extra, ",")),
			Extra:   c.extra,
		}
	case c.absent != "":
		return &SchemaError{Message: fmt.Sprintf("The required field %s is missing in the input schema of table %s", c.absent, c.table)}
	}
	return nil
}

// changeColumns mark rows of change data capture.
var changeColumns = []string{cdc.TypeColumn, cdc.SequenceColumn}

// node compiles a message for a list of columns and their vectors; above holds the messages around it.
func (c *compiler) node(m *message, columns []*schema.Field, vectors []vector, parent string, above []*message) (*node, error) {
	if slices.Contains(above, m) {
		return nil, invalidProto("%s contains itself.", m.name)
	}
	if len(above) > maxDepth {
		return nil, invalidProto("%s is nested deeper than %d levels.", m.name, maxDepth)
	}
	above = append(above[:len(above):len(above)], m)
	n := &node{columns: make([]column, len(columns)), slots: make([]slot, len(columns))}
	position := make(map[string]int, len(columns))
	for i, f := range columns {
		n.columns[i] = column{name: f.Name, path: within(parent, f.Name), vector: vectors[i], required: f.Mode == schema.Required}
		n.columns[i].list, _ = vectors[i].(*list)
		position[strings.ToLower(f.Name)] = i
	}
	for _, f := range m.fields {
		if parent == "" {
			if is, err := c.changeField(f); err != nil {
				return nil, err
			} else if is {
				continue
			}
		}
		i, ok := position[strings.ToLower(f.column)]
		switch {
		case !ok:
			c.extra = append(c.extra, within(parent, f.column))
			continue
		case n.columns[i].put != nil:
			return nil, &SchemaError{Message: fmt.Sprintf("The input schema has more than one field for column %s of table %s", n.columns[i].path, c.table)}
		}
		if err := c.column(&n.columns[i], f, columns[i], above); err != nil {
			return nil, err
		}
		n.numbers.add(f.number, i)
	}
	return n, c.complete(n, columns, parent == "")
}

// column compiles one field for its column.
func (c *compiler) column(col *column, f *protoField, target *schema.Field, above []*message) error {
	if f.repeated != (target.Mode == schema.Repeated) {
		return c.mismatch(col.path, mode(f.repeated)+" "+kindName(f), target.Mode.String()+" "+target.Type.Legacy())
	}
	v := col.vector
	if col.list != nil {
		v = col.list.element
	}
	put, err := c.converter(f, target, col.path, above, v)
	if err != nil {
		return err
	}
	if put == nil {
		return c.mismatch(col.path, kindName(f), target.Type.Legacy())
	}
	col.put, col.number, col.wire, col.message = put, f.number, wireType(f.kind), f.message != nil
	col.packable = f.repeated && col.wire != protowire.BytesType && col.wire != protowire.StartGroupType
	col.enum, col.fallback, col.hasFallback = f.enum, f.fallback, f.hasFallback
	return nil
}

func mode(repeated bool) string {
	if repeated {
		return "repeated"
	}
	return "singular"
}

func kindName(f *protoField) string {
	if f.message != nil {
		return "message " + f.message.name
	}
	return f.kind.String()
}

func (c *compiler) mismatch(path, proto, column string) error {
	return &SchemaError{Message: fmt.Sprintf("The proto field mismatched with BigQuery field at %s.%s, the proto field type %s, BigQuery field type %s",
		c.table, path, proto, column)}
}

// complete settles what the columns that no field feeds are filled with, and compiles defaults.
func (c *compiler) complete(n *node, columns []*schema.Field, top bool) error {
	for i, f := range columns {
		col := &n.columns[i]
		col.absent = col.put == nil
		if top && f.Default != "" {
			var err error
			if col.standard, err = compileDefault(f, col.vector); err != nil {
				return &SchemaError{Unimplemented: true, Message: err.Error()}
			}
		}
		if col.absent && col.required && col.standard == nil && c.absent == "" {
			c.absent = col.path
		}
	}
	return nil
}

// Decode checks rows and adds them to the batch that is being made. Rows are the bodies of messages. It returns the bad
// rows, at most Request.MaxErrors of them, in order; if there are any, the batch is lost and the plan must be Reset.
func (p *Plan) Decode(rows [][]byte, q Request) []RowError {
	p.root.missing(q)
	limit := q.MaxErrors
	if limit == 0 {
		limit = 100
	}
	var bad []RowError
	for i, row := range rows {
		err := p.root.decode(row)
		if err == nil && p.changes != nil {
			err = p.changes.decode(row, q.Inserts)
		}
		if err != nil {
			p.clean = false
			if bad = append(bad, RowError{Index: i, Message: err.Error()}); len(bad) == limit {
				break
			}
		}
	}
	p.rows += len(rows)
	return bad
}

// Take hands over the rows decoded since the last Take or Reset, in the Arrow shape of the table's schema. It panics if
// one of them was refused.
func (p *Plan) Take() arrow.RecordBatch {
	if !p.clean {
		panic("decode: Take after a refused row")
	}
	columns := make([]arrow.Array, len(p.root.columns))
	for i := range columns {
		columns[i] = array.MakeFromData(p.root.columns[i].vector.take(p.schema.Field(i).Type))
	}
	batch := array.NewRecordBatch(p.schema, columns, int64(p.rows))
	p.rows = 0
	return batch
}

// Reset forgets the rows decoded since the last Take or Reset.
func (p *Plan) Reset() {
	for i := range p.root.columns {
		p.root.columns[i].vector.reset()
	}
	p.rows, p.clean = 0, true
	p.TakeChanges()
}
