package mark

import (
	"fmt"
	"slices"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Mark is what a field is marked as. Marks of one field are joined with |.
type Mark uint8

const (
	None Mark = 0
	JSON Mark = 1 << iota
	Geography
)

func (m Mark) String() string {
	switch m {
	case None:
		return "nothing"
	case JSON:
		return "JSON"
	case Geography:
		return "GEOGRAPHY"
	}
	return "JSON and GEOGRAPHY"
}

// Type is the type of a marked column.
func (m Mark) Type() table.Type {
	if m == Geography {
		return table.Geography
	}
	return table.JSON
}

// Paths are the fields that options mark by path. It is used by one goroutine, while a plan is made.
type Paths struct {
	marks map[string]Mark
	met   map[string]bool
}

// NewPaths makes Paths of dotted paths from the root, such as "event.details"; the same one twice is one.
func NewPaths(json, geography []string) *Paths {
	p := &Paths{marks: map[string]Mark{}, met: map[string]bool{}}
	for _, path := range json {
		p.marks[path] |= JSON
	}
	for _, path := range geography {
		p.marks[path] |= Geography
	}
	return p
}

// Of is how the field at path is marked, by its path or by other means, which the caller tells. The field exists: its path
// is not reported by Unmatched. The error is that of a field with both marks.
func (p *Paths) Of(path string, other Mark) (Mark, error) {
	m := other
	if by, ok := p.marks[path]; ok {
		p.met[path] = true
		m |= by
	}
	if m == JSON|Geography {
		return None, fault(row.KindBoth, path, "marked as JSON and as GEOGRAPHY: expected one of them")
	}
	return m, nil
}

// Unmatched returns a fault for every path that Of was not asked about, in the order of the paths.
func (p *Paths) Unmatched() (faults []error) {
	var paths []string
	for path := range p.marks {
		if !p.met[path] {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		faults = append(faults, fault(row.KindPath, path, "no column has this path, which is marked as "+p.marks[path].String()+
			": expected declared names from the root, with dots, and none inside a JSON column"))
	}
	return faults
}

// Refuse is the fault of a marked field that is not what a mark goes on: what says what it is, "an INT64".
func (m Mark) Refuse(path, what, expected string) error {
	return fault(row.KindMark, path, fmt.Sprintf("marked as %v and is %s: expected %s", m, what, expected))
}

func fault(kind row.Kind, path, msg string) error {
	return &row.Error{Kind: kind, Path: path, Offset: -1, Msg: msg}
}
