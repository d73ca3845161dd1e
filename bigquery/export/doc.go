// Package export writes what BigQuery holds to files: a table or the result of a query, as NDJSON, CSV, Avro, Arrow or Parquet, to
// one file or many, in a folder or in Cloud Storage, and goes on after a crash with no row lost and none twice.
//
//	x, err := export.Open(ctx, bigquery.FromTable(t), "orders.parquet", export.Options{Resume: true})
//	if err != nil {
//		return err
//	}
//	defer x.Close()
//	result, err := x.Run(ctx)
//
// # What is on disk meanwhile
//
// Beside orders.parquet there are orders.parquet.partial, which holds what has been written, and orders.parquet.resume, a text of
// one line for each moment that was made safe: how long the file was then, and which row of each stream comes next. A file has its
// name from the moment it is complete, and the last one takes the notes away. A process that goes on cuts the partial file to
// the last safe length and reads on with the session that the notes name, so it reads the same rows at the same instant.
//
// # Order
//
// Rows come in an order that depends on the session and the number of lanes and on nothing else: each lane reads a stream, makes
// chunks of it whose ends depend on the rows alone, and the lanes take turns, a chunk each. A lane whose stream has ended takes the next
// one. So a file that was interrupted holds the same bytes as one that was not; see [Format] for what holds in each.
//
// # Memory
//
// Of one lane: what is received ahead, one chunk being made, and one waiting for its turn. What is received ahead is shared by the
// lanes: 8 MiB in all, and the one block of each lane that goes over that mark. Chunks of rows have half a MiB as they are read;
// those of Parquet are row groups, and share 32 MiB.
package export
