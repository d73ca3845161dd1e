// Package ocf reads Avro object container files: a header with the schema, then blocks of records, each packed by itself and
// followed by the file's sync marker (Avro specification, "Object Container Files").
//
// Files are not trusted: nothing is allocated that the bytes do not back, and a block that would unpack to more than the limit is
// refused before it has.
package ocf
