// Package jsonrow makes rows of JSON documents and JSON documents of rows.
//
// A [Serializer] takes one document per record and reads it once, from its bytes to the bytes of the row: there is no
// tree in between, and nothing is allocated for a document that is right. Which columns there are, and which key fills
// which, is a [Mapping]: of a schema that was given ([Fixed]), or of one inferred from sample documents ([Inference]).
// [Field] finds the one value that a record is routed by. [AppendJSON] and [Deserializer] are the way back.
//
// # Documents
//
// A document is exactly one JSON object (RFC 8259), with white space around it or not, in UTF-8, at most 512 levels deep.
// Keys that fill columns are matched ignoring case, unless the mapping names them. A key given twice is an error, and so is
// one without a column unless an option says otherwise. null leaves a column NULL, or a list empty.
//
// # Values
//
// Numbers are taken from their text and never pass through a float64 on the way to another type. What each column type
// accepts is in docs/reference/json.md. All faults are *row.Error values with the path of the value, such as
// items[2].price, and its offset in the document.
package jsonrow
