package schema

import (
	"fmt"
	"strings"
)

// A column that is dropped and one that is added later under its name are two columns, and one that is renamed stays one. So
// columns are told apart by their keys, which the store gives them: "" is the name itself, as of all columns of tables whose
// columns were never renamed or added again.

// newKey is the key of a column that has just been made. No column can be called that.
const newKey = "."

// Identity tells the column from all others that its table ever had. Members of columns have none but their names.
func (f *Field) Identity() string {
	if f.Key != "" {
		return f.Key
	}
	return f.Name
}

// Same reports whether two definitions of one table mean the same column.
func (f *Field) Same(other *Field) bool { return strings.EqualFold(f.Identity(), other.Identity()) }

// Rename gives the column another name, under which it keeps its values.
func (f *Field) Rename(name string) { f.Key, f.Name = f.Identity(), name }

// Renew makes the column another one, which has no values yet, whatever column of its name there was.
func (f *Field) Renew() { f.Key = newKey }

// Unidentified is the schema for another table: its columns have their names for keys.
func (s *Schema) Unidentified() *Schema {
	if s == nil {
		return nil
	}
	out := s.Clone()
	for _, f := range out.Fields {
		f.Key = ""
	}
	return out
}

// Identify gives every column of s, which takes the place of old, its key: that of the column of its name, unless it is a new one.
// Used tells which keys the table has had; version makes others of them.
func (s *Schema) Identify(old *Schema, used func(key string) bool, version int64) {
	if s == nil {
		return
	}
	for _, f := range s.Fields {
		if f.Key == "" {
			if before := old.Field(f.Name); before != nil {
				f.Key = before.Key
				continue
			}
		} else if f.Key != newKey {
			continue
		}
		f.Key = ""
		for used(f.Identity()) {
			f.Key = fmt.Sprintf("%s.%d", f.Name, version)
			version++
		}
	}
}

// Alter compares the schema of table with the one that a statement makes of it. Beside what Widen allows, columns may be
// dropped, renamed and given another type that their values can be converted to.
func Alter(table string, from, to *Schema) (Change, error) {
	expected, altered := &Schema{}, Change{}
	for _, old := range from.Clone().Fields {
		f := to.same(old)
		if f == nil {
			altered.Drops = true
			continue
		}
		if f.Name != old.Name {
			altered.Drops, altered.Adds = true, true
			old.Name = f.Name
		}
		if old.become(f) {
			altered.Drops, altered.Adds = true, true
		}
		expected.Fields = append(expected.Fields, old)
	}
	change, err := Widen(table, expected, to)
	change.Drops, change.Adds = change.Drops || altered.Drops, change.Adds || altered.Adds
	return change, err
}

// become gives the column, and members of it, the types of another that their values can be converted to, and reports whether
// there was any.
func (f *Field) become(to *Field) (changed bool) {
	if Converts(f.Type, to.Type) {
		f.Type, f.Precision, f.Scale, changed = to.Type, to.Precision, to.Scale, true
	}
	for _, m := range f.Fields {
		if next := to.Field(m.Name); next != nil && m.become(next) {
			changed = true
		}
	}
	return changed
}

func (s *Schema) same(f *Field) *Field {
	if s != nil {
		for _, g := range s.Fields {
			if g.Same(f) {
				return g
			}
		}
	}
	return nil
}

// Converts reports whether values of one type may become those of the other when a column is given it (BigQuery documentation,
// "ALTER COLUMN SET DATA TYPE statement").
func Converts(from, to Type) bool {
	switch from {
	case Int64:
		return to == Numeric || to == BigNumeric || to == Float64
	case Numeric:
		return to == BigNumeric || to == Float64
	}
	return false
}
