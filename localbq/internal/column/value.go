package column

import (
	"encoding/json"
	"math/big"
)

// Decimal is Unscaled × 10^-Scale.
type Decimal struct {
	Unscaled *big.Int
	Scale    int
}

// Date is days since 1970-01-01; Time microseconds since midnight; DateTime and Timestamp microseconds since 1970-01-01
// 00:00:00, without a zone and in UTC.
type (
	Date      int32
	Time      int64
	DateTime  int64
	Timestamp int64
)

// Number is a number as its text, of JSON.
type Number string

// Raw is a JSON value as its text. Only a JSON column keeps it as such.
type Raw json.RawMessage

// List is the elements of a repeated value.
type List []any

// Record is a row or a STRUCT: values by the names of their members, in order.
type Record []Member

// Member is one value of a Record.
type Member struct {
	Name  string
	Value any
}

// kind names a value in messages.
func kind(v any) string {
	switch v.(type) {
	case bool:
		return "boolean"
	case int64:
		return "integer"
	case float64:
		return "float"
	case Number:
		return "number"
	case string:
		return "string"
	case []byte:
		return "bytes"
	case Decimal:
		return "decimal"
	case Date:
		return "date"
	case Time:
		return "time"
	case DateTime:
		return "datetime"
	case Timestamp:
		return "timestamp"
	case List:
		return "array"
	case Record:
		return "record"
	}
	return "value"
}
