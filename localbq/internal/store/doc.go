// Package store holds what a local BigQuery knows: projects, datasets, tables and their rows, in memory, and on disk too
// when it is given a folder.
//
// # Model
//
// Every change, of the catalog or of rows, is one commit with a version: a 64-bit number, the clock's microseconds made
// strictly increasing over the whole store. A table's rows are a list of chunks of up to 65,536 rows, columnar and
// immutable but for the last one, which grows at its end. A chunk remembers which version brought it to which length, so
// a Snapshot is a version and costs no copy. Each row has a hidden id, its ordinal among all rows that ever became visible
// in this instance of the table; a table dropped and made again is another instance.
//
// # Commits
//
// Writers prepare everything they can (decoding, encoding for the log) before they commit. A commit then takes its place
// in a queue; one writer at a time takes the whole queue, decides each change in order, writes all of them to the log in
// one write, publishes them and wakes the others (group commit). So versions, log order and visibility agree, and nothing
// is visible that is not in the log.
//
// Lock order: Store.committing, Store.catalog, Table.mu. Readers take the latter two only.
//
// # Memory
//
// Record batches come from Go's heap and are never released by hand. A reader may keep a batch as long as it likes; it
// must not call Release on it without a Retain of its own.
package store
