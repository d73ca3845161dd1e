package schema

import "fmt"

// Sound says why no code could work with a definition, whoever wrote it: Check never let it through. Other than Check's, its
// rules are not BigQuery's and stay as they are, so that what was written once is read for ever.
func (d *Definition) Sound() error {
	if d.Schema == nil {
		if len(d.PrimaryKey) > 0 {
			return fmt.Errorf("a primary key without columns")
		}
		return nil
	}
	if err := sound(d.Schema.Fields, 0); err != nil {
		return err
	}
	for _, name := range d.PrimaryKey {
		f := d.Schema.Field(name)
		if f == nil || f.Mode == Repeated || f.Type == Struct || f.Type == Range || f.Type == Interval {
			return fmt.Errorf("column %q cannot be a key", name)
		}
	}
	return nil
}

// soundDepth is far above Check's bound, and keeps the stack.
const soundDepth = 64

func sound(fields []*Field, depth int) error {
	if depth > soundDepth {
		return fmt.Errorf("columns are nested more than %d levels deep", soundDepth)
	}
	for i, f := range fields {
		if f == nil {
			return fmt.Errorf("column %d is null", i)
		}
		if err := f.sound(depth); err != nil {
			return fmt.Errorf("column %q: %w", f.Name, err)
		}
	}
	return nil
}

func (f *Field) sound(depth int) error {
	precision, scale := f.Decimals()
	switch {
	case f.Type == 0 || int(f.Type) >= len(sqlNames) || int(f.Mode) >= len(modeNames):
		return fmt.Errorf("%s %s is unknown", f.Mode, f.Type)
	case f.Type == Range && f.RangeElement != Date && f.RangeElement != DateTime && f.RangeElement != Timestamp:
		return fmt.Errorf("a range of %s", f.RangeElement)
	case (f.Type == Struct) != (len(f.Fields) > 0):
		return fmt.Errorf("a %s with %d members", f.Type, len(f.Fields))
	case (f.Type == Numeric || f.Type == BigNumeric) && (scale < 0 || scale > precision || precision > 76 || f.Type == Numeric && precision > 38):
		return fmt.Errorf("%s(%d,%d)", f.Type, f.Precision, f.Scale)
	}
	return sound(f.Fields, depth+1)
}
