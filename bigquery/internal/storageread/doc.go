// Package storageread reads tables and query results through BigQuery's Storage Read API.
//
// # The journey of a row
//
// A [Plan] made by [Config].Plan names one read session: one snapshot of one table, cut by the service into streams. The
// [Enumerator] makes that plan once, remembers it in its snapshot, and hands the streams out as splits. A [Reader] opens
// a split: its fetcher goroutine receives blocks of rows into a bounded queue and repairs broken calls, while the lane's
// goroutine decodes one row after the other with a [Decoder] compiled from the session's Avro schema.
//
// # Decisions apart from I/O
//
//   - resume.go decides what becomes of a failed call: where to reopen, how long to wait, when to give up. classify.go
//     is its table of errors.
//   - cursor.go decides what goes into a batch: the next row, a new block, or enough.
//
// Neither knows a network, a clock or a goroutine. fetcher.go and reader.go are the loops around them.
//
// # Positions
//
// Three positions of a stream exist, all counted in rows. received is where a broken call is reopened; it belongs to the
// fetcher. delivered is the next row to hand out; it belongs to the reader. consumed is what a checkpoint stores; the
// engine knows it and this package sees it only as the position of a split that comes back.
//
// # Memory
//
// Of one reader, with its defaults: up to FetchQueue × MaxBytesPerFetch = 16 MiB of blocks waiting, not counting the one
// that went over that mark, plus the block being decoded, plus the one being received. A block has 128 MiB at most
// (storage.proto, ReadRowsResponse) and some MiB in practice. Decoding adds the values of a single row. What a
// deserializer makes of the rows of one batch comes on top and is the caller's.
package storageread
