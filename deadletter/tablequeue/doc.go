// Package tablequeue appends dead letters to a BigQuery table, one row each, through the default stream: a letter is there at least
// once when the handler's Flush has returned. The table is created if it does not exist, partitioned by the day of its letters.
//
// Columns, all REQUIRED but data:
//
//	time         TIMESTAMP  when the letter was offered
//	job          STRING
//	lane         INT64      that gave the record up
//	connector    STRING     "bigquery"
//	destination  STRING     "project.dataset.table", or "unresolved"
//	file         STRING     where the record is in the source, as in [deadletter.Letter]
//	line         INT64      0 where there are no lines
//	position     INT64
//	split        STRING
//	reason       STRING     what was wrong
//	replays      INT64      how often it was replayed and failed again
//	payload      STRING     what data is: "record", "cut" (the beginning of a record only), "row" or "none"
//	data         BYTES      the record as it came in, or the encoded row where a source cannot give that
//	context      STRING     what it takes to read the record: the header of a CSV file, the schema of an Avro file
//
// Text that is no UTF-8 is mended; data is kept as it is. A letter that does not fit a row, 9 MiB, ends the job.
package tablequeue
