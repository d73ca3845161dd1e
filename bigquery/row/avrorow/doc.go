// Package avrorow makes rows of Avro records.
//
// One schema, the job's, says what the table looks like; New makes rows of binary datums that were written with it, straight from
// bytes to bytes, and NewRecords makes them of the maps that Avro libraries decode into.
//
//	s, err := avrorow.New(schema, func(m Message) []byte { return m.Value }, avrorow.Options{})
//
// # Types
//
//	boolean; int and long; float and double              BOOL, INT64, FLOAT64
//	string, also uuid; enum                              STRING
//	bytes, fixed                                         BYTES
//	date; time-millis, time-micros                       DATE, TIME
//	timestamp-millis, timestamp-micros                   TIMESTAMP
//	local-timestamp-millis, local-timestamp-micros       DATETIME
//	decimal(p, s) on bytes and fixed                     NUMERIC(p, s) where it fits, else BIGNUMERIC(p, s)
//	record                                               STRUCT
//	array                                                REPEATED
//	map                                                  REPEATED STRUCT of key and value, in the order of the keys
//	a union of null and one of these                     the same; an array or a map that is null is empty
//
// Columns are NULLABLE or REPEATED unless Options.DeriveRequired asks for more. What BigQuery cannot keep, such as unions of more
// types, arrays of arrays and nanoseconds, is refused when the serializer is made.
//
// # Go values
//
// NewRecords takes the numbers, text and bytes that the binary encoding holds, and what libraries convert them to: time.Time and the
// types of package civil, time.Duration since midnight for times of day, *big.Rat and decimal types with Coefficient and Exponent, and
// [16]byte for a uuid. Named types of these kinds, pointers to them, and slices and maps of any type will do.
package avrorow
