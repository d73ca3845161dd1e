// Package millrace is a map of the module; the code is in the packages below.
//
//   - stream: what a source, a sink and an engine promise each other.
//   - engine: the embedded engine that runs a job in one process and takes its checkpoints.
//   - bigquery: the connector: NewSink and NewSource. Its leaves bigquery/table and bigquery/row hold names, schemas
//     and the row encodings.
//   - localbq: a local BigQuery to develop and test against; localbq/duckdb is its query engine.
//   - files: records from files.
//   - deadletter: what a dead letter is; its queues are packages below: files, a Pub/Sub topic, a table.
//   - job: job files: parse, check, assemble, run.
//   - cmd/millrace: the command.
package millrace
