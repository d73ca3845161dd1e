// Package parquetfile writes rows to Parquet files for load jobs. It is a package of its own, so that a program that stages
// Avro does not link the Parquet library.
package parquetfile
