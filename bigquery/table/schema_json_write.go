package table

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// jsonField is a field in the REST API's form (BigQuery REST reference, TableFieldSchema). int64 values are quoted
// there.
type jsonField struct {
	Name               string          `json:"name"`
	Type               string          `json:"type"`
	Mode               string          `json:"mode"`
	Fields             []jsonField     `json:"fields,omitempty"`
	RangeElement       *jsonElement    `json:"rangeElementType,omitempty"`
	Description        string          `json:"description,omitempty"`
	MaxLength          string          `json:"maxLength,omitempty"`
	Precision          string          `json:"precision,omitempty"`
	Scale              string          `json:"scale,omitempty"`
	TimestampPrecision string          `json:"timestampPrecision,omitempty"`
	Default            string          `json:"defaultValueExpression,omitempty"`
	Collation          string          `json:"collation,omitempty"`
	RoundingMode       string          `json:"roundingMode,omitempty"`
	PolicyTags         *jsonPolicyTags `json:"policyTags,omitempty"`
}

type jsonElement struct {
	Type string `json:"type"`
}

type jsonPolicyTags struct {
	Names []string `json:"names"`
}

// JSON is the schema as an array of fields, indented, the way "bq show --schema --format=prettyjson" prints it.
// ParseSchemaJSON reads it back.
func (s *Schema) JSON() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(jsonFields(s.Fields)); err != nil {
		panic(err) // strings and slices always encode
	}
	return b.Bytes()
}

// SchemaKey is the metadata key under which Avro, Arrow and Parquet schemas that are made of a table's carry it, as
// CompactJSON, for what the format has no place for.
const SchemaKey = "bigquery.schema"

// CompactJSON is JSON on one line.
func (s *Schema) CompactJSON() []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, s.JSON()); err != nil {
		panic(err) // JSON is JSON
	}
	return b.Bytes()
}

func jsonFields(fields []Field) []jsonField {
	if len(fields) == 0 {
		return nil
	}
	out := make([]jsonField, len(fields))
	for i := range fields {
		out[i] = fields[i].json()
	}
	return out
}

func (f *Field) json() jsonField {
	j := jsonField{
		Name:               f.Name,
		Type:               f.Type.RESTName(),
		Mode:               f.Mode.String(),
		Fields:             jsonFields(f.Fields),
		Description:        f.Description,
		MaxLength:          quotedInt(f.MaxLength),
		Precision:          quotedInt(f.Precision),
		Scale:              quotedInt(f.Scale),
		TimestampPrecision: quotedInt(f.TimestampPrecision),
		Default:            f.Default,
		Collation:          f.Collation,
		RoundingMode:       f.RoundingMode,
	}
	if f.Range != 0 {
		j.RangeElement = &jsonElement{f.Range.RESTName()}
	}
	if len(f.PolicyTags) > 0 {
		j.PolicyTags = &jsonPolicyTags{f.PolicyTags}
	}
	return j
}

func quotedInt(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// RESTName is the name the REST API answers with, which for four types is not the GoogleSQL one.
func (t Type) RESTName() string {
	switch t {
	case Bool:
		return "BOOLEAN"
	case Int64:
		return "INTEGER"
	case Float64:
		return "FLOAT"
	case Struct:
		return "RECORD"
	}
	return t.String()
}
