// Package column turns values that a file holds into columns of a table, as load jobs do it.
//
// Formats hand over records of plain Go values. A Builder checks each record against a table's schema, coerces every value to
// its column's type, fills in defaults, and only then adds it to the batch that is being made: a record that is refused
// leaves nothing behind.
//
// The values of a record, and what they may become:
//
//	nil                      NULL, or an empty list
//	bool, int64, float64     BOOL, INT64, FLOAT64, NUMERIC, BIGNUMERIC, STRING; numbers TIMESTAMP, as seconds
//	Number                   what int64 and float64 may become, STRING, TIMESTAMP, and JSON
//	string                   every type but STRUCT, from its text
//	[]byte                   BYTES
//	Decimal                  NUMERIC, BIGNUMERIC, STRING, and FLOAT64
//	Date, Time, DateTime, Timestamp, value.Span   the type of that name, STRING
//	Raw                      JSON
//	List, Record             REPEATED columns, STRUCT
package column
