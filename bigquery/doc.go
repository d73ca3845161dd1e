// Package bigquery moves streams of records into and out of BigQuery.
//
// # Writing
//
// A [Sink] writes each record to the table that a [Resolver] names, as the row that a row.Serializer makes of it:
//
//	to, err := bigquery.Template("my-project.github.{event}", func(doc []byte, field string) (string, error) {
//		return jsonrow.Field(doc, field)
//	})
//	sink, err := bigquery.NewSink(to, rows, bigquery.SinkOptions{})
//
// The sink is a stream.Sink: an engine makes one writer of it for each lane. Lanes share connections; everything else is
// theirs.
//
// # Guarantees of MethodDefault
//
// Rows go to the tables' default streams and can be queried once they are acknowledged. Flush returns when everything
// written before is, so a completed checkpoint means that BigQuery has every record before it, except those that the
// serializer skipped and those that a failure policy took. After a failure rows since the last checkpoint are written
// again: duplicates are possible, losses are not. Without checkpoints, what still waits in batches is lost with the
// process; FlushInterval bounds how much that is.
//
// # Guarantees of MethodExactlyOnce
//
// Rows go to streams of the writers' own, of type BUFFERED, at offsets that the service checks: an append that is repeated is
// taken once. They can be queried once the checkpoint that covers them is committed, and not before. The writer remembers how
// far each stream is written (stream.State), promises what it appended (stream.Committable), and the sink's committers keep
// the promises; an engine must store both with the position of the source, commit after it has stored, and commit again what it
// finds stored when it starts. Duplicates and losses are excluded for as long as that state is kept, and streams are: BigQuery
// keeps one that nobody writes to for a week.
//
// # Tables
//
// A table that does not exist is created at its first row, with the serializer's schema and SinkOptions.Create, unless
// that says never. The service does not tell a missing table from a missing permission, so credentials that may not
// write lead to one attempt to create, and an error that says so. A table that exists is never changed.
//
// # Failures
//
// A record that is wrong by itself goes to SinkOptions.Failures: one that belongs to no table (see [Unroutable]), that the
// serializer refuses, that is longer than a request may be, or that BigQuery refuses by its number. What fails in passing is
// repeated: on the connection, then with a new one, for about a minute each. What is left ends the job attempt with an
// [AppendError].
package bigquery
