package tableadmin

import (
	"fmt"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/millrace-dev/millrace/bigquery/table"
)

var storageTypes = map[table.Type]storagepb.TableFieldSchema_Type{
	table.Bool:       storagepb.TableFieldSchema_BOOL,
	table.Int64:      storagepb.TableFieldSchema_INT64,
	table.Float64:    storagepb.TableFieldSchema_DOUBLE,
	table.Numeric:    storagepb.TableFieldSchema_NUMERIC,
	table.BigNumeric: storagepb.TableFieldSchema_BIGNUMERIC,
	table.String:     storagepb.TableFieldSchema_STRING,
	table.Bytes:      storagepb.TableFieldSchema_BYTES,
	table.Date:       storagepb.TableFieldSchema_DATE,
	table.Time:       storagepb.TableFieldSchema_TIME,
	table.DateTime:   storagepb.TableFieldSchema_DATETIME,
	table.Timestamp:  storagepb.TableFieldSchema_TIMESTAMP,
	table.Interval:   storagepb.TableFieldSchema_INTERVAL,
	table.Geography:  storagepb.TableFieldSchema_GEOGRAPHY,
	table.JSON:       storagepb.TableFieldSchema_JSON,
	table.Range:      storagepb.TableFieldSchema_RANGE,
	table.Struct:     storagepb.TableFieldSchema_STRUCT,
}

var storageModes = map[table.Mode]storagepb.TableFieldSchema_Mode{
	table.Nullable: storagepb.TableFieldSchema_NULLABLE,
	table.Required: storagepb.TableFieldSchema_REQUIRED,
	table.Repeated: storagepb.TableFieldSchema_REPEATED,
}

// ToStorage translates a schema into the form of the Storage APIs, which has no place for collation, rounding mode and
// policy tags; everything else is kept.
func ToStorage(s *table.Schema) *storagepb.TableSchema {
	return &storagepb.TableSchema{Fields: fieldsToStorage(s.Fields)}
}

func fieldsToStorage(fields []table.Field) []*storagepb.TableFieldSchema {
	if len(fields) == 0 {
		return nil
	}
	out := make([]*storagepb.TableFieldSchema, len(fields))
	for i := range fields {
		f := &fields[i]
		out[i] = &storagepb.TableFieldSchema{
			Name:                   f.Name,
			Type:                   storageTypes[f.Type],
			Mode:                   storageModes[f.Mode],
			Fields:                 fieldsToStorage(f.Fields),
			Description:            f.Description,
			MaxLength:              f.MaxLength,
			Precision:              f.Precision,
			Scale:                  f.Scale,
			DefaultValueExpression: f.Default,
		}
		if f.TimestampPrecision != 0 {
			out[i].TimestampPrecision = wrapperspb.Int64(f.TimestampPrecision)
		}
		if f.Range != 0 {
			out[i].RangeElementType = &storagepb.TableFieldSchema_FieldElementType{Type: storageTypes[f.Range]}
		}
	}
	return out
}

// FromStorage translates a schema that a Storage API answered with. A column type or mode it does not know is an error
// that names the column's path.
func FromStorage(s *storagepb.TableSchema) (*table.Schema, error) {
	fields, err := fieldsFromStorage("", s.GetFields())
	if err != nil {
		return nil, err
	}
	return &table.Schema{Fields: fields}, nil
}

func fieldsFromStorage(path string, fields []*storagepb.TableFieldSchema) ([]table.Field, error) {
	if len(fields) == 0 {
		return nil, nil
	}
	out := make([]table.Field, len(fields))
	for i, p := range fields {
		if err := fieldFromStorage(&out[i], path+p.Name, p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func fieldFromStorage(f *table.Field, path string, p *storagepb.TableFieldSchema) (err error) {
	*f = table.Field{
		Name:               p.Name,
		Description:        p.Description,
		MaxLength:          p.MaxLength,
		Precision:          p.Precision,
		Scale:              p.Scale,
		TimestampPrecision: p.GetTimestampPrecision().GetValue(),
		Default:            p.DefaultValueExpression,
	}
	var known bool
	if f.Type, known = keyOf(storageTypes, p.Type); !known {
		return fmt.Errorf("column %s: unknown column type %s: a newer millrace may know it", path, p.Type)
	}
	if p.Mode != storagepb.TableFieldSchema_MODE_UNSPECIFIED {
		if f.Mode, known = keyOf(storageModes, p.Mode); !known {
			return fmt.Errorf("column %s: unknown column mode %s: a newer millrace may know it", path, p.Mode)
		}
	}
	if p.RangeElementType != nil {
		if f.Range, known = keyOf(storageTypes, p.RangeElementType.Type); !known {
			return fmt.Errorf("column %s: range of unknown type %s: a newer millrace may know it", path, p.RangeElementType.Type)
		}
	}
	f.Fields, err = fieldsFromStorage(path+".", p.Fields)
	return err
}

func keyOf[K, V comparable](m map[K]V, v V) (K, bool) {
	for k, have := range m {
		if have == v {
			return k, true
		}
	}
	var none K
	return none, false
}
