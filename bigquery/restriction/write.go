package restriction

import (
	"github.com/millrace-dev/millrace/bigquery/table"
)

// MaxBytes is the most that a restriction may have, in UTF-8 (stream.proto, ReadSession.TableReadOptions.row_restriction:
// "1 MB").
const MaxBytes = 1_000_000

// Write writes a restriction that every row passes for which own and all conditions hold, "" where nothing can be written.
// own is a restriction in somebody's own words, "" for none; it is kept whole and as it is. Conditions are tried in their
// order, and those that do not fit into MaxBytes are left out, as are all where own cannot be put into parentheses without
// their meaning something else: where its quotes, comments or parentheses do not close.
//
// Columns are found in the schema by their exact name. A comparison is written where the session compares as SQL does and the
// value is of the column's type.
func Write(schema *table.Schema, own string, conditions ...Condition) string {
	text, _ := WriteUsed(schema, own, conditions...)
	return text
}

// WriteUsed is Write, and says of which conditions something was written.
func WriteUsed(schema *table.Schema, own string, conditions ...Condition) (text string, used []bool) {
	used = make([]bool, len(conditions))
	if own != "" && !closed(own) {
		return own, used
	}
	w := writer{schema: schema, most: MaxBytes}
	if own != "" {
		w.most -= len(before) + len(own) + len(between) + len(after)
	}
	if !w.join(" AND ", conditions, used) {
		return own, used
	}
	if own == "" {
		return string(w.b), used
	}
	return before + own + between + string(w.b) + after, used
}

// The lines keep a comment at the end of somebody's own words from what follows.
const before, between, after = "(\n", "\n)\nAND\n(\n", "\n)"

// writer writes conditions within bounds.
type writer struct {
	schema *table.Schema
	most   int
	b      []byte
	open   int // parentheses to be closed, each of which takes a byte
}

// join writes parts between parentheses, without those that cannot be, and reports whether there was one. used, where it is not
// nil, takes which.
func (w *writer) join(word string, parts []Condition, used []bool) bool {
	start := len(w.b)
	w.b = append(w.b, '(')
	w.open++
	n := 0
	for i := range parts {
		end := len(w.b)
		if n > 0 {
			w.b = append(w.b, word...)
		}
		if !w.condition(&parts[i]) {
			w.b = w.b[:end]
			continue
		}
		if n++; used != nil {
			used[i] = true
		}
	}
	w.open--
	if n == 0 {
		w.b = w.b[:start]
		return false
	}
	w.b = append(w.b, ')')
	return true
}

// either writes a disjunction: whole, or not at all.
func (w *writer) either(parts []Condition) bool {
	start := len(w.b)
	w.b = append(w.b, '(')
	w.open++
	defer func() { w.open-- }()
	for i := range parts {
		if i > 0 {
			w.b = append(w.b, " OR "...)
		}
		if !w.condition(&parts[i]) {
			w.b = w.b[:start]
			return false
		}
	}
	if len(parts) == 0 {
		w.b = w.b[:start]
		return false
	}
	w.b = append(w.b, ')')
	return true
}

// condition writes one, or nothing.
func (w *writer) condition(c *Condition) bool {
	switch c.kind {
	case all:
		return w.join(" AND ", c.parts, nil)
	case anyOf:
		return w.either(c.parts)
	case partition:
		return w.leaf(len(c.rendered), func(b []byte) []byte { return append(b, c.rendered...) })
	case null, notNull:
		return w.isNull(c)
	case comparison:
		return w.comparison(c)
	}
	return false
}

// leaf writes size bytes if they fit.
func (w *writer) leaf(size int, write func([]byte) []byte) bool {
	if size > w.most-w.open-len(w.b) {
		return false
	}
	w.b = write(w.b)
	return true
}

func (w *writer) column(name string) *table.Field {
	for i := range w.schema.Fields {
		if f := &w.schema.Fields[i]; f.Name == name && f.Mode != table.Repeated {
			return f
		}
	}
	return nil
}

func (w *writer) isNull(c *Condition) bool {
	f := w.column(c.column)
	if f == nil || !nullable(f.Type) {
		return false
	}
	text := " IS NULL)"
	if c.kind == notNull {
		text = " IS NOT NULL)"
	}
	name := QuoteName(c.column)
	return w.leaf(len(name)+len(text)+1, func(b []byte) []byte { return append(append(append(b, '('), name...), text...) })
}

func (w *writer) comparison(c *Condition) bool {
	f := w.column(c.column)
	if f == nil || !c.value.fits(f.Type) || !comparable(f.Type, c.op) || opText[c.op] == "" {
		return false
	}
	head := "(" + QuoteName(c.column) + " " + opText[c.op] + " "
	return w.leaf(len(head)+c.value.size()+1, func(b []byte) []byte { return append(c.value.append(append(b, head...)), ')') })
}

// QuoteName is a name in back-ticks.
func QuoteName(name string) string {
	return string(append(appendEscaped([]byte{'`'}, []byte(name), '`'), '`'))
}
