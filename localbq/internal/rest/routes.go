package rest

import (
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// handler answers one method of the API: a resource to be written as JSON, or nil for none.
type handler func(*call) (any, error)

// served is one method of the API that is answered.
type served struct {
	verb, path, name string
	handle           handler
}

// methods says which path is which method (BigQuery v2 discovery document).
func (s *Server) methods() []served {
	const (
		dataset = "/projects/{project}/datasets/{dataset}"
		tables  = dataset + "/tables"
		table   = tables + "/{table}"
		jobs    = "/projects/{project}/jobs"
		job     = jobs + "/{job}"
		queries = "/projects/{project}/queries"
	)
	return []served{
		{"GET", "/projects", "projects.list", s.listProjects},
		{"GET", "/projects/{project}/serviceAccount", "projects.getServiceAccount", s.serviceAccount},

		{"GET", "/projects/{project}/datasets", "datasets.list", s.listDatasets},
		{"POST", "/projects/{project}/datasets", "datasets.insert", s.insertDataset},
		{"GET", dataset, "datasets.get", s.getDataset},
		{"PATCH", dataset, "datasets.patch", s.patchDataset},
		{"PUT", dataset, "datasets.update", s.updateDataset},
		{"DELETE", dataset, "datasets.delete", s.deleteDataset},

		{"GET", tables, "tables.list", s.listTables},
		{"POST", tables, "tables.insert", s.insertTable},
		{"GET", table, "tables.get", s.getTable},
		{"PATCH", table, "tables.patch", s.patchTable},
		{"PUT", table, "tables.update", s.updateTable},
		{"DELETE", table, "tables.delete", s.deleteTable},
		{"GET", table + "/data", "tabledata.list", s.listRows},
		{"POST", table + "/insertAll", "tabledata.insertAll", s.insertRows},

		{"GET", jobs, "jobs.list", s.listJobs},
		{"POST", jobs, "jobs.insert", s.insertJob},
		{"POST", "/upload" + jobs, "jobs.insert", s.uploadJob},
		{"PUT", "/upload" + jobs, "jobs.insert", s.uploadJob},
		{"GET", job, "jobs.get", s.getJob},
		{"POST", job + "/cancel", "jobs.cancel", s.cancelJob},
		{"DELETE", job + "/delete", "jobs.delete", s.deleteJob},
		{"POST", queries, "jobs.query", s.queryJob},
		{"GET", queries + "/{job}", "jobs.getQueryResults", s.queryResults},

		{"GET", dataset + "/models", "models.list", s.listNothing("", "models")},
		{"GET", dataset + "/routines", "routines.list", s.listNothing("", "routines")},
		{"GET", table + "/rowAccessPolicies", "rowAccessPolicies.list", s.listNothing("", "rowAccessPolicies")},
	}
}

func (s *Server) route() {
	const (
		dataset = "/projects/{project}/datasets/{dataset}"
		table   = dataset + "/tables/{table}"
	)
	for _, m := range s.methods() {
		s.mux.HandleFunc(m.verb+" "+m.path, s.serve(m.name, m.handle))
	}
	for _, m := range []struct{ verb, path, name string }{
		{"GET", dataset + "/models/{model}", "models.get"},
		{"PATCH", dataset + "/models/{model}", "models.patch"},
		{"DELETE", dataset + "/models/{model}", "models.delete"},
		{"POST", dataset + "/routines", "routines.insert"},
		{"GET", dataset + "/routines/{routine}", "routines.get"},
		{"PUT", dataset + "/routines/{routine}", "routines.update"},
		{"DELETE", dataset + "/routines/{routine}", "routines.delete"},
		{"POST", table + "/rowAccessPolicies", "rowAccessPolicies.insert"},
		{"GET", table + "/rowAccessPolicies/{policy}", "rowAccessPolicies.get"},
		{"PUT", table + "/rowAccessPolicies/{policy}", "rowAccessPolicies.update"},
		{"DELETE", table + "/rowAccessPolicies/{policy}", "rowAccessPolicies.delete"},
	} {
		s.mux.HandleFunc(m.verb+" "+m.path, s.serve(m.name, s.notImplemented))
	}
	s.mux.HandleFunc("GET /discovery/v1/apis/bigquery/v2/rest", s.serve("discovery.apis.getRest", s.describe))
	s.mux.HandleFunc("GET /$discovery/rest", s.serve("discovery.apis.getRest", s.describe))
	// Methods spelt after a colon, {table}:setIamPolicy and the like, which ServeMux takes for a part of the name.
	s.mux.HandleFunc("POST "+dataset, s.serve("datasets", s.customDataset))
	s.mux.HandleFunc("POST "+table, s.serve("tables", s.customTable))
	s.mux.HandleFunc("/", s.serve("", s.unknown))
}

func (s *Server) notImplemented(c *call) (any, error) {
	return nil, refusal.New(refusal.NotImplemented, "local BigQuery does not implement %s", c.method)
}

func (s *Server) unknown(c *call) (any, error) {
	return nil, refusal.New(refusal.NotFound, "Not Found: %s %s", c.r.Method, c.r.URL.Path)
}

// listNothing lists what the service has none of.
func (s *Server) listNothing(kind, key string) handler {
	return func(c *call) (any, error) {
		if _, err := s.Store.Dataset(c.dataset()); err != nil {
			return nil, err
		}
		answer := map[string]any{key: []any{}}
		if kind != "" {
			answer["kind"] = kind
		}
		return answer, nil
	}
}

func (s *Server) customDataset(c *call) (any, error) {
	_, verb, _ := strings.Cut(c.r.PathValue("dataset"), ":")
	c.method = "datasets." + verb
	if verb == "undelete" {
		return s.notImplemented(c)
	}
	return s.unknown(c)
}

// customTable answers the IAM methods: a stub policy, and those permissions that are asked for and not denied.
func (s *Server) customTable(c *call) (any, error) {
	id, verb, _ := strings.Cut(c.r.PathValue("table"), ":")
	c.r.SetPathValue("table", id)
	c.method = "tables." + verb
	switch verb {
	case "getIamPolicy", "setIamPolicy", "testIamPermissions":
	default:
		return s.unknown(c)
	}
	if _, err := s.Store.Table(c.table()); err != nil {
		return nil, err
	}
	if verb != "testIamPermissions" {
		return map[string]any{"version": 1, "etag": "ACAB"}, nil // the etag of a policy nobody has set
	}
	var asked struct {
		Permissions []string `json:"permissions"`
	}
	if err := c.body(&asked); err != nil {
		return nil, err
	}
	return s.granted(c, asked.Permissions)
}

// granted answers which permissions a caller has on a table. An answer without any has no list (IAM v1,
// TestIamPermissionsResponse, a repeated field); a permission that nobody could have is refused.
func (s *Server) granted(c *call, asked []string) (any, error) {
	var has []string
	for _, p := range asked {
		if strings.ContainsAny(p, "*") || strings.Count(p, ".") < 2 {
			return nil, refusal.New(refusal.Invalid, "Permission %s is not valid for this resource.", p)
		}
		if t := c.table(); s.Denied == nil || !s.Denied(c.principal, p, t.Path()) {
			has = append(has, p)
		}
	}
	return struct {
		Permissions []string `json:"permissions,omitempty"`
	}{has}, nil
}
