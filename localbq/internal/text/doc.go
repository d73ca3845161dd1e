// Package text writes values the way BigQuery prints them: in rows of the REST API, in Avro sessions and in casts to
// STRING. Every function appends to a buffer of the caller's and answers the longer one.
package text
