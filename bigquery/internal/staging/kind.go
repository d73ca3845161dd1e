package staging

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// accepted says in words what kindOf takes.
var accepted = map[table.Type]string{
	table.Bool: "bool", table.Int64: "int64", table.Float64: "double", table.Date: "int32", table.Time: "packed int64",
	table.DateTime: "packed int64 or string", table.Timestamp: "int64", table.Numeric: "bytes or string",
	table.BigNumeric: "bytes or string", table.String: "string", table.JSON: "string", table.Geography: "string",
	table.Bytes: "bytes", table.Struct: "message",
}

// kindOf is how a column's values stand in a field. Streams take more than this: the service turns what they carry into
// what the column holds, which nobody does for a file.
func kindOf(t table.Type, d descriptorpb.FieldDescriptorProto_Type) (Kind, bool) {
	switch d {
	case descriptorpb.FieldDescriptorProto_TYPE_BOOL:
		return Bool, t == table.Bool
	case descriptorpb.FieldDescriptorProto_TYPE_DOUBLE:
		return Float, t == table.Float64
	case descriptorpb.FieldDescriptorProto_TYPE_INT32:
		return Date, t == table.Date
	case descriptorpb.FieldDescriptorProto_TYPE_INT64:
		return intKind(t)
	case descriptorpb.FieldDescriptorProto_TYPE_BYTES:
		if t == table.Bytes {
			return Bytes, true
		}
		return Decimal, t == table.Numeric || t == table.BigNumeric
	case descriptorpb.FieldDescriptorProto_TYPE_STRING:
		return textKind(t)
	case descriptorpb.FieldDescriptorProto_TYPE_MESSAGE:
		return Record, t == table.Struct
	}
	return 0, false
}

func intKind(t table.Type) (Kind, bool) {
	switch t {
	case table.Int64:
		return Int, true
	case table.Time:
		return Time, true
	case table.DateTime:
		return DateTime, true
	case table.Timestamp:
		return Timestamp, true
	}
	return 0, false
}

func textKind(t table.Type) (Kind, bool) {
	switch t {
	case table.String, table.JSON, table.Geography:
		return Text, true
	case table.DateTime:
		return DateTimeText, true
	case table.Numeric, table.BigNumeric:
		return DecimalText, true
	}
	return 0, false
}

func wireOf(k Kind) protowire.Type {
	switch k {
	case Bool, Int, Date, Time, DateTime, Timestamp:
		return protowire.VarintType
	case Float:
		return protowire.Fixed64Type
	}
	return protowire.BytesType
}
