// Package arrowrow makes rows of Arrow record batches.
//
// A record is one row of a batch. A Batch is taken apart once; its rows are then read where they lie, without garbage:
//
//	s, err := arrowrow.New(reader.Schema(), arrowrow.Options{})
//	for reader.Next() {
//		b, err := arrowrow.NewBatch(reader.RecordBatch())
//		for i := range b.Len() {
//			buf, err = s.AppendRow(buf, dst, arrowrow.Row{Batch: b, Index: i})
//		}
//	}
//
// # Types
//
//	bool                                        BOOL
//	integers of any size                        INT64; a uint64 above 9223372036854775807 is an error of the row
//	float16, float32, float64                   FLOAT64
//	utf8, large and view forms                  STRING; JSON and GEOGRAPHY by extension type or by Options
//	binary, large, view and fixed size forms    BYTES
//	date32, date64                              DATE
//	time32, time64                              TIME; digits below the microsecond must be zero
//	timestamp without a zone                    DATETIME; digits below the microsecond must be zero
//	timestamp with a zone                       TIMESTAMP; digits below the microsecond are cut off, towards the past
//	decimal                                     NUMERIC where it fits, else BIGNUMERIC, as all of 256 bits are
//	duration                                    INT64, microseconds
//	intervals                                   INTERVAL
//	struct                                      STRUCT; RANGE by extension type
//	list, large list, fixed size list, views    REPEATED; a null list is an empty one
//	map                                         REPEATED STRUCT<key, value>
//	dictionary                                  the type of its values
//	extension types                             the type of their storage
//
// Columns are NULLABLE or REPEATED unless Options.DeriveRequired asks for more. Null, union and run-end encoded columns,
// and lists of lists, have no column. With Options.Schema the table's columns are given: Arrow columns are found by name,
// ignoring case, and must be of a type that the table above has for theirs; integers also go to FLOAT64, NUMERIC and
// BIGNUMERIC, and decimals of any scale to either decimal, exactly or not at all.
//
// # Without rows
//
// The Storage Write API also takes Arrow batches as they are, which is faster than making rows. A sink over a Serializer sends them so
// where bigquery.DefaultStreamOptions.ArrowBatches asks for it: parts of batches whose columns BigQuery takes as they are, rows for
// all else, and rows for what is left of a part of which it refused some. Direct is for programs that make requests themselves: it
// says whether a table takes batches of a schema as they are, and makes the bytes.
package arrowrow
