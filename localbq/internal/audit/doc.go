// Package audit accounts for everything a local BigQuery did: one record for each call, in one total order, with a digest of
// every row, the ids of the rows that became visible, and whether the answer left.
//
// Records live in memory up to a bound. A log with a file writes each record to it as one line of JSON when the record is
// complete, and reads them back from there; a log without one forgets the oldest and says how many. What a killed process
// did not write is told by the store, which keeps the gist of every record with the rows (see Log.Recovered).
//
// The checks rely on row ids, which the store gives out once each, and never on the content of rows alone: equal rows are
// legitimate.
package audit
