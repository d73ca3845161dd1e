// Package outcome keeps account of what becomes of records, for every method of writing: a [Lane] counts those of one writer
// and hands on those that are wrong by themselves, a [Ledger] has the counts of each table over all writers of a sink.
package outcome
