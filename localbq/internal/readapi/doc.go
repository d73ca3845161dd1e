// Package readapi is the Storage Read API of the local BigQuery (google.cloud.bigquery.storage.v1.BigQueryRead).
//
// Supported: CreateReadSession over tables and anonymous query results, in Avro and in Arrow, with selected fields,
// row restrictions (where the service has a query engine), a snapshot time, sampling, response and buffer compression;
// ReadRows from any offset; SplitReadStream.
//
// Known differences: the number of streams follows one formula from the bytes of the selected columns, while BigQuery's
// planner decides by more than that; rows of a stream are in the order in which they became visible; sessions do not
// survive a restart of the service.
package readapi
