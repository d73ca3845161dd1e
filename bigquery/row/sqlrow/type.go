package sqlrow

import (
	"strconv"
	"strings"
)

// Kind is a type of SQL without its parameters.
type Kind uint8

const (
	Boolean Kind = iota + 1
	TinyInt
	SmallInt
	Int
	BigInt
	Float
	Double
	Decimal // Precision 1 to 38, Scale 0 to Precision
	Char
	Varchar // also STRING
	Binary
	Varbinary // also BYTES
	Date
	Time         // Precision: digits of seconds
	Timestamp    // without time zone: a wall clock; Precision
	TimestampLTZ // with local time zone: an instant; Precision
	Row          // Fields
	Array        // Elem
	Map          // Key, Elem
	Multiset     // Elem

	// Types that no column has.
	TimestampTZ
	IntervalYearMonth
	IntervalDayTime
	Raw
	Null
	Structured
	Distinct
)

var kindNames = [...]string{Boolean: "BOOLEAN", TinyInt: "TINYINT", SmallInt: "SMALLINT", Int: "INT", BigInt: "BIGINT", Float: "FLOAT",
	Double: "DOUBLE", Decimal: "DECIMAL", Char: "CHAR", Varchar: "VARCHAR", Binary: "BINARY", Varbinary: "VARBINARY", Date: "DATE",
	Time: "TIME", Timestamp: "TIMESTAMP", TimestampLTZ: "TIMESTAMP_LTZ", Row: "ROW", Array: "ARRAY", Map: "MAP", Multiset: "MULTISET",
	TimestampTZ: "TIMESTAMP WITH TIME ZONE", IntervalYearMonth: "INTERVAL YEAR TO MONTH", IntervalDayTime: "INTERVAL DAY TO SECOND",
	Raw: "RAW", Null: "NULL", Structured: "structured type", Distinct: "distinct type"}

func (k Kind) String() string {
	if int(k) >= len(kindNames) || kindNames[k] == "" {
		return "type " + strconv.Itoa(int(k))
	}
	return kindNames[k]
}

func (k Kind) text() bool { return k == Char || k == Varchar }

// Type is a type of SQL. A Type that was handed to this package must not change any more.
type Type struct {
	Kind             Kind
	Precision, Scale int
	NotNull          bool
	Key, Elem        *Type    // what a MAP is of, what an ARRAY or MULTISET is of
	Fields           []Column // of a ROW
}

// Column is a declared column, or a member of a ROW.
type Column struct {
	Name string
	Type Type
}

// String is the type as SQL writes it.
func (t *Type) String() string {
	s := t.Kind.String()
	switch t.Kind {
	case Decimal:
		s += "(" + strconv.Itoa(t.Precision) + "," + strconv.Itoa(t.Scale) + ")"
	case Time, Timestamp, TimestampLTZ:
		s += "(" + strconv.Itoa(t.Precision) + ")"
	case Row:
		members := make([]string, len(t.Fields))
		for i := range t.Fields {
			members[i] = t.Fields[i].Name + " " + t.Fields[i].Type.String()
		}
		s += "<" + strings.Join(members, ", ") + ">"
	case Map:
		s += "<" + t.Key.String() + ", " + t.Elem.String() + ">"
	case Array, Multiset:
		s += "<" + t.Elem.String() + ">"
	}
	if t.NotNull {
		s += " NOT NULL"
	}
	return s
}
