// Package row is one row on the wire: what turns a record into the protobuf row that the Storage Write API takes, what
// turns a row read from BigQuery into a record, and the encodings both share.
//
// The row is a message of the descriptor that [Descriptor] derives from a table schema. Input formats live in the packages below;
// each passes the suite in rowtest.
package row
