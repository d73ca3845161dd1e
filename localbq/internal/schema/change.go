package schema

import (
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// Change says what a schema update does, beyond texts. Windows of propagation differ by it.
type Change struct {
	Adds    bool // a new column somewhere
	Relaxes bool // REQUIRED to NULLABLE somewhere
	Texts   bool // descriptions, defaults, policy tags
	Drops   bool `json:",omitempty"` // a column that was there, if one of its name and another type is there now
}

// Widen compares the schema of table (as "p:d.t") with the one a patch or update asks for, and refuses what BigQuery
// refuses: anything but appending NULLABLE or REPEATED columns (also inside structs), REQUIRED to NULLABLE, and texts.
func Widen(table string, from, to *Schema) (Change, error) {
	w := widening{table: table}
	if from == nil {
		from = &Schema{}
	}
	if to == nil {
		to = &Schema{}
	}
	// A table made without columns takes any columns, REQUIRED ones too, as long as it is given its first schema.
	w.first = len(from.Fields) == 0
	err := w.fields(from.Fields, to.Fields, "")
	return w.change, err
}

type widening struct {
	table  string
	first  bool
	change Change
}

func (w *widening) refuse(format string, args ...any) error {
	return refusal.New(refusal.Invalid, "Provided Schema does not match Table "+w.table+". "+format, args...)
}

func (w *widening) fields(from, to []*Field, parent string) error {
	for _, old := range from {
		if find(to, old.Name) == nil {
			return w.refuse("Field %s is missing in new schema", join(parent, old.Name))
		}
	}
	for i, f := range to {
		path := join(parent, f.Name)
		old := find(from, f.Name)
		if old == nil {
			if err := w.added(f, path); err != nil {
				return err
			}
			continue
		}
		if i >= len(from) || !strings.EqualFold(from[i].Name, f.Name) {
			return w.refuse("Field %s has changed position: new columns go after the existing ones, which keep their order", path)
		}
		if err := w.kept(old, f, path); err != nil {
			return err
		}
	}
	return nil
}

func (w *widening) added(f *Field, path string) error {
	if f.Mode == Required && !w.first {
		return w.refuse("Cannot add required fields to an existing schema. (field: %s)", path)
	}
	w.change.Adds = true
	return nil
}

func (w *widening) kept(old, f *Field, path string) error {
	if old.Type != f.Type || old.RangeElement != f.RangeElement {
		return w.refuse("Field %s has changed type from %s to %s", path, old.typeText(), f.typeText())
	}
	if old.Mode != f.Mode {
		if old.Mode != Required || f.Mode != Nullable {
			return w.refuse("Field %s has changed mode from %s to %s", path, old.Mode, f.Mode)
		}
		w.change.Relaxes = true
	}
	if err := w.parameters(old, f, path); err != nil {
		return err
	}
	if old.Description != f.Description || old.Default != f.Default || strings.Join(old.PolicyTags, "\n") != strings.Join(f.PolicyTags, "\n") {
		w.change.Texts = true
	}
	return w.fields(old.Fields, f.Fields, path)
}

// parameters lets a length or a precision grow and refuses that it shrinks, 0 being unlimited.
func (w *widening) parameters(old, f *Field, path string) error {
	unlimited := f.MaxLength == 0
	if f.MaxLength != old.MaxLength && !unlimited && (old.MaxLength == 0 || f.MaxLength < old.MaxLength) {
		return w.refuse("Field %s has changed max length from %d to %d", path, old.MaxLength, f.MaxLength)
	}
	if (f.Precision != old.Precision || f.Scale != old.Scale) && f.Precision != 0 &&
		(old.Precision == 0 || f.Scale < old.Scale || f.Precision-f.Scale < old.Precision-old.Scale) {
		return w.refuse("Field %s has changed precision from (%d,%d) to (%d,%d)", path, old.Precision, old.Scale, f.Precision, f.Scale)
	}
	if f.Picos() != old.Picos() {
		return w.refuse("Field %s has changed timestamp precision", path)
	}
	return nil
}

func (f *Field) typeText() string {
	if f.Type == Range {
		return "RANGE<" + f.RangeElement.String() + ">"
	}
	return f.Type.Legacy()
}
