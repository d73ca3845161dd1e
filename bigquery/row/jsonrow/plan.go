package jsonrow

import (
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// plan is a mapping compiled for one pass over a document. It never changes.
type plan struct {
	schema     *table.Schema
	descriptor *descriptorpb.DescriptorProto
	root       *object
	rest       *column // nil without one
	exact      bool    // Mapping.Exact
}

// object is the plan of a JSON object: of the document, of a STRUCT, or of a RANGE.
type object struct {
	columns []column
	exact   map[string]int // key → column
	folded  map[string]int // folded key → column; nil when keys match exactly only
	// required has a bit for every column that has to be set; words is its length, and that of the set of columns seen.
	required []uint64
	words    int
}

// column is the plan of one column.
type column struct {
	key     string // as it is most likely spelt in the document
	name    string
	tag     string
	op      op
	list    bool // REPEATED
	packed  bool
	require bool
	members *object // opStruct
	decimal row.Decimal
}

// op is how a JSON value becomes a column's value: the column's type and the options, in one code.
type op uint8

const (
	opBool op = iota
	opExactBool
	opInt
	opExactInt
	opFloat
	opExactFloat
	opDecimal
	opExactDecimal
	opString
	opExactString
	opBytes
	opDate
	opExactDate
	opTime
	opDateTime
	opTimestamp
	opExactTimestamp
	opInterval
	opGeography
	opJSON
	opJSONText
	opJSONValue
	opStruct
)

func compile(m *Mapping, o Options) (*plan, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	d, err := row.Descriptor(m.Schema)
	if err != nil {
		return nil, err
	}
	c := compiler{options: o, exact: m.Exact, rest: m.Schema.Field(m.Rest)}
	p := &plan{schema: m.Schema, descriptor: d, root: c.object(m.Schema.Fields, m.Keys), exact: m.Exact}
	for i := range p.root.columns {
		if m.Rest != "" && &m.Schema.Fields[i] == c.rest {
			p.rest = &p.root.columns[i]
		}
	}
	return p, nil
}

// noKey is the key of the column for the rest, which no key of a document fills. Nothing is looked up by it, and as it is
// spelt here no key stands in a document.
const noKey = `"`

type compiler struct {
	options Options
	exact   bool
	rest    *table.Field // nil without one
}

func (c *compiler) object(fields []table.Field, keys *Keys) *object {
	words := (len(fields) + 63) / 64
	o := &object{
		columns:  make([]column, len(fields)),
		exact:    make(map[string]int, len(fields)),
		required: make([]uint64, words),
		words:    words,
	}
	if keys == nil {
		o.folded = make(map[string]int, len(fields))
	}
	for i := range fields {
		f := &fields[i]
		col := column{
			key:     f.Name,
			name:    f.Name,
			tag:     string(row.Tag(i, f)),
			op:      c.op(f.Type),
			list:    f.Mode == table.Repeated,
			packed:  f.Mode == table.Repeated && row.Packed(f),
			require: f.Mode == table.Required,
		}
		switch {
		case f == c.rest:
			col.key = noKey
		case keys == nil:
			o.folded[table.FoldName(f.Name)] = i
			o.exact[f.Name] = i
		default:
			col.key = keys.Names[i]
			o.exact[col.key] = i
		}
		if members := row.Members(f); members != nil {
			col.op, col.members = opStruct, c.object(members, keys.of(i))
		}
		if f.Type == table.Numeric || f.Type == table.BigNumeric {
			col.decimal = row.DecimalOf(f)
		}
		if col.require {
			o.required[i/64] |= 1 << (i % 64)
		}
		o.columns[i] = col
	}
	return o
}

func (c *compiler) op(t table.Type) op {
	either := func(loose, exact op) op {
		if c.exact {
			return exact
		}
		return loose
	}
	switch t {
	case table.Bool:
		return either(opBool, opExactBool)
	case table.Int64:
		return either(opInt, opExactInt)
	case table.Float64:
		return either(opFloat, opExactFloat)
	case table.Numeric, table.BigNumeric:
		return either(opDecimal, opExactDecimal)
	case table.Bytes:
		return opBytes
	case table.Date:
		return either(opDate, opExactDate)
	case table.Time:
		return opTime
	case table.DateTime:
		return opDateTime
	case table.Timestamp:
		return either(opTimestamp, opExactTimestamp)
	case table.Interval:
		return opInterval
	case table.Geography:
		return opGeography
	case table.JSON:
		return either([...]op{opJSON, opJSONText, opJSONValue}[c.options.JSONColumns], opJSONValue)
	}
	return either(opString, opExactString)
}
