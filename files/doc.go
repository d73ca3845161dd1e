// Package files reads records from files and standard input.
//
// [NewSource] takes paths and patterns. A file becomes one split, or several byte ranges when it is large and not
// compressed, so that several lanes read it at once. A position is a byte offset in the uncompressed file: a reader can
// stop after any record and another one goes on there. Compression (gzip, zstd) is recognised by content, not by name.
//
// A record of CSV is what stands between two line ends that are not quoted, and carries the header of its file. With quotes
// a file is one split: where a record ends is told by all that comes before. Files of other formats are containers, which
// Options.Container opens; a position is the number of a row in them.
//
// A record of Protobuf is a message with its length before it, as Java's writeDelimitedTo and Go's protodelim write them. Where a
// message begins only the one before it tells, so a file is one split. A length that cannot be, or a message that is cut, ends the
// reading: what follows cannot be found.
//
// A record of NDJSON is one line without its end; blank lines are passed over. Whether the line is JSON is not this
// package's business: a damaged line is a record like any other, and whoever decodes it says what is wrong.
package files
