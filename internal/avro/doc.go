// Package avro is Avro as the connector's rooms share it: schemas, the primitives of the binary encoding, and where a datum
// ends. What a datum means as a row is bigquery/row/avrorow's to say, what a session's block means bigquery/internal/storageread's,
// and how data lies in a file ocf's.
//
// A [Schema] is the specification's (Apache Avro 1.12, "Schema Declaration"), as it was written: annotations stay apart from the
// types they annotate, and [Schema.Annotation] says which of them hold.
package avro
