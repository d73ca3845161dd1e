// Package schema describes tables of the local BigQuery: columns with everything BigQuery keeps about them, the table
// definition around them, the rules that make a definition acceptable, and the shapes a schema has elsewhere: REST JSON,
// the Storage API's TableSchema and an Arrow schema.
//
// A Schema and a Definition are values that nobody changes once they have been handed over; whoever wants another one
// clones it first.
package schema
