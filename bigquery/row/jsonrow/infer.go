package jsonrow

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// InferOptions says how a schema is inferred. The zero value is the default.
type InferOptions struct {
	// Rest is the name of a JSON column, added last, that takes every key without a column of its own, so that nothing
	// that is read is lost. "" is none: keys that only ever held null, [] or {} are then dropped.
	Rest string
	// TimesAsStrings keeps strings that are timestamps or dates as STRING columns.
	TimesAsStrings bool
	// JSONPaths lists fields that become JSON columns whatever they hold, in the form of Choice.Path.
	JSONPaths []string
}

// Inference learns the schema of documents from samples of them. It is used by one goroutine.
type Inference struct {
	options   InferOptions
	root      *node
	nodes     int
	documents int
	s         scanner
	scratch   []byte
}

// Inferred is a schema and how it came about.
type Inferred struct {
	// Mapping is what the Serializer takes: the schema, the key of every column, Exact, and Rest.
	Mapping *Mapping
	// Choices are the decisions a reader of the table should know of, in the order of the columns.
	Choices []Choice
	// NoColumn are the paths that have no column.
	NoColumn  []string
	Documents int // how many were sampled
}

// maxNodes bounds the memory of an Inference: fields seen, with a column or without.
const maxNodes = 5 * table.MaxColumns

// NewInference starts with no samples.
func NewInference(o InferOptions) *Inference {
	return &Inference{options: o, root: &node{}}
}

// Add learns from a document, which it does not keep. Documents that are not exactly one JSON object change nothing; their
// error is that of Valid. An error of kind C-SCHEMA says that there are more fields than a table could have.
func (inf *Inference) Add(doc []byte) error {
	if err := Valid(doc); err != nil {
		return err
	}
	inf.s = scanner{data: doc}
	inf.s.space()
	inf.object(inf.root)
	inf.s.data = nil
	inf.documents++
	if inf.nodes > maxNodes {
		return inf.tooWide()
	}
	return nil
}

// Schema decides. More samples may follow.
//
// Objects become STRUCT, arrays REPEATED; numbers INT64 or FLOAT64 where that changes none of them, else NUMERIC or
// BIGNUMERIC; strings STRING, TIMESTAMP where all are RFC 3339 with a zone and at most six fractional digits, DATE where all
// are YYYY-MM-DD. What has no such type, because its values differ in kind or arrays hold arrays or null, becomes JSON.
// Every column is NULLABLE or REPEATED. Columns stand in the order in which their keys first appeared; their names do not
// depend on that order.
//
// The error is a *row.Error of a C kind: no document has a key that holds something, or there are too many columns.
func (inf *Inference) Schema() (*Inferred, error) {
	b := builder{options: &inf.options}
	fields, keys := b.object(inf.root, "", 0)
	if b.columns > table.MaxColumns {
		return nil, inf.tooWide()
	}
	if len(fields) == 0 {
		return nil, &row.Error{Kind: row.KindEmpty, Offset: -1,
			Msg: fmt.Sprintf("no key holds anything but null, [] and {} in %d sampled documents: nothing to make a column of", inf.documents)}
	}
	if rest := inf.options.Rest; rest != "" {
		fields = append(fields, table.Field{Name: rest, Type: table.JSON, Description: restDescription})
		keys.add(freeKey(keys.Names, rest), nil)
	}
	m := &Mapping{Schema: &table.Schema{Fields: fields}, Keys: keys, Exact: true, Rest: inf.options.Rest}
	if err := m.check(); err != nil {
		return nil, err
	}
	return &Inferred{Mapping: m, Choices: b.choices, NoColumn: b.noColumn, Documents: inf.documents}, nil
}

// freeKey is the key that the column for the rest is written under: its name, unless the documents have that key.
func freeKey(keys []string, name string) string {
	key := name
	for n := 2; slices.Contains(keys, key); n++ {
		key = name + "_" + strconv.Itoa(n)
	}
	return key
}

const restDescription = "keys without a column of their own: JSON Pointer to value"

// tooWide names the object that makes the schema too wide.
func (inf *Inference) tooWide() error {
	widest := inf.root
	inf.root.walk(func(n *node) {
		if len(n.keys) > len(widest.keys) {
			widest = n
		}
	})
	msg := fmt.Sprintf("the documents have more than %d different fields, a table's limit; %d different keys are here: ",
		table.MaxColumns, len(widest.keys))
	if widest == inf.root {
		msg += "keys that are data rather than names belong into an array"
	} else {
		msg += "make it a JSON column (JSONPaths)"
	}
	return &row.Error{Kind: row.KindSchema, Path: widest.path, Offset: -1, Msg: msg}
}

// object learns from the object at pos. The document is known to be valid.
func (inf *Inference) object(n *node) {
	s := &inf.s
	for s.pos++; ; {
		s.space()
		switch s.peek() {
		case '}':
			s.pos++
			return
		case ',':
			s.pos++
			continue
		}
		sp, _ := s.str()
		s.colon()
		inf.value(inf.child(n, sp))
	}
}

// child is the node of a key.
func (inf *Inference) child(n *node, sp span) *node {
	key := inf.s.data[sp.start:sp.end]
	if sp.escaped {
		inf.scratch = unescape(inf.scratch[:0], key)
		key = inf.scratch
	}
	if c := n.children[string(key)]; c != nil {
		return c
	}
	c := inf.node(table.Join(n.path, pathStep(string(key))))
	if n.children == nil {
		n.children = map[string]*node{}
	}
	n.children[string(key)] = c
	n.keys = append(n.keys, string(key))
	return c
}

// pathStep is a key in a path, quoted where the path would otherwise say something else.
func pathStep(key string) string {
	if key != "" && !strings.ContainsAny(key, ".[]\"\\\n\r\t ") {
		return key
	}
	return string(row.AppendQuoted(nil, key))
}

func (inf *Inference) node(path string) *node {
	inf.nodes++
	return &node{path: path, forced: slices.Contains(inf.options.JSONPaths, path)}
}

// value learns from the value at pos.
func (inf *Inference) value(n *node) {
	s := &inf.s
	at := s.pos
	switch c := s.peek(); {
	case n.forced:
		s.content = false
		s.skip(0)
		n.sawContent = n.sawContent || s.content
	case c == '{':
		n.counts[kindObject]++
		inf.object(n)
	case c == '[':
		n.counts[kindArray]++
		inf.array(n)
	case c == '"':
		n.counts[kindString]++
		sp, _ := s.str()
		n.string(s.data[sp.start:sp.end])
	case c == 't' || c == 'f':
		n.counts[kindBool]++
		s.skip(0)
	case c == 'n':
		n.counts[kindNull]++
		s.skip(0)
	default:
		n.counts[kindNumber]++
		whole, _ := s.number()
		n.number(s.data[at:s.pos], whole)
	}
}

// array learns from the array at pos.
func (inf *Inference) array(n *node) {
	s := &inf.s
	for s.pos++; ; {
		s.space()
		switch s.peek() {
		case ']':
			s.pos++
			return
		case ',':
			s.pos++
			continue
		}
		if n.element == nil {
			n.element = inf.node(n.path + "[]")
		}
		inf.value(n.element)
	}
}
