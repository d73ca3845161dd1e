package table

import (
	"errors"
	"fmt"
	"slices"
)

// ErrUnion is found in the errors of schemas that no table could serve both of.
var ErrUnion = errors.New("the schemas have no union")

// UnionOptions says how far a table may be changed. The zero value lets it be.
type UnionOptions struct {
	AllowNewFields       bool // columns, and members of STRUCTs, may be added
	AllowFieldRelaxation bool // REQUIRED columns may become NULLABLE
}

// Union is the least schema that s, a table's, can be changed into and that takes what is made for want. Columns are paired
// by name, ignoring case. Those that s has stay in place with all their attributes; those it lacks follow, NULLABLE where
// they were REQUIRED, since rows without them are there already. A REQUIRED column that want has otherwise is relaxed if
// that is allowed, and left if not. Union with a union changes nothing.
//
// The error joins everything that cannot be, wrapping ErrUnion: a column that changes its type or becomes a list or none,
// and columns that may not be added.
func (s *Schema) Union(want *Schema, o UnionOptions) (*Schema, error) {
	u := union{options: o}
	out := &Schema{Fields: u.fields(s.Fields, want.Fields, "")}
	if len(u.faults) > 0 {
		return nil, errors.Join(u.faults...)
	}
	return out, nil
}

type union struct {
	options UnionOptions
	faults  []error
}

func (u *union) fault(path, format string, args ...any) {
	u.faults = append(u.faults, fmt.Errorf("%w: column %s: %s", ErrUnion, path, fmt.Sprintf(format, args...)))
}

func (u *union) fields(have, want []Field, parent string) []Field {
	out := slices.Clone(have)
	index := make(map[string]int, len(have))
	for i := range have {
		index[FoldName(have[i].Name)] = i
	}
	for i := range want {
		w := &want[i]
		at, ok := index[FoldName(w.Name)]
		switch {
		case ok:
			u.field(&out[at], w, Join(parent, out[at].Name))
		case u.options.AllowNewFields:
			out = append(out, relaxed(w))
		default:
			u.fault(Join(parent, w.Name), "is new, and adding columns is not allowed")
		}
	}
	return out
}

// field changes f, a copy, for w.
func (u *union) field(f, w *Field, path string) {
	if f.Type != w.Type || f.Range != w.Range {
		u.fault(path, "is %s, and %s elsewhere: types cannot change", f.baseText(), w.baseText())
		return
	}
	if (f.Mode == Repeated) != (w.Mode == Repeated) {
		u.fault(path, "is %v, and %v elsewhere: a column cannot become a list, or stop being one", f.Mode, w.Mode)
		return
	}
	if f.Mode == Required && w.Mode != Required && u.options.AllowFieldRelaxation {
		f.Mode = Nullable
	}
	if f.Type == Struct {
		f.Fields = u.fields(f.Fields, w.Fields, path)
	}
}

// baseText is the type without its parameters.
func (f *Field) baseText() string {
	if f.Type == Range {
		return f.TypeText()
	}
	return f.Type.String()
}

// relaxed is a column that is added to a table with rows.
func relaxed(f *Field) Field {
	out := *f
	if out.Mode == Required {
		out.Mode = Nullable
	}
	out.PolicyTags = slices.Clone(f.PolicyTags)
	out.Fields = slices.Clone(f.Fields)
	for i := range out.Fields {
		out.Fields[i] = relaxed(&out.Fields[i])
	}
	return out
}
