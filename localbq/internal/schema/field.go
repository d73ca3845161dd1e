package schema

import (
	"slices"
	"strings"
)

// Schema is the columns of a table, in order.
type Schema struct {
	Fields []*Field `json:"fields"`
}

// Field is one column, or one member of a STRUCT. The JSON form is what the store writes to disk.
type Field struct {
	Name string `json:"name"`
	// Key is the store's: see Identity.
	Key  string `json:"key,omitempty"`
	Type Type   `json:"type"`
	Mode Mode   `json:"mode,omitempty"`
	// Unsaid says that table resources leave mode NULLABLE out, as BigQuery's do of columns that DDL has made.
	Unsaid bool `json:"unsaid,omitempty"`
	// Fields are the members; only for Struct.
	Fields []*Field `json:"fields,omitempty"`
	// RangeElement is Date, DateTime or Timestamp; only for Range.
	RangeElement Type `json:"rangeElement,omitempty"`

	Description string `json:"description,omitempty"`
	// MaxLength is in characters for String and in bytes for Bytes; 0 is unlimited.
	MaxLength int64 `json:"maxLength,omitempty"`
	// Precision and Scale are decimal digits, for Numeric and BigNumeric; Precision 0 is the type's own range.
	Precision int64 `json:"precision,omitempty"`
	Scale     int64 `json:"scale,omitempty"`
	// TimestampPrecision is 12 for a TIMESTAMP of picoseconds; 0 and 6 are microseconds.
	TimestampPrecision int64    `json:"timestampPrecision,omitempty"`
	Default            string   `json:"default,omitempty"` // SQL expression, "" is none
	Collation          string   `json:"collation,omitempty"`
	RoundingMode       string   `json:"roundingMode,omitempty"`
	PolicyTags         []string `json:"policyTags,omitempty"`
	Categories         []string `json:"categories,omitempty"`
}

// Field finds a column by name, ignoring case as BigQuery does; nil when there is none.
func (s *Schema) Field(name string) *Field {
	if s == nil {
		return nil
	}
	return find(s.Fields, name)
}

// Index is the position of the column of that name, ignoring case; -1 when there is none.
func (s *Schema) Index(name string) int {
	return slices.IndexFunc(s.Fields, func(f *Field) bool { return strings.EqualFold(f.Name, name) })
}

// Field finds a STRUCT's member by name, ignoring case; nil when there is none.
func (f *Field) Field(name string) *Field { return find(f.Fields, name) }

func find(fields []*Field, name string) *Field {
	for _, f := range fields {
		if strings.EqualFold(f.Name, name) {
			return f
		}
	}
	return nil
}

// Clone is a deep copy, for whoever wants to change it; the clone of nil is an empty schema.
func (s *Schema) Clone() *Schema {
	if s == nil {
		return &Schema{}
	}
	return &Schema{Fields: cloneFields(s.Fields)}
}

func cloneFields(fields []*Field) []*Field {
	if fields == nil {
		return nil
	}
	out := make([]*Field, len(fields))
	for i, f := range fields {
		c := *f
		c.Fields = cloneFields(f.Fields)
		c.PolicyTags = slices.Clone(f.PolicyTags)
		c.Categories = slices.Clone(f.Categories)
		out[i] = &c
	}
	return out
}

// LeaveModesUnsaid makes the columns such that DDL has made.
func (s *Schema) LeaveModesUnsaid() {
	if s == nil {
		return
	}
	for _, f := range s.Fields {
		f.LeaveModeUnsaid()
	}
}

// LeaveModeUnsaid makes the column, with all its members, one that DDL has made.
func (f *Field) LeaveModeUnsaid() {
	f.Unsaid = true
	for _, m := range f.Fields {
		m.LeaveModeUnsaid()
	}
}

// Picos reports whether the column is a TIMESTAMP of picoseconds.
func (f *Field) Picos() bool { return f.Type == Timestamp && f.TimestampPrecision == 12 }

// Decimals is the precision and scale in force: the column's own, or those of the bare type (38,9 and 76,38).
func (f *Field) Decimals() (precision, scale int32) {
	switch {
	case f.Precision > 0:
		return int32(f.Precision), int32(f.Scale)
	case f.Type == BigNumeric:
		return 76, 38
	default:
		return 38, 9
	}
}
