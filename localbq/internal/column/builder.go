package column

import (
	"fmt"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// Options say how records are read.
type Options struct {
	// Now is the time of defaults such as CURRENT_TIMESTAMP().
	Now time.Time
	// KnownOnly refuses values that no column takes; otherwise they are left out.
	KnownOnly bool
}

// Builder makes batches of a table's rows. It is for one goroutine.
type Builder struct {
	root     *group
	shape    *arrow.Schema
	batch    *array.RecordBuilder
	rows     int64
	bytes    int64       // of what has no fixed size
	defaults []*standard // by column, for records that have no value; nil is NULL
}

const (
	// maxRows is the rows of one batch: a store's chunk.
	maxRows = 65_536
	// maxBytes is when a batch of large values is full; Arrow's offsets end at 2 GiB.
	maxBytes = 64 << 20
)

// New makes a builder for the columns of a table.
func New(s *schema.Schema, o Options) (*Builder, error) {
	b := &Builder{shape: s.Arrow(), root: newGroup(s.Fields, "", o.KnownOnly)}
	b.batch = array.NewRecordBuilder(memory.DefaultAllocator, b.shape)
	for _, f := range s.Fields {
		d, err := newStandard(f, o.Now)
		if err != nil {
			return nil, err
		}
		b.defaults = append(b.defaults, d)
	}
	return b, nil
}

// Add checks a record and appends it. The error says what is wrong with the record, which is then left out.
func (b *Builder) Add(r Record) error {
	row, err := b.root.convert(r, b.defaults)
	if err != nil {
		return err
	}
	for i, v := range row {
		add(b.batch.Field(i), b.root.fields[i], v)
		b.bytes += size(v)
	}
	b.rows++
	return nil
}

// Full reports that the batch should be taken.
func (b *Builder) Full() bool { return b.rows >= maxRows || b.bytes >= maxBytes }

// size is what of a converted value has no fixed size.
func size(v any) (n int64) {
	switch v := v.(type) {
	case string:
		return int64(len(v))
	case []byte:
		return int64(len(v))
	case []any:
		n = int64(8 * len(v))
		for _, e := range v {
			n += size(e)
		}
	}
	return n
}

// Rows is the number of rows in the batch.
func (b *Builder) Rows() int64 { return b.rows }

// Take hands over the batch and begins another.
func (b *Builder) Take() arrow.RecordBatch {
	if len(b.shape.Fields()) == 0 {
		out := array.NewRecordBatch(b.shape, nil, b.rows)
		b.rows = 0
		return out
	}
	b.rows, b.bytes = 0, 0
	return b.batch.NewRecordBatch()
}

// group is the columns of a table or the members of a STRUCT.
type group struct {
	fields    []*schema.Field
	paths     []string
	inner     []*group // of STRUCT columns
	index     map[string]int
	parent    string
	knownOnly bool
}

func newGroup(fields []*schema.Field, parent string, knownOnly bool) *group {
	g := &group{fields: fields, parent: parent, knownOnly: knownOnly, index: map[string]int{}, inner: make([]*group, len(fields))}
	for i, f := range fields {
		path := f.Name
		if parent != "" {
			path = parent + "." + f.Name
		}
		g.paths = append(g.paths, path)
		g.index[f.Name] = i
		g.index[strings.ToLower(f.Name)] = i
		if f.Type == schema.Struct {
			g.inner[i] = newGroup(f.Fields, path, knownOnly)
		}
	}
	return g
}

// find is the column that a value of that name feeds; -1 is none.
func (g *group) find(name string) int {
	if i, ok := g.index[name]; ok {
		return i
	}
	if i, ok := g.index[strings.ToLower(name)]; ok {
		return i
	}
	return -1
}

// convert makes the values of a record those of the columns.
func (g *group) convert(r Record, defaults []*standard) ([]any, error) {
	out := make([]any, len(g.fields))
	given := make([]bool, len(g.fields))
	for _, m := range r {
		i := g.find(m.Name)
		if i < 0 {
			if g.knownOnly {
				return nil, fmt.Errorf("No such field: %s.", join(g.parent, m.Name))
			}
			continue
		}
		v, err := g.value(i, m.Value)
		if err != nil {
			return nil, err
		}
		out[i], given[i] = v, true
	}
	for i, f := range g.fields {
		if !given[i] && defaults != nil && defaults[i] != nil {
			var err error
			if out[i], err = defaults[i].next(); err != nil {
				return nil, err
			}
		}
		if out[i] == nil && f.Mode == schema.Required {
			return nil, fmt.Errorf("Missing required field: %s.", g.paths[i])
		}
	}
	return out, nil
}

func join(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}

// value converts the value of column i.
func (g *group) value(i int, v any) (any, error) {
	f := g.fields[i]
	list, isList := v.(List)
	switch {
	case f.Mode == schema.Repeated && v == nil:
		return nil, nil
	case f.Mode == schema.Repeated && !isList:
		return nil, fmt.Errorf("Field %s is REPEATED: expected an array, found %s.", g.paths[i], kind(v))
	case f.Mode == schema.Repeated:
		out := make([]any, len(list))
		for k, e := range list {
			if e == nil {
				return nil, fmt.Errorf("Only optional fields can be set to NULL. Field: %s; Value: NULL", g.paths[i])
			}
			var err error
			if out[k], err = g.element(i, e); err != nil {
				return nil, err
			}
		}
		return out, nil
	case v == nil:
		return nil, nil
	}
	return g.element(i, v)
}

func (g *group) element(i int, v any) (any, error) {
	if g.inner[i] == nil {
		out, err := convert(g.fields[i], v)
		if err != nil {
			return nil, fmt.Errorf("Field %s: %w", g.paths[i], err)
		}
		return out, nil
	}
	r, ok := v.(Record)
	if !ok {
		return nil, fmt.Errorf("Field %s is a RECORD: expected an object, found %s.", g.paths[i], kind(v))
	}
	return g.inner[i].convert(r, nil)
}
