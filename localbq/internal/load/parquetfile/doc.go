// Package parquetfile reads Parquet files as load jobs do (BigQuery documentation, "Loading Parquet data").
package parquetfile
