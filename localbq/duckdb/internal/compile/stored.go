package compile

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// Stored is a column of a stored table that a plan reads: c5, or c5_0_2 for a member of a member of it. Reading members by
// themselves spares reading the rest of a wide struct.
type Stored struct {
	Name string
	// Path is the index of the column, and those of members below it. None of the structs on the way is an array.
	Path []int
	Type Type
}

// scanned is one use of a stored table in a statement.
type scanned struct {
	id     int64
	fields []*schema.Field
}

// storedColumns are the columns of a table that is scanned under a name. Those from index visible on are not part of *.
func storedColumns(fields []*schema.Field, visible int, name string) []column {
	var out []column
	for i, f := range fields {
		out = append(out, column{name: f.Name, typ: TypeOf(f), sql: fmt.Sprintf("%s.c%d", name, i), stored: true, pseudo: i >= visible})
	}
	return out
}

var storedName = regexp.MustCompile(`\b(t\d+)\.(c\d+(?:_\d+)*)\b`)

// readColumns are the columns of each scan that the text names. A text literal that looks like a column only adds one.
func (c *compiler) readColumns(sql string) map[int64][]Stored {
	out := map[int64][]Stored{}
	for _, r := range c.reads {
		out[r.id] = nil
	}
	for _, m := range storedName.FindAllStringSubmatch(sql, -1) {
		r, ok := c.reads[m[1]]
		if !ok || slices.ContainsFunc(out[r.id], func(s Stored) bool { return s.Name == m[2] }) {
			continue
		}
		if s, ok := r.column(m[2]); ok {
			out[r.id] = append(out[r.id], s)
		}
	}
	return out
}

// column finds what a name such as c5_0_2 stands for.
func (r scanned) column(name string) (Stored, bool) {
	s := Stored{Name: name}
	t := Type{Kind: schema.Struct}
	for _, f := range r.fields {
		t.Fields = append(t.Fields, Field{f.Name, TypeOf(f)})
	}
	for step := range strings.SplitSeq(name[1:], "_") {
		i, err := strconv.Atoi(step)
		if err != nil || !t.is(schema.Struct) || i >= len(t.Fields) {
			return s, false
		}
		s.Path = append(s.Path, i)
		t = t.Fields[i].Type
	}
	s.Type = t
	return s, true
}
