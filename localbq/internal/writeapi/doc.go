// Package writeapi is the BigQueryWrite service of the local BigQuery: google.cloud.bigquery.storage.v1, one file per RPC.
//
// Supported: AppendRows on the default stream, with proto or Arrow rows, multiplexed or not; GetWriteStream of the default stream.
// Known differences: created streams (CreateWriteStream, FlushRows, FinalizeWriteStream, BatchCommitWriteStreams)
// and change data capture are answered with UNIMPLEMENTED and the name of what is missing. The order of checks is
// fixed, which BigQuery does not promise: size, fields, permission and table, stream, writer schema, offset, rows.
package writeapi
