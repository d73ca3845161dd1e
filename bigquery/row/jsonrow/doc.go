// Package jsonrow makes rows of JSON documents and JSON documents of rows.
//
// A [Serializer] takes one document per record and reads it once, from its bytes to the bytes of the row: there is no
// tree in between, and nothing is allocated for a document that is right. Which columns there are, and which key fills
// which, is a [Mapping]: of a schema that was given ([Fixed]), or of one inferred from sample documents ([Inference]).
// [Field] finds the one value that a record is routed by. [Writer] and [Deserializer] are the way back.
//
// # Documents
//
// A document is exactly one JSON object (RFC 8259), with white space around it or not, in UTF-8, at most 512 levels deep.
// Keys are matched with columns ignoring case, unless the mapping names the keys. A key given twice is an error, and so is
// one without a column unless an option says otherwise; what is dropped under IgnoreUnknownFields is not searched for keys
// given twice. null leaves a column NULL, or a list empty.
//
// # Values
//
// Numbers are taken from their text and never pass through a float64 on the way to another type.
//
//	STRING               a string; a number or boolean as its text
//	INT64                a whole number without point and exponent, or a string of one
//	FLOAT64              a number, or a string of one; "NaN", "Infinity", "-Infinity"
//	BOOL                 true and false, and strings of them in any case
//	NUMERIC, BIGNUMERIC  a number or a string of one, exactly: no digit is rounded away
//	TIMESTAMP            a string such as 2026-07-26T01:02:03.5+02:00 or 2026/7/26 1:02 Europe/Berlin, UTC without a zone,
//	                     cut off below the microsecond; a whole number, see TimestampNumbers
//	DATE                 YYYY-MM-DD; a whole number of days since 1970
//	DATETIME, TIME       YYYY-MM-DDTHH:MM:SS, HH:MM:SS, with up to six fractional digits
//	JSON                 JSON text in a string, or any value, see JSONColumns
//	GEOGRAPHY            a string of WKT or GeoJSON, a GeoJSON object
//	BYTES                base64, an array of byte values, see BytesEncoding
//	INTERVAL             a string, passed on as it is
//	RANGE                an object of start and end, null or absent where unbounded
//	STRUCT               an object, which may be empty
//	REPEATED             an array without null
//
// Dates and times must be in the calendar and on the clock; nothing rolls over. With Mapping.Exact, which inferred mappings
// have, only forms that read back as they were are taken.
//
// All faults are *row.Error values with the path of the value, such as items[2].price, and its offset in the document; they
// never quote it.
package jsonrow
