package csvrow

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Mapping is a table's schema and what a header calls its columns.
type Mapping struct {
	Schema *table.Schema
	// Names are the names of the columns in headers, which match exactly. nil are the columns' own, ignoring case.
	Names []string
}

// Schemas answers the Mapping of each destination, always the same.
type Schemas interface {
	Mapping(dst table.Destination) (*Mapping, error)
}

// Mapping is m: it serves every destination.
func (m *Mapping) Mapping(table.Destination) (*Mapping, error) { return m, nil }

// Fixed is one schema for all destinations.
func Fixed(s *table.Schema) *Mapping { return &Mapping{Schema: s} }

// PerDestination makes Schemas of a function.
type PerDestination func(table.Destination) (*Mapping, error)

// Mapping calls f.
func (f PerDestination) Mapping(dst table.Destination) (*Mapping, error) { return f(dst) }

// target is what is known of a destination without a header.
type target struct {
	mapping    *Mapping
	descriptor *descriptorpb.DescriptorProto
	columns    []column
}

// column is the plan of one column.
type column struct {
	name     string
	typ      table.Type
	element  table.Type // of a RANGE
	required bool
	tag      string
	decimal  row.Decimal
}

func newTarget(m *Mapping) (*target, error) {
	if m == nil || m.Schema == nil {
		return nil, &row.Error{Kind: row.KindSchema, Offset: -1, Msg: "no schema is known for the table"}
	}
	d, err := row.Descriptor(m.Schema)
	if err != nil {
		return nil, err
	}
	t := &target{mapping: m, descriptor: d, columns: make([]column, len(m.Schema.Fields))}
	var faults []error
	if m.Names != nil && len(m.Names) != len(m.Schema.Fields) {
		faults = append(faults, &row.Error{Kind: row.KindSchema, Offset: -1, Msg: fmt.Sprintf("%d names for %d columns", len(m.Names), len(m.Schema.Fields))})
	}
	for i := range m.Schema.Fields {
		f := &m.Schema.Fields[i]
		if f.Type == table.Struct || f.Mode == table.Repeated {
			faults = append(faults, &row.Error{Kind: row.KindColType, Path: f.Name, Offset: -1, Msg: "a STRUCT or REPEATED column has no form in CSV"})
			continue
		}
		t.columns[i] = column{name: f.Name, typ: f.Type, element: f.Range, required: f.Mode == table.Required, tag: string(row.Tag(i, f))}
		if f.Type == table.Numeric || f.Type == table.BigNumeric {
			t.columns[i].decimal = row.DecimalOf(f)
		}
	}
	return t, errors.Join(faults...)
}

// layout says which cell of a file's records is which column.
type layout struct {
	target *target
	header string
	titled bool  // there is a header
	cells  []int // column of each cell, -1 for none
}

// layout finds the columns of a header; without one, cells are the columns in their order.
func (t *target) layout(header []byte, o Options) (*layout, error) {
	l := &layout{target: t, header: string(header), titled: header != nil}
	if header == nil {
		for i := range t.columns {
			l.cells = append(l.cells, i)
		}
		return l, nil
	}
	names, err := Fields(header, o)
	if err != nil {
		return nil, headerError("", "cannot be read: %v", err)
	}
	at := map[string]int{}
	for i := range t.columns {
		at[t.key(i)] = i
	}
	seen := map[int]bool{}
	for n, name := range names {
		i, ok := at[t.fold(name)]
		switch {
		case ok && seen[i]:
			return nil, headerError(name, "names the column twice")
		case ok:
			seen[i] = true
		case o.IgnoreUnknown:
			i = -1
		default:
			return nil, headerError(name, "cell %d names a column that the table lacks: add it, rename it, or ignore unknown fields", n+1)
		}
		l.cells = append(l.cells, i)
	}
	for i := range t.columns {
		if t.columns[i].required && !seen[i] {
			return nil, headerError(t.columns[i].name, "does not name the column, which is REQUIRED")
		}
	}
	return l, nil
}

func headerError(path, format string, args ...any) error {
	return &row.Error{Kind: row.KindHeader, Path: path, Offset: -1, Msg: "the header " + fmt.Sprintf(format, args...)}
}

// key is what a header calls column i, as names are compared.
func (t *target) key(i int) string {
	if t.mapping.Names != nil {
		return t.mapping.Names[i]
	}
	return table.FoldName(t.columns[i].name)
}

func (t *target) fold(name string) string {
	if t.mapping.Names != nil {
		return name
	}
	return table.FoldName(name)
}
