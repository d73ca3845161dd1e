// Package protorow makes rows of protobuf messages: of a generated type, of dynamic messages, or of messages in wire form.
//
// Fields are columns, in the order of their declaration and under their declared names. A plan is made of the descriptor
// once. After that messages are read in wire form, from whose fields row bytes are made straight away: no message object
// is made, and no field is found by name.
//
//	s, err := protorow.New[*shop.Order](protorow.Options{JSONPaths: []string{"details"}})
//
// # Types
//
//	signed and unsigned integers of any form         INT64; what is above 63 bits is an error
//	float, double; bool                              FLOAT64; BOOL
//	string, bytes                                    STRING, BYTES
//	enum                                             STRING, the name of the value
//	message, group                                   STRUCT
//	map                                              REPEATED STRUCT<key, value>, sorted by key
//	repeated                                         REPEATED
//	google.protobuf.Timestamp                        TIMESTAMP, cut to microseconds
//	google.protobuf.Duration                         INT64, microseconds
//	google.protobuf.FieldMask                        STRING, the paths with commas
//	Int32Value and the other wrappers                the type they wrap, NULL when unset
//	google.protobuf.Struct, Value, ListValue         JSON
//	google.protobuf.Any                              STRUCT<type_url STRING, value BYTES>
//
// A field that has presence and is not set is NULL; one without presence is written, with its zero where that is what it
// holds. Columns are NULLABLE or REPEATED unless Options.DeriveRequired asks for more. Extensions and unknown fields are
// left out. A Set holds the types of a descriptor set file, for programs without their code. Options name the fields that become JSON and GEOGRAPHY columns. docs/reference/protobuf.md tells it all by
// example.
package protorow
