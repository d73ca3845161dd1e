// Package writeapi is the BigQueryWrite service of the local BigQuery: google.cloud.bigquery.storage.v1, one file per RPC.
//
// Supported: AppendRows on default streams, multiplexed or not, and on created ones, with proto or Arrow rows; CreateWriteStream,
// GetWriteStream, FlushRows, FinalizeWriteStream, BatchCommitWriteStreams.
// Change data capture is in rows of default streams, by their pseudo columns.
//
// Known differences: a stream that has not been written to for seven days, or whose table has been made anew, is NOT_FOUND
// with STREAM_NOT_FOUND; what BigQuery answers has not been measured. The order of checks is fixed, which BigQuery does not
// promise: size, fields, permission and table, stream, writer schema, offset, rows.
package writeapi
