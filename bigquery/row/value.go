package row

import "github.com/millrace-dev/millrace/bigquery/table"

// Row is one row read from BigQuery. It, and everything reachable from it, is valid until the call it was passed to
// returns; a deserializer copies what it keeps.
type Row struct {
	Schema *table.Schema // the columns that were read, in order
	Values []Value       // one for each column
}

// Value is one column's value in a compact form. Which fields mean something depends on the column's type:
//
//	any type    Null
//	BOOL        Int: 0 or 1
//	INT64       Int
//	FLOAT64     Int: math.Float64bits
//	DATE        Int: days since 1970-01-01
//	TIME        Int: microseconds since midnight
//	DATETIME    Int: microseconds since 1970-01-01T00:00:00, as if that were UTC
//	TIMESTAMP   Int: microseconds since 1970-01-01T00:00:00Z
//	STRING, JSON, GEOGRAPHY, BYTES   Bytes
//	NUMERIC, BIGNUMERIC   Bytes: big-endian two's complement; Int: its scale
//	INTERVAL    List: months, days, microseconds as three INT64 values
//	RANGE       List: start and end, Null where unbounded
//	STRUCT      List: the members
//	REPEATED    List: the elements; never Null
type Value struct {
	Int   int64
	Bytes []byte
	List  []Value
	Null  bool
}
