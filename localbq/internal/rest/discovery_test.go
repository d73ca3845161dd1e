package rest

import (
	"net/http"
	"strings"
	"testing"
)

func TestDiscovery(t *testing.T) {
	f := setup(t)
	get := func(path string) answer {
		f.Helper()
		kept := f.url
		f.url = f.server.URL
		defer func() { f.url = kept }()
		return f.do("GET", path, "")
	}
	d := get("/discovery/v1/apis/bigquery/v2/rest").ok()
	t.Run("both paths, this server", func(t *testing.T) {
		if other := get("/$discovery/rest?version=v2").ok(); other.raw != d.raw {
			t.Error("the two paths differ")
		}
		if d.at("rootUrl") != f.server.URL+"/" || d.at("baseUrl") != f.server.URL+"/bigquery/v2/" {
			t.Errorf("rootUrl %v, baseUrl %v", d.at("rootUrl"), d.at("baseUrl"))
		}
		get("/$discovery/rest?version=v3").refused(404, "notFound",
			"The Discovery Document for version v3 of the BigQuery API was not found: version v2 is served")
	})
	t.Run("every method it lists is served", func(t *testing.T) {
		n := 0
		for collection, c := range d.at("resources").(map[string]any) {
			for verb, m := range c.(map[string]any)["methods"].(map[string]any) {
				n++
				method := m.(map[string]any)
				path := "/" + strings.NewReplacer("{+projectId}", "p", "{+datasetId}", "d", "{+tableId}", "t", "{+jobId}", "j").Replace(method["path"].(string))
				a := f.do(method["httpMethod"].(string), path, `{"useLegacySql": false}`)
				if a.code == http.StatusNotImplemented || strings.HasPrefix(a.raw, `{"error":{"code":404,"errors":[{"domain":"global","message":"Not Found:`) {
					t.Errorf("%s.%s: %d %s", collection, verb, a.code, a.raw)
				}
				if method["id"] != "bigquery."+collection+"."+verb {
					t.Errorf("%s.%s has id %v", collection, verb, method["id"])
				}
			}
		}
		if n < 20 {
			t.Errorf("%d methods", n)
		}
	})
	t.Run("jobs are inserted by one path, files by another", func(t *testing.T) {
		m := d.at("resources", "jobs", "methods", "insert").(map[string]any)
		if m["path"] != "projects/{+projectId}/jobs" || m["httpMethod"] != "POST" || m["mediaUpload"] == nil {
			t.Errorf("jobs.insert: %s", compact(t, m))
		}
	})
	t.Run("every reference is there", func(t *testing.T) {
		schemas := d.at("schemas").(map[string]any)
		for rest := d.raw; ; {
			_, after, ok := strings.Cut(rest, `"$ref":"`)
			if !ok {
				break
			}
			name, _, _ := strings.Cut(after, `"`)
			if schemas[name] == nil {
				t.Errorf("schema %s is missing", name)
			}
			rest = after
		}
		rows := d.at("schemas", "Table", "properties", "numRows")
		if compact(t, rows) != `{"format":"uint64","type":"string"}` {
			t.Errorf("Table.numRows is %s", compact(t, rows))
		}
		if d.at("schemas", "Table", "properties", "externalDataConfiguration") != nil {
			t.Error("it lists a field that is refused")
		}
	})
}
