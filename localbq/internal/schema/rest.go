package schema

import (
	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// FromREST reads a schema as it arrives in a request; nil stays nil. It refuses names of types and modes that do not
// exist and fields that this service does not keep, and leaves every other rule to Check.
func FromREST(s *bqapi.TableSchema) (*Schema, error) {
	if s == nil {
		return nil, nil
	}
	if s.ForeignTypeInfo != nil {
		return nil, unsupported("schema.foreignTypeInfo")
	}
	fields, err := fieldsFromREST(s.Fields)
	if err != nil {
		return nil, err
	}
	return &Schema{Fields: fields}, nil
}

func fieldsFromREST(in []*bqapi.TableFieldSchema) ([]*Field, error) {
	if len(in) == 0 {
		return nil, nil
	}
	out := make([]*Field, len(in))
	for i, r := range in {
		f, err := fieldFromREST(r)
		if err != nil {
			return nil, err
		}
		out[i] = f
	}
	return out, nil
}

func fieldFromREST(r *bqapi.TableFieldSchema) (*Field, error) {
	if err := unkept(r); err != nil {
		return nil, err
	}
	t, ok := ParseType(r.Type)
	if !ok {
		return nil, refusal.New(refusal.Invalid, "Invalid value for type: %s is not a valid value (field %s)", r.Type, r.Name)
	}
	mode, ok := ParseMode(r.Mode)
	if !ok {
		return nil, refusal.New(refusal.Invalid, "Invalid value for mode: %s is not a valid value (field %s)", r.Mode, r.Name)
	}
	f := &Field{
		Name: r.Name, Type: t, Mode: mode, Description: r.Description, MaxLength: r.MaxLength,
		Precision: r.Precision, Scale: r.Scale, Default: r.DefaultValueExpression, Collation: r.Collation,
		RoundingMode: r.RoundingMode,
	}
	if f.RoundingMode == "ROUNDING_MODE_UNSPECIFIED" {
		f.RoundingMode = ""
	}
	if r.TimestampPrecision != nil {
		f.TimestampPrecision = *r.TimestampPrecision
	}
	if r.PolicyTags != nil {
		f.PolicyTags = r.PolicyTags.Names
	}
	if r.Categories != nil {
		f.Categories = r.Categories.Names
	}
	if r.RangeElementType != nil {
		if f.RangeElement, ok = ParseType(r.RangeElementType.Type); !ok {
			return nil, refusal.New(refusal.Invalid, "Invalid value for rangeElementType: %s is not a valid value (field %s)",
				r.RangeElementType.Type, r.Name)
		}
	}
	var err error
	f.Fields, err = fieldsFromREST(r.Fields)
	return f, err
}

// unkept names the first field that would change results if it were accepted and dropped.
func unkept(r *bqapi.TableFieldSchema) error {
	switch {
	case r.ForeignTypeDefinition != "":
		return unsupported("foreignTypeDefinition of field " + r.Name)
	case r.GeneratedColumn != nil:
		return unsupported("generatedColumn of field " + r.Name)
	case r.DataPolicyList != nil || len(r.DataPolicies) > 0:
		return unsupported("dataPolicies of field " + r.Name)
	case r.DataGovernanceTagsInfo != nil:
		return unsupported("dataGovernanceTagsInfo of field " + r.Name)
	}
	return nil
}

func unsupported(what string) error {
	return refusal.New(refusal.NotImplemented, "local BigQuery does not implement %s", what)
}

// REST is the schema as the REST API answers it, with legacy type names; nil for nil.
func (s *Schema) REST() *bqapi.TableSchema {
	if s == nil {
		return nil
	}
	return &bqapi.TableSchema{Fields: fieldsToREST(s.Fields)}
}

func fieldsToREST(fields []*Field) []*bqapi.TableFieldSchema {
	var out []*bqapi.TableFieldSchema
	for _, f := range fields {
		out = append(out, f.rest())
	}
	return out
}

func (f *Field) rest() *bqapi.TableFieldSchema {
	r := &bqapi.TableFieldSchema{
		Name: f.Name, Type: f.Type.Legacy(), Mode: f.Mode.String(), Description: f.Description, MaxLength: f.MaxLength,
		Precision: f.Precision, Scale: f.Scale, DefaultValueExpression: f.Default, Collation: f.Collation,
		RoundingMode: f.RoundingMode, Fields: fieldsToREST(f.Fields),
	}
	if f.Unsaid && f.Mode == Nullable {
		r.Mode = ""
	}
	if f.TimestampPrecision != 0 {
		r.TimestampPrecision = new(f.TimestampPrecision)
	}
	if f.RangeElement != 0 {
		r.RangeElementType = &bqapi.TableFieldSchemaRangeElementType{Type: f.RangeElement.String()}
	}
	if len(f.PolicyTags) > 0 {
		r.PolicyTags = &bqapi.TableFieldSchemaPolicyTags{Names: f.PolicyTags}
	}
	if len(f.Categories) > 0 {
		r.Categories = &bqapi.TableFieldSchemaCategories{Names: f.Categories}
	}
	return r
}
