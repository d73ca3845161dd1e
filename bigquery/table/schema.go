package table

import (
	"fmt"
	"strings"
)

// Schema is the columns of a table, in order. Schemas are values passed by pointer and never changed after they have
// been handed over.
type Schema struct {
	Fields []Field
}

// Field is one column, or one member of a STRUCT.
type Field struct {
	Name string
	Type Type
	Mode Mode

	Fields []Field // members, for Struct only
	Range  Type    // element type (Date, DateTime, Timestamp), for Range only

	Description        string
	MaxLength          int64  // characters (String) or bytes (Bytes); 0 is unlimited
	Precision          int64  // Numeric, BigNumeric; 0 is the type's own
	Scale              int64  // Numeric, BigNumeric, with Precision
	TimestampPrecision int64  // Timestamp: 6 or 12; 0 is 6
	Default            string // SQL expression; "" is none
	Collation          string // "und:ci"; "" is none
	RoundingMode       string // "ROUND_HALF_AWAY_FROM_ZERO", "ROUND_HALF_EVEN"; "" is the dataset's
	PolicyTags         []string
}

// Type is a column's type. The zero value is invalid.
type Type uint8

const (
	Bool       Type = iota + 1 // BOOL
	Int64                      // INT64
	Float64                    // FLOAT64
	Numeric                    // NUMERIC: 29 integer and 9 fractional digits
	BigNumeric                 // BIGNUMERIC: about 38 and 38 digits
	String                     // STRING
	Bytes                      // BYTES
	Date                       // DATE
	Time                       // TIME, microseconds
	DateTime                   // DATETIME, microseconds, no zone
	Timestamp                  // TIMESTAMP, an instant, microseconds
	Interval                   // INTERVAL
	Geography                  // GEOGRAPHY
	JSON                       // JSON
	Range                      // RANGE<DATE|DATETIME|TIMESTAMP>
	Struct                     // STRUCT, also called RECORD
)

var typeNames = [...]string{"", "BOOL", "INT64", "FLOAT64", "NUMERIC", "BIGNUMERIC", "STRING", "BYTES", "DATE", "TIME",
	"DATETIME", "TIMESTAMP", "INTERVAL", "GEOGRAPHY", "JSON", "RANGE", "STRUCT"}

// String is the type's GoogleSQL name.
func (t Type) String() string {
	if t == 0 || int(t) >= len(typeNames) {
		return fmt.Sprintf("Type(%d)", uint8(t))
	}
	return typeNames[t]
}

// ParseType reads a GoogleSQL name, or one of the names the REST API answers with (INTEGER, FLOAT, BOOLEAN, RECORD,
// DECIMAL, BIGDECIMAL), in any case.
func ParseType(s string) (Type, error) {
	switch u := strings.ToUpper(s); u {
	case "INTEGER":
		return Int64, nil
	case "FLOAT", "DOUBLE":
		return Float64, nil
	case "BOOLEAN":
		return Bool, nil
	case "RECORD":
		return Struct, nil
	case "DECIMAL":
		return Numeric, nil
	case "BIGDECIMAL":
		return BigNumeric, nil
	default:
		for t, name := range typeNames {
			if t > 0 && name == u {
				return Type(t), nil
			}
		}
	}
	return 0, fmt.Errorf("unknown column type %q: expected one of %s", s, strings.Join(typeNames[1:], ", "))
}

// Mode says how many values a column holds. The zero value is Nullable, BigQuery's own default.
type Mode uint8

const (
	Nullable Mode = iota
	Required
	Repeated
)

func (m Mode) String() string {
	switch m {
	case Nullable:
		return "NULLABLE"
	case Required:
		return "REQUIRED"
	case Repeated:
		return "REPEATED"
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// ParseMode reads a mode's name in any case; "" is Nullable.
func ParseMode(s string) (Mode, error) {
	switch strings.ToUpper(s) {
	case "", "NULLABLE":
		return Nullable, nil
	case "REQUIRED":
		return Required, nil
	case "REPEATED":
		return Repeated, nil
	}
	return 0, fmt.Errorf("unknown column mode %q: expected NULLABLE, REQUIRED or REPEATED", s)
}

// Field returns the column of that name, ignoring case as BigQuery does, or nil.
func (s *Schema) Field(name string) *Field {
	for i := range s.Fields {
		if strings.EqualFold(s.Fields[i].Name, name) {
			return &s.Fields[i]
		}
	}
	return nil
}
