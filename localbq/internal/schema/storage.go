package schema

import (
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

var storageTypes = map[Type]storagepb.TableFieldSchema_Type{
	Bool: storagepb.TableFieldSchema_BOOL, Int64: storagepb.TableFieldSchema_INT64,
	Float64: storagepb.TableFieldSchema_DOUBLE, Numeric: storagepb.TableFieldSchema_NUMERIC,
	BigNumeric: storagepb.TableFieldSchema_BIGNUMERIC, String: storagepb.TableFieldSchema_STRING,
	Bytes: storagepb.TableFieldSchema_BYTES, Date: storagepb.TableFieldSchema_DATE,
	Time: storagepb.TableFieldSchema_TIME, DateTime: storagepb.TableFieldSchema_DATETIME,
	Timestamp: storagepb.TableFieldSchema_TIMESTAMP, Interval: storagepb.TableFieldSchema_INTERVAL,
	Geography: storagepb.TableFieldSchema_GEOGRAPHY, JSON: storagepb.TableFieldSchema_JSON,
	Range: storagepb.TableFieldSchema_RANGE, Struct: storagepb.TableFieldSchema_STRUCT,
}

var storageModes = [...]storagepb.TableFieldSchema_Mode{
	Nullable: storagepb.TableFieldSchema_NULLABLE,
	Required: storagepb.TableFieldSchema_REQUIRED,
	Repeated: storagepb.TableFieldSchema_REPEATED,
}

// Storage is the schema as the Storage Write API answers it. A nil schema is an empty one.
func (s *Schema) Storage() *storagepb.TableSchema {
	if s == nil {
		return &storagepb.TableSchema{}
	}
	return &storagepb.TableSchema{Fields: fieldsToStorage(s.Fields)}
}

func fieldsToStorage(fields []*Field) []*storagepb.TableFieldSchema {
	var out []*storagepb.TableFieldSchema
	for _, f := range fields {
		out = append(out, f.storage())
	}
	return out
}

func (f *Field) storage() *storagepb.TableFieldSchema {
	p := &storagepb.TableFieldSchema{
		Name: f.Name, Type: storageTypes[f.Type], Mode: storageModes[f.Mode], Fields: fieldsToStorage(f.Fields),
		Description: f.Description, MaxLength: f.MaxLength, Precision: f.Precision, Scale: f.Scale,
		DefaultValueExpression: f.Default,
	}
	if f.TimestampPrecision != 0 {
		p.TimestampPrecision = wrapperspb.Int64(f.TimestampPrecision)
	}
	if f.RangeElement != 0 {
		p.RangeElementType = &storagepb.TableFieldSchema_FieldElementType{Type: storageTypes[f.RangeElement]}
	}
	return p
}
