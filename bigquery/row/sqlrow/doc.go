// Package sqlrow makes BigQuery rows of rows of SQL, and rows of SQL of rows read from BigQuery. A [Serializer] derives the
// table from declared columns; a [Reader] takes declared columns and the table as it is.
//
// # Values
//
// A row of SQL is a [row.Value] for each column, and which fields of it mean something depends on the declared type. Null is
// NULL, of any type.
//
//	BOOLEAN                           Int: 0 or 1
//	TINYINT, SMALLINT, INT, BIGINT    Int
//	FLOAT, DOUBLE                     Int: math.Float64bits
//	DECIMAL                           Bytes: the unscaled integer, big-endian two's complement; Int: its scale
//	CHAR, VARCHAR, STRING             Bytes, UTF-8
//	BINARY, VARBINARY, BYTES          Bytes
//	DATE                              Int: days since 1970-01-01
//	TIME                              Int: microseconds since midnight
//	TIMESTAMP                         Int: microseconds since 1970-01-01T00:00:00 on the wall clock
//	TIMESTAMP_LTZ                     Int: microseconds since 1970-01-01T00:00:00Z
//	ROW                               List: the members
//	ARRAY                             List: the elements
//	MAP                               List: for each entry a List of its key and value
//	MULTISET                          List: for each element a List of it and how often it is there
//
// # Columns of a sink
//
//	CHAR, VARCHAR                     STRING; JSON or GEOGRAPHY where marked
//	BOOLEAN; BINARY, VARBINARY        BOOL; BYTES
//	TINYINT, SMALLINT, INT, BIGINT    INT64
//	FLOAT, DOUBLE                     FLOAT64
//	DECIMAL(p,s)                      NUMERIC(p,s) up to 9 digits behind the point and 29 before it, else BIGNUMERIC(p,s)
//	DATE; TIME                        DATE; TIME
//	TIMESTAMP, a wall clock           DATETIME
//	TIMESTAMP_LTZ, an instant         TIMESTAMP
//	ROW                               STRUCT; JSON where marked
//	ARRAY of elements NOT NULL        REPEATED
//	MAP, MULTISET                     REPEATED STRUCT of key and value
//
// Dates and times have up to 6 digits of seconds: columns keep microseconds. Other types have no column.
package sqlrow
