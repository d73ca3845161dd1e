package table

import (
	"fmt"
	"slices"
)

// Equal says whether two schemas are the same in everything, the spelling of names and the order of columns included.
func (s *Schema) Equal(o *Schema) bool {
	if s == nil || o == nil {
		return s == o
	}
	return equalFields(s.Fields, o.Fields)
}

func equalFields(a, b []Field) bool {
	return slices.EqualFunc(a, b, func(x, y Field) bool { return x.equal(&y) })
}

func (f *Field) equal(o *Field) bool {
	return equalFields(f.Fields, o.Fields) && slices.Equal(f.PolicyTags, o.PolicyTags) && f.scalars() == o.scalars()
}

// scalars is everything of a field that == can compare.
func (f *Field) scalars() any {
	return [...]any{f.Name, f.Type, f.Mode, f.Range, f.Description, f.MaxLength, f.Precision, f.Scale,
		f.TimestampPrecision, f.Default, f.Collation, f.RoundingMode}
}

// Change is the class of a Difference.
type Change uint8

const (
	Added     Change = iota + 1 // the other schema has a column that this one lacks
	Removed                     // the other schema lacks a column that this one has
	Retyped                     // type, range element, length, precision or scale differ
	Remoded                     // the mode differs
	Reworded                    // description, default, collation, rounding mode or policy tags differ
	Reordered                   // the columns both have stand in another order; said once for each parent
)

func (c Change) String() string {
	names := [...]string{"", "added", "removed", "retyped", "remoded", "reworded", "reordered"}
	if int(c) < len(names) && c > 0 {
		return names[c]
	}
	return fmt.Sprintf("Change(%d)", uint8(c))
}

// Difference is one way in which a schema differs from another.
type Difference struct {
	Change Change
	Path   string // dotted, spelled as the schema that has the column spells it; "" is the table
	Msg    string // in words: "is INT64, wanted STRING"
}

func (d Difference) String() string {
	switch {
	case d.Change == Reordered && d.Path == "":
		return "columns " + d.Msg
	case d.Change == Reordered:
		return "members of column " + d.Path + " " + d.Msg
	}
	return "column " + d.Path + " " + d.Msg
}

// Diff says what would have to change about s for it to be want. Columns are paired by name, ignoring case, at every
// level. An empty answer means that rows made for one fit the other.
func (s *Schema) Diff(want *Schema) []Difference {
	return diffFields(nil, s.Fields, want.Fields, "")
}

func diffFields(out []Difference, have, want []Field, parent string) []Difference {
	index := make(map[string]int, len(have))
	for i := range have {
		index[FoldName(have[i].Name)] = i
	}
	last, ordered := -1, true
	for i := range want {
		w := &want[i]
		key := FoldName(w.Name)
		at, ok := index[key]
		if !ok {
			out = append(out, Difference{Added, Join(parent, w.Name), "is missing, wanted " + w.describe()})
			continue
		}
		ordered = ordered && at > last
		last = at
		delete(index, key)
		out = have[at].diff(out, w, Join(parent, have[at].Name))
	}
	for i := range have {
		if _, left := index[FoldName(have[i].Name)]; left {
			out = append(out, Difference{Removed, Join(parent, have[i].Name), "is not wanted"})
		}
	}
	if !ordered {
		out = append(out, Difference{Reordered, parent, "in another order than wanted"})
	}
	return out
}

func (f *Field) diff(out []Difference, w *Field, path string) []Difference {
	if f.TypeText() != w.TypeText() {
		return append(out, Difference{Retyped, path, "is " + f.TypeText() + ", wanted " + w.TypeText()})
	}
	if f.Mode != w.Mode {
		out = append(out, Difference{Remoded, path, "is " + f.Mode.String() + ", wanted " + w.Mode.String()})
	}
	if !f.sameWords(w) {
		out = append(out, Difference{Reworded, path, "differs in description, default, collation, rounding mode or policy tags"})
	}
	return diffFields(out, f.Fields, w.Fields, path)
}

func (f *Field) sameWords(w *Field) bool {
	return f.Description == w.Description && f.Default == w.Default && f.Collation == w.Collation &&
		f.RoundingMode == w.RoundingMode && slices.Equal(f.PolicyTags, w.PolicyTags)
}

func (f *Field) describe() string { return f.TypeText() + " " + f.Mode.String() }

// TypeText is the type with its parameters, as GoogleSQL writes it; the members of a STRUCT are left out.
func (f *Field) TypeText() string {
	switch {
	case f.Type == Range:
		return "RANGE<" + elementName(f.Range) + ">"
	case f.MaxLength > 0:
		return fmt.Sprintf("%v(%d)", f.Type, f.MaxLength)
	case f.Precision > 0 && f.Scale > 0:
		return fmt.Sprintf("%v(%d, %d)", f.Type, f.Precision, f.Scale)
	case f.Precision > 0:
		return fmt.Sprintf("%v(%d)", f.Type, f.Precision)
	case f.TimestampPrecision > 6:
		return fmt.Sprintf("%v(%d)", f.Type, f.TimestampPrecision)
	}
	return f.Type.String()
}
