package tableadmin

import (
	"fmt"

	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// restNames are the type names the REST service answers with where they differ from GoogleSQL
// (REST reference, TableFieldSchema.type).
var restNames = map[table.Type]string{
	table.Bool:    "BOOLEAN",
	table.Int64:   "INTEGER",
	table.Float64: "FLOAT",
	table.Struct:  "RECORD",
}

func restName(t table.Type) string {
	if name, ok := restNames[t]; ok {
		return name
	}
	return t.String()
}

// ToREST translates a schema into the REST form. Nothing is lost.
func ToREST(s *table.Schema) *bqrest.TableSchema {
	return &bqrest.TableSchema{Fields: fieldsToREST(s.Fields)}
}

func fieldsToREST(fields []table.Field) []*bqrest.TableFieldSchema {
	if len(fields) == 0 {
		return nil
	}
	out := make([]*bqrest.TableFieldSchema, len(fields))
	for i := range fields {
		out[i] = fieldToREST(&fields[i])
	}
	return out
}

func fieldToREST(f *table.Field) *bqrest.TableFieldSchema {
	r := &bqrest.TableFieldSchema{
		Name:                   f.Name,
		Type:                   restName(f.Type),
		Mode:                   f.Mode.String(),
		Fields:                 fieldsToREST(f.Fields),
		Description:            f.Description,
		MaxLength:              f.MaxLength,
		Precision:              f.Precision,
		Scale:                  f.Scale,
		DefaultValueExpression: f.Default,
		Collation:              f.Collation,
		RoundingMode:           f.RoundingMode,
	}
	if f.TimestampPrecision != 0 {
		r.TimestampPrecision = &f.TimestampPrecision
	}
	if f.Range != 0 {
		r.RangeElementType = &bqrest.TableFieldSchemaRangeElementType{Type: f.Range.String()}
	}
	if len(f.PolicyTags) > 0 {
		r.PolicyTags = &bqrest.TableFieldSchemaPolicyTags{Names: f.PolicyTags}
	}
	return r
}

// FromREST translates a schema the REST service answered with. A column type it does not know is an error that names
// the column's path. Column attributes that table.Field has no place for (data policies, generated columns, foreign
// types) are left out.
func FromREST(s *bqrest.TableSchema) (*table.Schema, error) {
	if s == nil {
		return &table.Schema{}, nil
	}
	fields, err := fieldsFromREST("", s.Fields)
	if err != nil {
		return nil, err
	}
	return &table.Schema{Fields: fields}, nil
}

func fieldsFromREST(path string, fields []*bqrest.TableFieldSchema) ([]table.Field, error) {
	if len(fields) == 0 {
		return nil, nil
	}
	out := make([]table.Field, len(fields))
	for i, r := range fields {
		if err := fieldFromREST(&out[i], path+r.Name, r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func fieldFromREST(f *table.Field, path string, r *bqrest.TableFieldSchema) (err error) {
	*f = table.Field{
		Name:        r.Name,
		Description: r.Description,
		MaxLength:   r.MaxLength,
		Precision:   r.Precision,
		Scale:       r.Scale,
		Default:     r.DefaultValueExpression,
		Collation:   r.Collation, RoundingMode: r.RoundingMode,
	}
	if f.Type, err = table.ParseType(r.Type); err != nil {
		return fmt.Errorf("column %s: %w", path, err)
	}
	if f.Mode, err = table.ParseMode(r.Mode); err != nil {
		return fmt.Errorf("column %s: %w", path, err)
	}
	if r.RangeElementType != nil {
		if f.Range, err = table.ParseType(r.RangeElementType.Type); err != nil {
			return fmt.Errorf("column %s: range of %w", path, err)
		}
	}
	if r.TimestampPrecision != nil {
		f.TimestampPrecision = *r.TimestampPrecision
	}
	if r.PolicyTags != nil {
		f.PolicyTags = r.PolicyTags.Names
	}
	f.Fields, err = fieldsFromREST(path+".", r.Fields)
	return err
}
