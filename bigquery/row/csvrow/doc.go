// Package csvrow makes rows of CSV records.
//
// A record is one row of a CSV file, without its line end, and the header of its file, which says which cell is which column:
//
//	s, err := csvrow.New(func(r Record) (header, record []byte) { return r.Header, r.Bytes }, csvrow.Fixed(schema), csvrow.Options{})
//
// Records are as RFC 4180 has them: cells between commas, or another delimiter, quoted where they hold delimiters, quotes
// or line ends; a quote within quotes is two. What is left open or stands beside quotes is an error, not a guess.
//
// Files cut into records at line ends that are not quoted. A record is UTF-8.
//
// # Cells
//
//	STRING, JSON, GEOGRAPHY   the text
//	INT64, FLOAT64            a number; FLOAT64 also NaN, Infinity and -Infinity
//	BOOL                      true or false, in any case
//	NUMERIC, BIGNUMERIC       a decimal number, exactly or not at all
//	BYTES                     base64
//	DATE, TIME, DATETIME      YYYY-MM-DD, HH:MM:SS[.f], or both
//	TIMESTAMP                 a date, a time and a zone, UTC without one; see Options for numbers
//	INTERVAL                  Y-M D H:M:S
//	RANGE                     [start, end), each side a value or UNBOUNDED
//
// An empty cell that is not quoted is NULL, a quoted one the empty text; Options.NullMarkers are other texts for NULL. STRUCT
// and REPEATED columns have no form in a cell.
package csvrow
