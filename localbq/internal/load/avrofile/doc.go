// Package avrofile reads Avro object container files as load jobs do (BigQuery documentation, "Loading Avro data").
package avrofile
