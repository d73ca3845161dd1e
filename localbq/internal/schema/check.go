package schema

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// Limits of a table definition (BigQuery documentation, "Quotas and limits", "Schemas").
const (
	maxColumns    = 10_000
	maxDepth      = 15  // RECORD columns within one another
	maxNameLength = 300 // characters
	refusedRunes  = "!\"$()*,./;?@[\\]^`{}~"
)

// refusedPrefixes may not begin a column name, in any case (BigQuery documentation, "Column names").
var refusedPrefixes = []string{"_TABLE_", "_FILE_", "_PARTITION", "_ROW_TIMESTAMP", "__ROOT__", "_COLIDENTIFIER"}

// changeColumns carry change data capture and are never columns.
var changeColumns = []string{"_CHANGE_TYPE", "_CHANGE_SEQUENCE_NUMBER"}

// Check refuses a definition that BigQuery would refuse.
func (d *Definition) Check() error {
	if d.Schema != nil {
		if err := d.Schema.Check(); err != nil {
			return err
		}
	}
	if err := d.checkPartitioning(); err != nil {
		return err
	}
	if err := d.checkClustering(); err != nil {
		return err
	}
	return d.checkKeys()
}

// Check refuses columns that BigQuery would refuse: names, members, and options that do not fit their types.
func (s *Schema) Check() error {
	count := 0
	return checkFields(s.Fields, "", 0, &count)
}

// checkFields checks the columns inside of depth RECORD columns.
func checkFields(fields []*Field, parent string, depth int, count *int) error {
	if depth > maxDepth {
		return invalid("Field %s is nested too deeply: at most %d levels of nesting are allowed", parent, maxDepth)
	}
	seen := make(map[string]bool, len(fields))
	for _, f := range fields {
		if *count++; *count > maxColumns {
			return invalid("Too many total leaf fields: at most %d columns are allowed", maxColumns)
		}
		if err := checkName(f.Name); err != nil {
			return err
		}
		path := join(parent, f.Name)
		if key := strings.ToLower(f.Name); seen[key] {
			return invalid("Field %s already exists in schema", path)
		} else {
			seen[key] = true
		}
		if err := f.check(path); err != nil {
			return err
		}
		if f.Type != Struct {
			continue
		}
		if err := checkFields(f.Fields, path, depth+1, count); err != nil {
			return err
		}
	}
	return nil
}

func checkName(name string) error {
	if name == "" || utf8.RuneCountInString(name) > maxNameLength || strings.ContainsAny(name, refusedRunes) || !utf8.ValidString(name) {
		return invalid("Invalid field name %q. Fields must contain the allowed characters, and be at most %d characters long. "+
			"For allowed characters, please refer to https://cloud.google.com/bigquery/docs/schemas#column_names", name, maxNameLength)
	}
	upper := strings.ToUpper(name)
	for _, prefix := range refusedPrefixes {
		if strings.HasPrefix(upper, prefix) {
			return invalid("Invalid field name %q. Field names are not allowed to start with the (case-insensitive) prefixes %s",
				name, strings.Join(refusedPrefixes, ", "))
		}
	}
	if slices.Contains(changeColumns, upper) {
		return invalid("Invalid field name %q. The name is reserved for change data capture", name)
	}
	return nil
}

func (f *Field) check(path string) error {
	switch {
	case f.Type == Struct && len(f.Fields) == 0:
		return invalid("Field %s is type RECORD but has no schema", path)
	case f.Type != Struct && len(f.Fields) > 0:
		return invalid("Field %s is type %s but has a schema", path, f.Type.Legacy())
	case f.MaxLength != 0 && f.Type != String && f.Type != Bytes:
		return invalid("Field %s: maxLength can only be set on fields of type STRING or BYTES, not %s", path, f.Type.Legacy())
	case f.MaxLength < 0:
		return invalid("Field %s: maxLength must be positive, got %d", path, f.MaxLength)
	case f.Collation != "" && f.Collation != "und:ci":
		return invalid("Field %s: collation must be 'und:ci' or empty, got %q", path, f.Collation)
	case f.Collation != "" && f.Type != String && f.Type != Struct:
		return invalid("Field %s: collation can only be set on fields of type STRING, not %s", path, f.Type.Legacy())
	}
	if err := f.checkDecimals(path); err != nil {
		return err
	}
	return f.checkTemporal(path)
}

// checkDecimals holds the ranges of parameterized NUMERIC and BIGNUMERIC: NUMERIC(P,S) has S in 0..9 and P in
// max(1,S)..S+29, BIGNUMERIC(P,S) has S in 0..38 and P in max(1,S)..S+38 (table.proto, TableFieldSchema.precision).
func (f *Field) checkDecimals(path string) error {
	if f.Precision == 0 && f.Scale == 0 && f.RoundingMode == "" {
		return nil
	}
	maxScale, integers := int64(9), int64(29)
	switch f.Type {
	case Numeric:
	case BigNumeric:
		maxScale, integers = 38, 38
	default:
		return invalid("Field %s: precision, scale and roundingMode can only be set on fields of type NUMERIC or BIGNUMERIC, not %s",
			path, f.Type.Legacy())
	}
	if m := f.RoundingMode; m != "" && m != "ROUND_HALF_AWAY_FROM_ZERO" && m != "ROUND_HALF_EVEN" {
		return invalid("Field %s: roundingMode must be ROUND_HALF_AWAY_FROM_ZERO or ROUND_HALF_EVEN, got %q", path, m)
	}
	if f.Precision == 0 && f.Scale != 0 {
		return invalid("Field %s: scale is set but precision is not", path)
	}
	if f.Precision != 0 && (f.Scale < 0 || f.Scale > maxScale || f.Precision < max(1, f.Scale) || f.Precision > f.Scale+integers) {
		return invalid("Field %s: %s(%d,%d) is out of range: scale must be between 0 and %d, precision between max(1,scale) and scale+%d",
			path, f.Type, f.Precision, f.Scale, maxScale, integers)
	}
	return nil
}

func (f *Field) checkTemporal(path string) error {
	if f.TimestampPrecision != 0 {
		if f.Type != Timestamp {
			return invalid("Field %s: timestampPrecision can only be set on fields of type TIMESTAMP, not %s", path, f.Type.Legacy())
		}
		if f.TimestampPrecision != 6 && f.TimestampPrecision != 12 {
			return invalid("Field %s: timestampPrecision must be 6 or 12, got %d", path, f.TimestampPrecision)
		}
	}
	element := f.RangeElement == Date || f.RangeElement == DateTime || f.RangeElement == Timestamp
	switch {
	case f.Type == Range && !element:
		return invalid("Field %s is type RANGE: rangeElementType must be DATE, DATETIME or TIMESTAMP", path)
	case f.Type != Range && f.RangeElement != 0:
		return invalid("Field %s: rangeElementType can only be set on fields of type RANGE, not %s", path, f.Type.Legacy())
	}
	return nil
}

func (d *Definition) checkKeys() error {
	if len(d.PrimaryKey) > 16 {
		return invalid("Primary key has %d columns: at most 16 are allowed", len(d.PrimaryKey))
	}
	for _, name := range d.PrimaryKey {
		switch f := d.Schema.Field(name); {
		case f == nil:
			return invalid("Primary key column %s does not exist in the schema", name)
		case f.Mode == Repeated || f.Type == Struct || f.Type == JSON || f.Type == Geography || f.Type == Range || f.Type == Interval:
			return invalid("Primary key column %s has a type that cannot be a key: %s %s", name, f.Mode, f.Type)
		}
	}
	for _, key := range d.ForeignKeys {
		for _, name := range key.Columns {
			if d.Schema.Field(name) == nil {
				return invalid("Foreign key column %s does not exist in the schema", name)
			}
		}
	}
	return nil
}

func join(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}

func invalid(format string, args ...any) error { return refusal.New(refusal.Invalid, format, args...) }
