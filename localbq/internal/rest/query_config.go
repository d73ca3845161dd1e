package rest

import (
	"encoding/json"
	"fmt"
	"strings"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// queryConfig is the configuration of a query job, as jobs.insert and jobs.query both end up with.
type queryConfig struct {
	*bqapi.JobConfigurationQuery
	labels     map[string]string
	timeoutMs  int64 // jobTimeoutMs; 0 is none
	dryRun     bool
	parameters []query.Parameter
	raw        json.RawMessage // queryParameters as they came
	// object is the whole configuration as jobs.insert got it; nil for jobs.query.
	object map[string]json.RawMessage
}

// Fields of configurations. Results of GoogleSQL are neither flattened nor bounded in size, so the fields that speak of it have no effect.
var (
	jobFields           = fieldsOf("configuration jobReference", "kind id selfLink etag status statistics user_email principal_subject jobCreationReason")
	configurationFields = fieldsOf("query load copy extract dryRun labels jobTimeoutMs", "jobType")
	queryFields         = fieldsOf(
		`query destinationTable createDisposition writeDisposition defaultDataset useLegacySql parameterMode queryParameters
		timePartitioning rangePartitioning clustering maximumBytesBilled priority useQueryCache schemaUpdateOptions`,
		`allowLargeResults flattenResults maximumBillingTier preserveNulls systemVariables`)
	requestFields = fieldsOf(
		`query maxResults defaultDataset timeoutMs dryRun useLegacySql parameterMode queryParameters location formatOptions labels
		maximumBytesBilled requestId jobTimeoutMs jobCreationMode useQueryCache`,
		`kind preserveNulls`)
)

// readQuery reads the fields of a query from an object that has been checked, and checks what they say.
func readQuery(object map[string]json.RawMessage, known fields) (*queryConfig, error) {
	c := &queryConfig{JobConfigurationQuery: &bqapi.JobConfigurationQuery{}}
	kept := known.keep(object)
	c.raw = kept["queryParameters"]
	delete(kept, "queryParameters")
	legacy := kept["useLegacySql"]
	if err := recast(kept, c.JobConfigurationQuery); err != nil {
		return nil, err
	}
	// Absent is true, as BigQuery has it; a statement may say otherwise for itself.
	first, _, _ := strings.Cut(strings.TrimSpace(c.Query), "\n")
	if string(legacy) != "false" && !strings.EqualFold(strings.TrimSpace(first), "#standardSQL") {
		return nil, refusal.New(refusal.NotImplemented, "local BigQuery does not implement legacy SQL: set useLegacySql to false, because BigQuery takes its absence for true")
	}
	if strings.TrimSpace(c.Query) == "" {
		return nil, refusal.New(refusal.Invalid, "Required parameter is missing: query")
	}
	return c, c.check()
}

func (c *queryConfig) check() error {
	if !oneOf(c.CreateDisposition, "", "CREATE_IF_NEEDED", "CREATE_NEVER") {
		return refusal.New(refusal.Invalid, "Invalid value for createDisposition: %s is not a valid value", c.CreateDisposition)
	}
	if !oneOf(c.WriteDisposition, "", "WRITE_EMPTY", "WRITE_APPEND", "WRITE_TRUNCATE", "WRITE_TRUNCATE_DATA") {
		return refusal.New(refusal.Invalid, "Invalid value for writeDisposition: %s is not a valid value", c.WriteDisposition)
	}
	if !oneOf(c.Priority, "", "INTERACTIVE", "BATCH") {
		return refusal.New(refusal.Invalid, "Invalid value for priority: %s is not a valid value", c.Priority)
	}
	if d := c.DestinationTable; d != nil {
		if d.DatasetId == "" || d.TableId == "" {
			return refusal.New(refusal.Invalid, "Required parameter is missing: destinationTable.datasetId and tableId")
		}
		if err := checkDestination(d); err != nil {
			return err
		}
	}
	if c.DestinationTable == nil && (c.TimePartitioning != nil || c.RangePartitioning != nil || c.Clustering != nil) {
		return refusal.New(refusal.Invalid, "Partitioning and clustering can only be set together with destinationTable")
	}
	if err := c.checkSchemaUpdate(); err != nil {
		return err
	}
	var err error
	c.parameters, err = readParameters(c.raw, c.ParameterMode)
	return err
}

func oneOf(s string, values ...string) bool {
	for _, v := range values {
		if s == v {
			return true
		}
	}
	return false
}

// jsonParameter is a query parameter. Unlike the API's own type it tells an empty value from none, which is NULL.
type jsonParameter struct {
	Name  string           `json:"name"`
	Type  *jsonParamType   `json:"parameterType"`
	Value *jsonParamValues `json:"parameterValue"`
}

type jsonParamType struct {
	Type        string         `json:"type"`
	ArrayType   *jsonParamType `json:"arrayType"`
	RangeType   *jsonParamType `json:"rangeElementType"`
	StructTypes []struct {
		Name string         `json:"name"`
		Type *jsonParamType `json:"type"`
	} `json:"structTypes"`
}

type jsonParamValues struct {
	Value        *string                     `json:"value"`
	ArrayValues  []*jsonParamValues          `json:"arrayValues"`
	StructValues map[string]*jsonParamValues `json:"structValues"`
	RangeValue   json.RawMessage             `json:"rangeValue"`
}

func readParameters(raw json.RawMessage, mode string) ([]query.Parameter, error) {
	if raw == nil {
		return nil, nil
	}
	var list []jsonParameter
	if err := decode(raw, &list); err != nil {
		return nil, err
	}
	out := make([]query.Parameter, len(list))
	for i, p := range list {
		where := p.Name
		if where == "" {
			where = fmt.Sprintf("number %d", i+1)
		}
		if mode == "NAMED" && p.Name == "" || mode == "POSITIONAL" && p.Name != "" {
			return nil, refusal.New(refusal.Invalid, "Query parameter %s does not fit parameterMode %s", where, mode)
		}
		f, err := p.Type.field(where)
		if err != nil {
			return nil, err
		}
		out[i] = query.Parameter{Name: p.Name, Type: f}
		if out[i].Value, err = p.Value.value(f, where); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// field is a parameter's type.
func (t *jsonParamType) field(where string) (*schema.Field, error) {
	if t == nil {
		return nil, refusal.New(refusal.Invalid, "Query parameter %s has no parameterType", where)
	}
	switch strings.ToUpper(t.Type) {
	case "ARRAY":
		f, err := t.ArrayType.field(where)
		if err == nil && f.Mode == schema.Repeated {
			err = refusal.New(refusal.Invalid, "Query parameter %s is an array of arrays", where)
		}
		if err != nil {
			return nil, err
		}
		f.Mode = schema.Repeated
		return f, nil
	case "STRUCT":
		f := &schema.Field{Type: schema.Struct}
		for _, m := range t.StructTypes {
			member, err := m.Type.field(where + "." + m.Name)
			if err != nil {
				return nil, err
			}
			member.Name = m.Name
			f.Fields = append(f.Fields, member)
		}
		return f, nil
	case "RANGE":
		return nil, refusal.New(refusal.NotImplemented, "local BigQuery does not implement query parameters of type RANGE: %s", where)
	}
	k, ok := schema.ParseType(t.Type)
	if !ok {
		return nil, refusal.New(refusal.Invalid, "Query parameter %s has the unknown type %q", where, t.Type)
	}
	return &schema.Field{Type: k}, nil
}

// value is a parameter's value; none at all is NULL.
func (v *jsonParamValues) value(f *schema.Field, where string) (query.Value, error) {
	if v == nil {
		return query.Value{Null: true}, nil
	}
	switch {
	case f.Mode == schema.Repeated:
		element := *f
		element.Mode = schema.Nullable
		out := query.Value{}
		for _, e := range v.ArrayValues {
			w, err := e.value(&element, where)
			if err != nil {
				return out, err
			}
			out.List = append(out.List, w)
		}
		return out, nil
	case f.Type == schema.Struct:
		out := query.Value{Null: v.StructValues == nil}
		for _, m := range f.Fields {
			w, err := v.StructValues[m.Name].value(m, where+"."+m.Name)
			if err != nil {
				return out, err
			}
			out.List = append(out.List, w)
		}
		return out, nil
	case v.Value == nil:
		return query.Value{Null: true}, nil
	}
	return query.Value{Scalar: *v.Value}, nil
}
