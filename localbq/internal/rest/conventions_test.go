package rest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/localbq/internal/hostile"
	"github.com/millrace-dev/millrace/localbq/internal/mask"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

func TestMask(t *testing.T) {
	const body = `{"a":1,"b":{"c":2,"d":[{"e":3,"f":4},{"e":5}]},"g":{"h":6}}`
	for fields, want := range map[string]string{
		"a":                             `{"a":1}`,
		"b/c,g":                         `{"b":{"c":2},"g":{"h":6}}`,
		"b(c,d/e)":                      `{"b":{"c":2,"d":[{"e":3},{"e":5}]}}`,
		"b/d(f)":                        `{"b":{"d":[{"f":4},{}]}}`,
		"*/c":                           `{"a":1,"b":{"c":2},"g":{}}`,
		"*":                             body,
		"b,b/c":                         `{"b":{"c":2,"d":[{"e":3,"f":4},{"e":5}]}}`,
		"b/c,b":                         `{"b":{"c":2,"d":[{"e":3,"f":4},{"e":5}]}}`,
		"b/c,b/d/e":                     `{"b":{"c":2,"d":[{"e":3},{"e":5}]}}`,
		"nothing":                       `{}`,
		"a(":                            "Invalid field selection ",
		"a)":                            "Invalid field selection )",
		",":                             "Invalid field selection ,",
		"a//b":                          "Invalid field selection /b",
		strings.Repeat("a/", 200) + "a": "Invalid field selection " + strings.Repeat("a/", 100) + "a",
	} {
		m, err := mask.Parse(fields)
		got := []byte{}
		if err == nil {
			got, err = m.Apply([]byte(body))
		}
		if err != nil {
			got = []byte(err.Error())
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", fields, diff)
		}
	}
}

func TestConventions(t *testing.T) {
	f := setup(t)
	f.dataset()
	f.do("POST", tablesPath, `{"tableReference": {"tableId": "t"}, "description": "`+strings.Repeat("long ", 1000)+`"}`).ok()
	t.Run("paths with and without the prefix", func(t *testing.T) {
		for _, prefix := range []string{"", "/bigquery/v2"} {
			res, err := f.server.Client().Get(f.server.URL + prefix + tablesPath + "/t?fields=id")
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || string(body) != `{"id":"p:d.t"}` {
				t.Errorf("%s: %s, %v", prefix, body, err)
			}
		}
	})
	t.Run("gzip both ways", func(t *testing.T) {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		io.WriteString(w, `{"friendlyName": "zipped"}`)
		w.Close()
		f.do("PATCH", tablesPath+"/t", z.String(), "Content-Encoding: gzip").ok()
		a := f.do("GET", tablesPath+"/t", "", "Accept-Encoding: gzip")
		if a.header.Get("Content-Encoding") != "gzip" {
			t.Fatal("the answer is not compressed")
		}
		r, err := gzip.NewReader(strings.NewReader(a.raw))
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.NewDecoder(r).Decode(&got); err != nil || got["friendlyName"] != "zipped" {
			t.Errorf("%v, %v", got["friendlyName"], err)
		}
		f.do("PATCH", tablesPath+"/t", "no gzip", "Content-Encoding: gzip").refused(400, "invalid", "Request body is not gzip: unexpected EOF")
	})
	t.Run("pretty printing", func(t *testing.T) {
		if a := f.do("GET", tablesPath+"/t?fields=id&prettyPrint=true&alt=json&key=k&quotaUser=q", ""); a.raw != "{\n  \"id\": \"p:d.t\"\n}" {
			t.Errorf("got %s", a.raw)
		}
	})
	t.Run("projects", func(t *testing.T) {
		got := f.get("/projects")
		if compact(t, got.at("projects")) != `[{"friendlyName":"p","id":"p","kind":"bigquery#project","numericId":"`+got.at("projects").([]any)[0].(map[string]any)["numericId"].(string)+`","projectReference":{"projectId":"p"}}]` || got.at("totalItems") != 1.0 {
			t.Errorf("got %s", got.raw)
		}
		if a := f.do("GET", "/projects/p/serviceAccount", "").ok(); a.at("kind") != "bigquery#getServiceAccountResponse" {
			t.Errorf("got %s", a.raw)
		}
	})
	t.Run("what there is none of", func(t *testing.T) {
		for _, path := range []string{"/projects/p/datasets/d/routines", "/projects/p/datasets/d/models", tablesPath + "/t/rowAccessPolicies"} {
			if a := f.do("GET", path, "").ok(); strings.Count(a.raw, "[]") != 1 {
				t.Errorf("%s: %s", path, a.raw)
			}
		}
	})
	t.Run("what is not implemented", func(t *testing.T) {
		for call, name := range map[string]string{
			"POST /projects/p/datasets/d/routines":        "routines.insert",
			"GET /projects/p/datasets/d/models/m":         "models.get",
			"POST " + tablesPath + "/t/rowAccessPolicies": "rowAccessPolicies.insert",
		} {
			method, path, _ := strings.Cut(call, " ")
			f.do(method, path, "{}").refused(501, "notImplemented", "local BigQuery does not implement "+name)
		}
		for _, path := range []string{"/discovery/v1/apis/bigquery/v2/rest", "/$discovery/rest?version=v2"} {
			res, err := f.server.Client().Post(f.server.URL+path, "application/json", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != http.StatusNotFound {
				t.Errorf("POST %s: %d", path, res.StatusCode)
			}
		}
	})
	t.Run("paths that are no method", func(t *testing.T) {
		f.do("GET", "/projects/p/nothing", "").refused(404, "notFound", "Not Found: GET /projects/p/nothing")
		f.do("POST", tablesPath+"/t:explode", "{}").refused(404, "notFound", "Not Found: POST /projects/p/datasets/d/tables/t:explode")
	})
	t.Run("IAM grants what is asked", func(t *testing.T) {
		if a := f.do("POST", tablesPath+"/t:testIamPermissions", `{"permissions": ["bigquery.tables.get"]}`).ok(); a.raw != `{"permissions":["bigquery.tables.get"]}` {
			t.Errorf("got %s", a.raw)
		}
		if a := f.do("POST", tablesPath+"/t:getIamPolicy", "").ok(); a.at("etag") == nil {
			t.Errorf("got %s", a.raw)
		}
		f.do("POST", tablesPath+"/u:getIamPolicy", "").refused(404, "notFound", "Not found: Table p:d.u")
	})
	t.Run("queries without an engine", func(t *testing.T) {
		f.do("POST", "/projects/p/queries", `{"query": "SELECT 1", "useLegacySql": false}`).
			refused(501, "notImplemented", "local BigQuery cannot run queries: tests of this room have none")
		f.do("GET", "/projects/p/jobs/none", "").refused(404, "notFound", "Not found: Job p:none")
	})
}

// get makes a call outside of a project.
func (f *fixture) get(path string) answer {
	f.Helper()
	return f.do("GET", path, "").ok()
}

func TestDenied(t *testing.T) {
	f := setup(t, func(d *Deps) {
		d.Denied = func(principal, permission, resource string) bool {
			return principal == "bob" && permission == "bigquery.tables.getData" && resource == "projects/p/datasets/d/tables/t"
		}
	})
	f.dataset()
	if _, err := f.store.CreateTable(f.ref("t"), &schema.Definition{}); err != nil {
		t.Fatal(err)
	}
	f.do("GET", tablesPath+"/t/data", "", "Authorization: Bearer local:ann").ok()
	f.do("GET", tablesPath+"/t/data", "", "Authorization: Bearer local:bob").
		refused(403, "accessDenied", "Access Denied: Table p:d.t: Permission bigquery.tables.getData denied on table p:d.t (or it may not exist).")
}

// FuzzBodies holds that whatever is sent to a method, the answer is JSON and no failure of the server's.
func FuzzBodies(f *testing.F) {
	calls := []string{
		"POST /projects/p/datasets", "PATCH /projects/p/datasets/d", "PUT /projects/p/datasets/d", "POST " + tablesPath, "PATCH " + tablesPath + "/t",
		"PUT " + tablesPath + "/t", "POST /projects/p/jobs", "POST /projects/p/queries", "POST " + tablesPath + "/t:testIamPermissions",
		"POST " + tablesPath + "/t/insertAll",
	}
	for i, body := range []string{
		`{"datasetReference": {"datasetId": "e"}, "labels": {"a": null}}`, `{"labels": {"a": "1"}, "access": [{}]}`, `{"maxTimeTravelHours": "72"}`,
		`{"tableReference": {"tableId": "u"}, "schema": {"fields": [{"name": "a", "type": "RECORD", "fields": [{"name": "b", "type": "RANGE", "rangeElementType": {"type": "DATE"}}]}]}}`,
		`{"schema": {"fields": [null]}}`, `{"timePartitioning": {"type": "DAY"}, "view": null}`,
		`{"configuration": {"query": {"query": "SELECT @a", "useLegacySql": false, "queryParameters": [{"name": "a", "parameterType": {"type": "ARRAY", "arrayType": {"type": "INT64"}}, "parameterValue": {"arrayValues": [null, {"value": "1"}]}}]}}}`,
		`{"query": "SELECT 1", "useLegacySql": false, "formatOptions": {"timestampOutputFormat": "X"}, "queryParameters": [{}]}`, `{"permissions": 5}`,
		`{"rows": [{"insertId": "x", "json": {"a": 1e400, "b": [{"c": null}]}}, {"json": null}], "skipInvalidRows": true, "templateSuffix": "_x"}`,
	} {
		f.Add(i, body)
	}
	f.Fuzz(func(t *testing.T, i int, body string) {
		s := setup(t)
		s.dataset()
		s.do("POST", tablesPath, `{"tableReference": {"tableId": "t"}, "schema": {"fields": [{"name": "a", "type": "INT64"}]}}`).ok()
		method, path, _ := strings.Cut(calls[uint(i)%uint(len(calls))], " ")
		w := httptest.NewRecorder()
		hostile.Proportional(t, len(body), 1024, 8<<20, func() {
			s.server.Config.Handler.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		})
		if w.Code == http.StatusInternalServerError || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %s %s: %d %s", method, path, body, w.Code, w.Body)
		}
	})
}
