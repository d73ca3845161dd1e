package decode

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// JSON decodes rows that are JSON objects, as tabledata.insertAll has them. It is for one goroutine.
type JSON struct {
	schema *arrow.Schema
	root   *jsonNode
	rows   int
}

// JSONOptions says how rows are read.
type JSONOptions struct {
	// IgnoreUnknown passes over members that no column has.
	IgnoreUnknown bool
	// Now is the time that defaults such as CURRENT_TIMESTAMP() take.
	Now time.Time
}

// JSONError is what is wrong with a row.
type JSONError struct {
	// Field is the member at fault, by path; "" where one is missing.
	Field, Message string
}

func (e *JSONError) Error() string { return e.Message }

// NewJSON makes a decoder for the columns of a table.
func NewJSON(s *schema.Schema, o JSONOptions) (*JSON, error) {
	root, err := newJSONNode(s.Fields, newVectors(s.Fields), "", o)
	if err != nil {
		return nil, err
	}
	return &JSON{schema: s.Arrow(), root: root}, nil
}

// Append adds a row, whose numbers are json.Number. After an error, which is a *JSONError, the decoder has to be Reset.
func (j *JSON) Append(row map[string]any) error {
	j.rows++
	return j.root.append(row)
}

// Take hands over the rows since the last Take or Reset, in the Arrow shape of the schema.
func (j *JSON) Take() arrow.RecordBatch {
	columns := make([]arrow.Array, len(j.root.columns))
	for i, c := range j.root.columns {
		columns[i] = array.MakeFromData(c.vector.take(j.schema.Field(i).Type))
	}
	batch := array.NewRecordBatch(j.schema, columns, int64(j.rows))
	j.rows = 0
	return batch
}

// Reset forgets the rows since the last Take or Reset.
func (j *JSON) Reset() {
	for _, c := range j.root.columns {
		c.vector.reset()
	}
	j.rows = 0
}

// jsonNode is the columns of a table or the members of a STRUCT.
type jsonNode struct {
	columns []*jsonColumn
	byName  map[string]*jsonColumn // in lower case
	parent  string
	options JSONOptions
}

// jsonColumn is one column and how values get into it.
type jsonColumn struct {
	field    *schema.Field
	path     string
	vector   vector // of the column
	element  vector // of one value: an element where the column is REPEATED
	list     *list
	put      func(any) error
	standard *standard
}

func newJSONNode(fields []*schema.Field, vectors []vector, parent string, o JSONOptions) (*jsonNode, error) {
	n := &jsonNode{byName: map[string]*jsonColumn{}, parent: parent, options: o}
	for i, f := range fields {
		c := &jsonColumn{field: f, path: within(parent, f.Name), vector: vectors[i], element: vectors[i]}
		if c.list, _ = vectors[i].(*list); c.list != nil {
			c.element = c.list.element
		}
		var err error
		if c.put, err = jsonPut(f, c.path, c.element, o); err != nil {
			return nil, err
		}
		if f.Default != "" && parent == "" {
			if c.standard, err = compileDefault(f, c.vector); err != nil {
				return nil, err
			}
			c.standard.evaluate(o.Now)
		}
		n.columns = append(n.columns, c)
		n.byName[strings.ToLower(f.Name)] = c
	}
	return n, nil
}

// append adds one value to each column.
func (n *jsonNode) append(object map[string]any) error {
	given := make(map[*jsonColumn]any, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		c := n.byName[strings.ToLower(name)]
		if c == nil {
			if n.options.IgnoreUnknown {
				continue
			}
			path := within(n.parent, name)
			return &JSONError{path, fmt.Sprintf("no such field: %s.", path)}
		}
		if _, twice := given[c]; twice {
			return &JSONError{c.path, fmt.Sprintf("Field %s is given twice.", c.path)}
		}
		given[c] = object[name]
	}
	for _, c := range n.columns {
		v, ok := given[c]
		if err := c.append(v, ok); err != nil {
			return err
		}
	}
	return nil
}

func (c *jsonColumn) append(v any, given bool) error {
	if !given && c.standard != nil {
		err := c.standard.append()
		if c.list != nil {
			c.list.end()
		}
		return err
	}
	switch {
	case c.list != nil:
		return c.appendList(v, given)
	case v != nil:
		return c.value(v)
	case c.field.Mode == schema.Required:
		return &JSONError{Message: fmt.Sprintf("Missing required field: %s.", c.path)}
	}
	c.vector.null()
	return nil
}

func (c *jsonColumn) appendList(v any, given bool) error {
	elements, ok := v.([]any)
	if given && !ok {
		if v == nil {
			return c.fault("Only optional fields can be set to NULL. Field: %s; Value: NULL", c.path)
		}
		return c.fault("Repeated field %s must be given as an array.", c.path)
	}
	for _, e := range elements {
		if e == nil {
			return c.fault("Only optional fields can be set to NULL. Field: %s; Value: NULL", c.path)
		}
		if err := c.value(e); err != nil {
			return err
		}
		c.list.open++
	}
	c.list.end()
	return nil
}

func (c *jsonColumn) value(v any) error {
	if _, array := v.([]any); array {
		return c.fault("Array specified for non-repeated field: %s.", c.path)
	}
	err := c.put(v)
	if _, told := err.(*JSONError); err == nil || told {
		return err
	}
	return c.fault("%v", err)
}

func (c *jsonColumn) fault(format string, args ...any) error {
	return &JSONError{c.path, fmt.Sprintf(format, args...)}
}

// scalarText is a scalar as text: a string, a number as written, or a boolean.
func scalarText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return fmt.Sprint(v), true
	}
	return "", false
}
