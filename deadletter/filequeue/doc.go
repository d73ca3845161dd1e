// Package filequeue keeps dead letters in files: one letter a line, JSON (see [deadletter.Letter]).
//
// A queue is the file of its name and, where that has grown to Options.MaxFileBytes, files numbered from 2:
// dead-letters.ndjson, dead-letters.000002.ndjson, and so on. Files are appended to and never renamed. Several lanes, and
// several processes, may write to one queue. A file is readable by its owner alone, since records may be private.
//
// A process that is killed may leave the beginning of a line at the end of a file. It was in no checkpoint, so its record is
// offered again; readers tell it apart (ErrTorn), and the next writer cuts it off.
//
// [NewReplay] is a source of the records in queues.
package filequeue
