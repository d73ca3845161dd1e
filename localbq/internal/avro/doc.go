// Package avro writes stored columns as the Avro of a Storage Read session: a schema, and rows back to back without
// container, header or markers.
//
// The schema is the one BigQuery makes: the record __root__ without a namespace, a NULLABLE column as a union of null and
// its type, a REPEATED one as an array of its bare type, structs as records named by their position in the schema
// (BigQuery documentation, "Avro schema details"; record names, DATETIME, INTERVAL and RANGE as measured by another
// connector against the service, 2026-08).
package avro
