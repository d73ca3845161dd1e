package rest

import (
	"reflect"
	"slices"
	"strings"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// The discovery document: what `bq` and every client that is made at run time ask for before anything else. It is made from
// the routes and from the types that requests are read into, so it lists what is served and nothing besides.

// shape is what a method takes besides its path, and what it answers.
type shape struct {
	parameters string // of the query, "name" for a string, "name:type" otherwise
	request    any
	response   any
}

const paged = "maxResults:integer pageToken "

// shapes are the shapes of the methods by name.
var shapes = map[string]shape{
	"projects.list":              {paged, nil, bqapi.ProjectList{}},
	"projects.getServiceAccount": {"", nil, bqapi.GetServiceAccountResponse{}},

	"datasets.list":   {paged + "all:boolean", nil, bqapi.DatasetList{}},
	"datasets.insert": {policy, bqapi.Dataset{}, bqapi.Dataset{}},
	"datasets.get":    {policy, nil, bqapi.Dataset{}},
	"datasets.patch":  {policy + " updateMode", bqapi.Dataset{}, bqapi.Dataset{}},
	"datasets.update": {policy + " updateMode", bqapi.Dataset{}, bqapi.Dataset{}},
	"datasets.delete": {"deleteContents:boolean", nil, nil},

	"tables.list":         {paged, nil, bqapi.TableList{}},
	"tables.insert":       {"", bqapi.Table{}, bqapi.Table{}},
	"tables.get":          {"selectedFields view", nil, bqapi.Table{}},
	"tables.patch":        {"autodetect_schema:boolean", bqapi.Table{}, bqapi.Table{}},
	"tables.update":       {"autodetect_schema:boolean", bqapi.Table{}, bqapi.Table{}},
	"tables.delete":       {"", nil, nil},
	"tabledata.list":      {paged + "selectedFields startIndex:uint64 " + formats, nil, bqapi.TableDataList{}},
	"tabledata.insertAll": {"", bqapi.TableDataInsertAllRequest{}, bqapi.TableDataInsertAllResponse{}},

	"jobs.list":            {paged + "allUsers:boolean parentJobId projection stateFilter:list", nil, bqapi.JobList{}},
	"jobs.insert":          {"", bqapi.Job{}, bqapi.Job{}},
	"jobs.get":             {"location", nil, bqapi.Job{}},
	"jobs.cancel":          {"location", nil, bqapi.JobCancelResponse{}},
	"jobs.delete":          {"location", nil, nil},
	"jobs.query":           {"", bqapi.QueryRequest{}, bqapi.QueryResponse{}},
	"jobs.getQueryResults": {paged + "location startIndex:uint64 timeoutMs:uint32 " + formats, nil, bqapi.GetQueryResultsResponse{}},

	"models.list":            {paged, nil, bqapi.ListModelsResponse{}},
	"routines.list":          {paged, nil, bqapi.ListRoutinesResponse{}},
	"rowAccessPolicies.list": {paged, nil, bqapi.ListRowAccessPoliciesResponse{}},
}

// policy is the form of access lists, which are kept as they come.
const policy = "accessPolicyVersion:int32"

const formats = "formatOptions.useInt64Timestamp:boolean formatOptions.timestampOutputFormat"

// resourceFields are the fields that resources keep, where the service reads them through a list of its own.
var resourceFields = map[string]fields{
	"Table": tableFields, "Dataset": datasetFields, "JobConfigurationQuery": queryFields, "QueryRequest": requestFields,
}

// describe answers the discovery document.
func (s *Server) describe(c *call) (any, error) {
	if v := c.param("version"); v != "" && v != "v2" {
		return nil, refusal.New(refusal.NotFound, "The Discovery Document for version %s of the BigQuery API was not found: version v2 is served", v)
	}
	root := "http://" + c.r.Host + "/"
	d := &describer{schemas: map[string]any{}}
	return map[string]any{
		"kind": "discovery#restDescription", "discoveryVersion": "v1", "id": "bigquery:v2", "name": "bigquery", "version": "v2",
		"title": "BigQuery API, as the local BigQuery serves it", "protocol": "rest", "ownerName": "millrace",
		"description": "The methods and fields that the local BigQuery answers; others are refused with notImplemented.",
		"rootUrl":     root, "baseUrl": root + "bigquery/v2/", "basePath": "/bigquery/v2/", "servicePath": "bigquery/v2/", "batchPath": "batch/bigquery/v2",
		"parameters": map[string]any{
			"alt": parameter("query", "string"), "fields": parameter("query", "string"), "key": parameter("query", "string"),
			"prettyPrint": parameter("query", "boolean"), "quotaUser": parameter("query", "string"),
		},
		"resources": d.resources(s.methods()), "schemas": d.schemas,
	}, nil
}

func parameter(location, kind string) map[string]any {
	p := map[string]any{"type": kind, "location": location}
	switch kind {
	case "list":
		p["type"], p["repeated"] = "string", true
	case "uint64":
		p["type"], p["format"] = "string", kind
	case "uint32", "int32":
		p["type"], p["format"] = "integer", kind
	}
	if location == "path" {
		p["required"] = true
	}
	return p
}

// describer gathers the schemas that methods refer to.
type describer struct{ schemas map[string]any }

// resources are the methods by collection.
func (d *describer) resources(methods []served) map[string]any {
	collections := map[string]map[string]any{}
	for _, m := range methods {
		if strings.HasPrefix(m.path, "/upload/") {
			continue // the same method by another path, which mediaUpload names
		}
		collection, verb, _ := strings.Cut(m.name, ".")
		if collections[collection] == nil {
			collections[collection] = map[string]any{}
		}
		collections[collection][verb] = d.method(m)
	}
	out := map[string]any{}
	for name, methods := range collections {
		out[name] = map[string]any{"methods": methods}
	}
	return out
}

func (d *describer) method(m served) map[string]any {
	path, order := describePath(m.path)
	parameters := map[string]any{}
	for _, name := range order {
		parameters[name] = parameter("path", "string")
	}
	takes := shapes[m.name]
	for p := range strings.FieldsSeq(takes.parameters) {
		name, kind, typed := strings.Cut(p, ":")
		if !typed {
			kind = "string"
		}
		parameters[name] = parameter("query", kind)
	}
	out := map[string]any{
		"id": "bigquery." + m.name, "httpMethod": m.verb, "path": path, "flatPath": path, "parameters": parameters,
		"parameterOrder": order, "scopes": []string{"https://www.googleapis.com/auth/bigquery"}, "description": m.name,
	}
	if takes.request != nil {
		out["request"] = d.reference(reflect.TypeOf(takes.request))
	}
	if takes.response != nil {
		out["response"] = d.reference(reflect.TypeOf(takes.response))
	}
	if m.name == "jobs.insert" {
		out["supportsMediaUpload"], out["mediaUpload"] = true, map[string]any{"accept": []string{"*/*"}, "protocols": map[string]any{
			"simple":    map[string]any{"multipart": true, "path": "/upload/bigquery/v2/" + path},
			"resumable": map[string]any{"multipart": true, "path": "/resumable/upload/bigquery/v2/" + path},
		}}
	}
	return out
}

// describePath is a route's path as the document has it, relative to the service's, with the names of its parameters.
func describePath(path string) (string, []string) {
	var order []string
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, p := range parts {
		if name, ok := strings.CutPrefix(p, "{"); ok {
			name = strings.TrimSuffix(name, "}") + "Id"
			order = append(order, name)
			parts[i] = "{+" + name + "}"
		}
	}
	return strings.Join(parts, "/"), order
}

// reference describes a type of the API and answers where.
func (d *describer) reference(t reflect.Type) map[string]any {
	if _, done := d.schemas[t.Name()]; !done {
		d.schemas[t.Name()] = nil // resources may contain themselves
		d.schemas[t.Name()] = map[string]any{"id": t.Name(), "type": "object", "properties": d.properties(t)}
	}
	return map[string]any{"$ref": t.Name()}
}

func (d *describer) properties(t reflect.Type) map[string]any {
	out := map[string]any{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("json"), ",")
		if !f.IsExported() || tag[0] == "-" || tag[0] == "" {
			continue
		}
		if known := resourceFields[t.Name()]; known != nil && known[tag[0]] == 0 {
			continue
		}
		p := d.typeOf(f.Type)
		if slices.Contains(tag, "string") {
			p["type"], p["format"] = "string", f.Type.Kind().String()
		}
		out[tag[0]] = p
	}
	return out
}

func (d *describer) typeOf(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		return d.typeOf(t.Elem())
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int64, reflect.Uint64:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number", "format": "double"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 { // JSON as it comes
			return map[string]any{"type": "any"}
		}
		return map[string]any{"type": "array", "items": d.typeOf(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": d.typeOf(t.Elem())}
	case reflect.Struct:
		return d.reference(t)
	}
	return map[string]any{"type": "any"}
}
