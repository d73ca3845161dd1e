package storageread

import (
	"strings"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// plan says how the fields of a record become values: one step for each field, in the order of the bytes.
type plan struct {
	steps []step
	width int // how many values come out

	constants []constant // columns that the session lacks
}

// constant is the default of a column.
type constant struct {
	slot  int
	value row.Value
}

// step reads one value.
type step struct {
	op       op
	slot     int  // which of the record's values it becomes; skipped when negative
	nullable bool // may be null in the bytes; see null and some
	refuse   bool // null in the bytes is an error, because the reader's schema says REQUIRED
	toDouble bool // an integer that the reader's schema calls FLOAT64
	toFloat  bool // and of 32 bits
	null     byte
	some     byte

	scale int64 // opDecimal
	sub   *plan // opStruct
	elem  *step // opArray
	name  string
}

const skipped = -1

// identity is the plan that reads every field into its own place. Records that the schema names several times share one
// plan.
func identity(n *node) *plan { return (&planner{made: map[*member]*plan{}}).identity(n) }

// text makes text of the bytes that become columns of text, in a plan that reads fields.
func (p *plan) text(fields []table.Field) {
	for k := range p.steps {
		s := &p.steps[k]
		if s.slot < 0 {
			continue
		}
		f := &fields[s.slot]
		if s.op == opArray {
			s = s.elem
		}
		switch {
		case s.op == opBytes && (f.Type == table.String || f.Type == table.JSON || f.Type == table.Geography):
			s.op = opText
		case s.op == opStruct && f.Type == table.Struct:
			s.sub.text(f.Fields)
		}
	}
}

type planner struct{ made map[*member]*plan }

func (p *planner) identity(n *node) *plan {
	if made := p.made[&n.fields[0]]; made != nil {
		return made
	}
	out := &plan{width: len(n.fields)}
	for i := range n.fields {
		s := p.step(n.fields[i].node, n.fields[i].name)
		s.slot = i
		out.steps = append(out.steps, s)
	}
	p.made[&n.fields[0]] = out
	return out
}

func (p *planner) step(n *node, name string) step {
	s := step{op: n.op, slot: skipped, nullable: n.nullable, null: n.null, some: n.some, scale: n.scale, name: name}
	switch n.op {
	case opStruct:
		s.sub = p.identity(n)
	case opArray:
		elem := p.step(n.elem, name)
		s.elem = &elem
	}
	return s
}

// resolve is the plan that reads the fields the reader's schema names, in its order, and skips the others. Names match
// as BigQuery's do, without case. It answers D-SCHEMA where no value could ever fit.
func resolve(n *node, want []table.Field, path string) (*plan, error) {
	all := &planner{made: map[*member]*plan{}}
	out := &plan{width: len(want)}
	found := make([]bool, len(want))
	for _, m := range n.fields {
		i := fieldIndex(want, m.name)
		if i < 0 {
			out.steps = append(out.steps, all.step(m.node, m.name))
			continue
		}
		s, err := all.resolveStep(m.node, &want[i], join(path, want[i].Name))
		if err != nil {
			return nil, err
		}
		s.slot, found[i] = i, true
		out.steps = append(out.steps, s)
	}
	for i, ok := range found {
		if !ok {
			return nil, resolveError(join(path, want[i].Name), "the session has no such column")
		}
	}
	return out, nil
}

func fieldIndex(fields []table.Field, name string) int {
	for i := range fields {
		if strings.EqualFold(fields[i].Name, name) {
			return i
		}
	}
	return -1
}

func resolveError(path, msg string) error {
	return &row.Error{Kind: row.KindResolve, Path: path, Offset: -1, Msg: msg}
}

func (p *planner) resolveStep(n *node, want *table.Field, path string) (step, error) {
	s := p.step(n, want.Name)
	if (want.Mode == table.Repeated) != (n.op == opArray) {
		return s, resolveError(path, "one side is REPEATED, the other is not")
	}
	if n.op == opArray {
		element := *want
		element.Mode = table.Required
		elem, err := p.resolveStep(n.elem, &element, path)
		s.elem = &elem
		return s, err
	}
	s.refuse = n.nullable && want.Mode == table.Required
	if want.Type == table.Struct && n.typ == table.Struct {
		var err error
		s.sub, err = resolve(n, want.Fields, path)
		return s, err
	}
	if !readable(n, want) {
		return s, resolveError(path, "the reader asks for "+want.Type.String()+", the session has "+n.typ.String()+" of another form")
	}
	s.toDouble = n.typ == table.Int64 && want.Type == table.Float64
	if n.op == opDateTime && want.Type != table.DateTime {
		s.op = opBytes
	}
	return s, nil
}

// readable reports whether values of n can be read as want: the same type, an integer as FLOAT64, and whatever differs
// by its annotation alone.
func readable(n *node, want *table.Field) bool {
	switch want.Type {
	case table.Numeric, table.BigNumeric:
		precision, scale := decimalOf(want)
		return n.op == opDecimal && n.precision == precision && n.scale == scale
	case table.Range:
		return n.typ == table.Range && n.element == want.Range
	case table.Float64:
		return n.typ == table.Float64 || n.typ == table.Int64
	case table.Int64:
		return n.op == opInt || n.op == opLong
	case table.String, table.Bytes:
		return n.op == opBytes || n.op == opDateTime
	case table.JSON, table.Geography:
		return n.typ == want.Type || n.typ == table.String
	}
	return n.typ == want.Type
}

func decimalOf(f *table.Field) (precision, scale int64) {
	switch {
	case f.Precision != 0:
		return f.Precision, f.Scale
	case f.Type == table.Numeric:
		return 38, 9
	}
	return 77, 38
}
