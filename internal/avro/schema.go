package avro

import (
	"encoding/json"
	"math/big"
)

// Kind is what a schema describes.
type Kind uint8

const (
	Null Kind = iota + 1
	Boolean
	Int
	Long
	Float
	Double
	Bytes
	String
	Record
	Enum
	Array
	Map
	Fixed
	Union
)

var kindNames = [...]string{"", "null", "boolean", "int", "long", "float", "double", "bytes", "string", "record", "enum", "array",
	"map", "fixed", "union"}

func (k Kind) String() string { return kindNames[k] }

// Schema is one type. A named type that is referred to is the same Schema everywhere, so that a record may contain itself.
type Schema struct {
	Kind Kind
	Name string // full name of a Record, Enum or Fixed

	Aliases  []string // full names, of named types
	Fields   []Field  // Record
	Items    *Schema  // Array
	Values   *Schema  // Map
	Branches []*Schema
	Symbols  []string // Enum
	Default  string   // Enum: the symbol for those that a reader does not know, "" is none
	Size     int      // Fixed

	// Logical is the annotation as written. Precision and Scale belong to a decimal; nil where they are not there.
	Logical          string
	Precision, Scale *int64
	// SQLType is BigQuery's own annotation (BigQuery documentation, "Avro schema details").
	SQLType string

	zero zeroness
}

// Field is a field of a record.
type Field struct {
	Name    string
	Aliases []string
	Type    *Schema
	// Default is the JSON of the default value, nil where there is none.
	Default json.RawMessage
	// DisplayName is the name of a column that Avro cannot hold (avro.proto, enable_display_name_attribute).
	DisplayName string
}

// Nullable takes ["null", T] and [T, "null"] apart. other is T, or nil where s is no such union.
func (s *Schema) Nullable() (other *Schema) {
	if s.Kind != Union || len(s.Branches) != 2 {
		return nil
	}
	switch Null {
	case s.Branches[0].Kind:
		return s.Branches[1]
	case s.Branches[1].Kind:
		return s.Branches[0]
	}
	return nil
}

// Annotation is a logical type that holds for the type it stands on.
type Annotation uint8

const (
	None Annotation = iota
	Decimal
	BigDecimal
	UUID
	Date
	TimeMillis
	TimeMicros
	TimestampMillis
	TimestampMicros
	TimestampNanos
	LocalTimestampMillis
	LocalTimestampMicros
	LocalTimestampNanos
	Duration
)

// annotations are the logical types by what they may stand on.
var annotations = map[Kind]map[string]Annotation{
	Int: {"date": Date, "time-millis": TimeMillis},
	Long: {"time-micros": TimeMicros, "timestamp-millis": TimestampMillis, "timestamp-micros": TimestampMicros,
		"timestamp-nanos": TimestampNanos, "local-timestamp-millis": LocalTimestampMillis,
		"local-timestamp-micros": LocalTimestampMicros, "local-timestamp-nanos": LocalTimestampNanos},
	String: {"uuid": UUID},
	Bytes:  {"decimal": Decimal, "big-decimal": BigDecimal},
	Fixed:  {"decimal": Decimal, "duration": Duration, "uuid": UUID},
}

// Annotation is the logical type, None where there is none that Avro knows, or it may not stand here: such annotations are
// ignored (Avro specification, "Logical Types").
func (s *Schema) Annotation() Annotation {
	a := annotations[s.Kind][s.Logical]
	switch {
	case a == Decimal && !s.isDecimal():
		return None
	case a == Duration && s.Size != 12, s.Kind == Fixed && a == UUID && s.Size != 16:
		return None
	}
	return a
}

func (s *Schema) isDecimal() bool {
	p, scale := s.Digits()
	return s.Precision != nil && p >= 1 && scale >= 0 && scale <= p && (s.Kind == Bytes || p <= digitsOf(s.Size))
}

// Digits are a decimal's precision and scale; a scale that is not there is 0.
func (s *Schema) Digits() (precision, scale int64) {
	if s.Precision != nil {
		precision = *s.Precision
	}
	if s.Scale != nil {
		scale = *s.Scale
	}
	return precision, scale
}

// digitsOf is how many decimal digits every number of which fits size bytes of two's complement.
func digitsOf(size int) int64 {
	if size <= 0 {
		return 0
	}
	if size > 64 {
		return 154 // more than any column keeps
	}
	most := new(big.Int).Lsh(big.NewInt(1), uint(8*size-1))
	return int64(len(most.String())) - 1
}
