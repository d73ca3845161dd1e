package schema

import (
	"fmt"
	"strings"
)

// Type is a column's type. The zero value is invalid.
type Type uint8

const (
	Bool Type = iota + 1
	Int64
	Float64
	Numeric
	BigNumeric
	String
	Bytes
	Date
	Time
	DateTime
	Timestamp
	Interval
	Geography
	JSON
	Range
	Struct
)

// sqlNames are the GoogleSQL names; legacyNames those the REST API answers with where they differ.
var sqlNames = [...]string{
	Bool: "BOOL", Int64: "INT64", Float64: "FLOAT64", Numeric: "NUMERIC", BigNumeric: "BIGNUMERIC", String: "STRING",
	Bytes: "BYTES", Date: "DATE", Time: "TIME", DateTime: "DATETIME", Timestamp: "TIMESTAMP", Interval: "INTERVAL",
	Geography: "GEOGRAPHY", JSON: "JSON", Range: "RANGE", Struct: "STRUCT",
}

var legacyNames = map[Type]string{Bool: "BOOLEAN", Int64: "INTEGER", Float64: "FLOAT", Struct: "RECORD"}

var aliases = map[string]Type{
	"BOOLEAN": Bool, "INTEGER": Int64, "INT": Int64, "SMALLINT": Int64, "BIGINT": Int64, "TINYINT": Int64,
	"BYTEINT": Int64, "FLOAT": Float64, "DOUBLE": Float64, "DECIMAL": Numeric, "BIGDECIMAL": BigNumeric, "RECORD": Struct,
}

// String is the GoogleSQL name.
func (t Type) String() string {
	if t == 0 || int(t) >= len(sqlNames) {
		return fmt.Sprintf("Type(%d)", uint8(t))
	}
	return sqlNames[t]
}

// Legacy is the name the REST API answers with: INTEGER, FLOAT, BOOLEAN, RECORD, else the GoogleSQL name.
func (t Type) Legacy() string {
	if name, ok := legacyNames[t]; ok {
		return name
	}
	return t.String()
}

// ParseType reads a GoogleSQL name, an alias of one, or a REST name, in any case.
func ParseType(s string) (Type, bool) {
	u := strings.ToUpper(s)
	if t, ok := aliases[u]; ok {
		return t, true
	}
	for t, name := range sqlNames {
		if t > 0 && name == u {
			return Type(t), true
		}
	}
	return 0, false
}

// Mode says how many values a column holds. The zero value is Nullable.
type Mode uint8

const (
	Nullable Mode = iota
	Required
	Repeated
)

var modeNames = [...]string{Nullable: "NULLABLE", Required: "REQUIRED", Repeated: "REPEATED"}

func (m Mode) String() string {
	if int(m) >= len(modeNames) {
		return fmt.Sprintf("Mode(%d)", uint8(m))
	}
	return modeNames[m]
}

// ParseMode reads a mode in any case; "" is Nullable.
func ParseMode(s string) (Mode, bool) {
	if s == "" {
		return Nullable, true
	}
	for m, name := range modeNames {
		if strings.EqualFold(name, s) {
			return Mode(m), true
		}
	}
	return 0, false
}
