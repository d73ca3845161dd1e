//go:build cgo

package duckdb_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// queried is a query job that has ended well.
func (s *service) queried(sql string, more ...string) map[string]any {
	s.Helper()
	code, job := s.do("POST", "/jobs", fmt.Sprintf(`{"configuration": {"query": {"query": %s, "useLegacySql": false%s}}}`, text(sql), strings.Join(more, "")), "")
	if code != 200 {
		s.Fatalf("%s: %s", sql, text(job))
	}
	id := at(job, "jobReference", "jobId").(string)
	where := "location=" + at(job, "jobReference", "location").(string)
	s.do("GET", "/queries/"+id+"?maxResults=0&"+where, "", "")
	_, job = s.do("GET", "/jobs/"+id+"?"+where, "", "")
	return job
}

func TestResultCache(t *testing.T) {
	figures := func(job map[string]any) string {
		return fmt.Sprint(at(job, "statistics", "query", "cacheHit"), " ", at(job, "statistics", "query", "totalBytesBilled"))
	}
	table := func(job map[string]any) string { return text(at(job, "configuration", "query", "destinationTable")) }
	const sql = "SELECT COUNT(*) AS n FROM d.words"
	t.Run("LBQ-158 the same query again", func(t *testing.T) {
		s := start(t)
		s.words(10)
		first, second := s.queried(sql), s.queried(sql)
		if figures(first) != "false 0" && figures(first) != "false 10485760" || figures(second) != "true 0" || table(first) != table(second) {
			t.Errorf("first %s %s, second %s %s", figures(first), table(first), figures(second), table(second))
		}
		if _, a := s.do("POST", "/queries", `{"useLegacySql": false, "query": `+text(sql)+`}`, ""); at(a, "cacheHit") != true || text(at(a, "rows")) != `[{"f":[{"v":"10"}]}]` {
			t.Errorf("jobs.query: %s", text(a))
		}
	})
	t.Run("LBQ-159 the same query after an append", func(t *testing.T) {
		s := start(t)
		s.must("CREATE SCHEMA d", "CREATE TABLE d.words (w STRING)", "CREATE VIEW d.v AS SELECT w FROM d.words")
		first := s.queried(sql)
		s.must("INSERT d.words VALUES ('a')")
		if second := s.queried(sql); figures(second) == "true 0" || table(first) == table(second) {
			t.Errorf("after an append: %s", figures(second))
		}
		if got := s.rowsOf(sql); got != `[("1")]` {
			t.Error(got)
		}
		s.queried("SELECT * FROM d.v")
		s.must("CREATE OR REPLACE VIEW d.v AS SELECT UPPER(w) AS w FROM d.words")
		if got := s.rowsOf("SELECT * FROM d.v"); got != `[("A")]` {
			t.Errorf("a view with another text: %s", got)
		}
	})
	t.Run("what the cache is not used for", func(t *testing.T) {
		s := start(t)
		s.words(1)
		s.queried(sql)
		s.queried("SELECT RAND()")
		for name, job := range map[string]map[string]any{
			"useQueryCache": s.queried(sql, `, "useQueryCache": false`), "volatile": s.queried("SELECT RAND()"),
			"another text": s.queried(sql + " "), "parameters": s.queried(sql, `, "parameterMode": "NAMED", "queryParameters": [{"name": "a", "parameterType": {"type": "INT64"}, "parameterValue": {"value": "1"}}]`),
			"default dataset": s.queried(sql, `, "defaultDataset": {"projectId": "p", "datasetId": "d"}`),
			"destination":     s.queried(sql, `, "destinationTable": {"projectId": "p", "datasetId": "d", "tableId": "x"}`),
		} {
			if at(job, "statistics", "query", "cacheHit") != false {
				t.Errorf("%s: %s", name, text(at(job, "statistics", "query")))
			}
		}
		if code, a := s.do("POST", "/queries", `{"useLegacySql": false, "query": `+text(sql)+`}`, "ada"); code != 200 || at(a, "cacheHit") != false {
			t.Errorf("another principal: %d %s", code, text(a))
		}
		s.clock.Advance(24*time.Hour + time.Second)
		if job := s.queried(sql); at(job, "statistics", "query", "cacheHit") != false {
			t.Error("a day later")
		}
	})
}

func TestDestinations(t *testing.T) {
	s := start(t)
	s.must("CREATE SCHEMA d")
	const into = `, "destinationTable": {"projectId": "p", "datasetId": "d", "tableId": "t"}, "writeDisposition": `
	fault := func(sql, more string) string {
		m, _ := at(s.queried(sql, more), "status", "errorResult", "message").(string)
		return m
	}
	t.Run("LBQ-161 WRITE_TRUNCATE_DATA keeps everything but the rows", func(t *testing.T) {
		s.must(`CREATE TABLE d.t (id INT64 OPTIONS (description = 'key'), name STRING(5), PRIMARY KEY (id) NOT ENFORCED)
			CLUSTER BY id OPTIONS (description = 'kept', labels = [('k', 'v')])`, "INSERT d.t VALUES (1, 'a'), (2, 'b')")
		strip := func() string {
			_, r := s.do("GET", "/datasets/d/tables/t", "", "")
			return text([]any{at(r, "schema"), at(r, "description"), at(r, "labels"), at(r, "tableConstraints"), at(r, "clustering"), at(r, "creationTime")})
		}
		before := strip()
		if m := fault("SELECT 'z' AS name, 9 AS id", into+`"WRITE_TRUNCATE_DATA"`); m != "" {
			t.Fatal(m)
		}
		if got := s.rowsOf("SELECT id, name FROM d.t"); got != `[("9","z")]` {
			t.Error(got)
		}
		if after := strip(); after != before {
			t.Errorf("before %s\nafter  %s", before, after)
		}
	})
	t.Run("appends meet columns by name", func(t *testing.T) {
		for sql, want := range map[string]string{
			"SELECT 'y' AS name":                "",
			"SELECT 1 AS id, 1 AS other":        "Invalid schema update. Cannot add fields (field: other)",
			"SELECT 'x' AS id":                  "Invalid schema update. Field id has changed type from INTEGER to STRING",
			"SELECT 'longer than five' AS name": "Field name: STRING(5) has maximum length 5 but got a value with length 16",
		} {
			if m := fault(sql, into+`"WRITE_APPEND"`); m != want {
				t.Errorf("%s: %q, want %q", sql, m, want)
			}
		}
		if got := s.rowsOf("SELECT id, name FROM d.t ORDER BY id"); got != `[(null,"y"),("9","z")]` {
			t.Error(got)
		}
	})
	t.Run("schemaUpdateOptions", func(t *testing.T) {
		code, a := s.do("POST", "/jobs", `{"configuration": {"query": {"query": "SELECT 1", "useLegacySql": false`+into+`"WRITE_TRUNCATE", "schemaUpdateOptions": ["ALLOW_FIELD_ADDITION"]}}}`, "")
		if code != 400 || at(a, "error", "message") != "Schema update options should only be specified with WRITE_APPEND disposition, or with WRITE_TRUNCATE disposition on a table partition." {
			t.Errorf("%d %s", code, text(a))
		}
		for _, write := range []string{"WRITE_APPEND", "WRITE_TRUNCATE_DATA"} {
			column := strings.ToLower(write)
			if m := fault("SELECT 10 AS id, TRUE AS "+column, into+`"`+write+`", "schemaUpdateOptions": ["ALLOW_FIELD_ADDITION"]`); m != "" {
				t.Errorf("%s: %s", write, m)
			}
		}
		if got := s.rowsOf("SELECT * FROM d.t"); got != `[("10",null,null,"true")]` {
			t.Error(got)
		}
		s.must("CREATE TABLE d.r (id INT64 NOT NULL)")
		r := strings.ReplaceAll(into, `"t"`, `"r"`) + `"WRITE_APPEND"`
		if m := fault("SELECT 1 AS id", r); m != "Invalid schema update. Field id has changed mode from REQUIRED to NULLABLE" {
			t.Error(m)
		}
		if m := fault("SELECT 1 AS id", r+`, "schemaUpdateOptions": ["ALLOW_FIELD_RELAXATION"]`); m != "" {
			t.Error(m)
		}
	})
	t.Run("dispositions", func(t *testing.T) {
		if m := fault("SELECT 1 AS id", into+`"WRITE_EMPTY"`); m != "Already Exists: Table p:d.t" {
			t.Error(m)
		}
		if m := fault("SELECT 1 AS id", strings.ReplaceAll(into, `"t"`, `"none"`)+`"WRITE_APPEND", "createDisposition": "CREATE_NEVER"`); m != "Not found: Table p:d.none" {
			t.Error(m)
		}
		if m := fault("SELECT 'new' AS w", into+`"WRITE_TRUNCATE"`); m != "" {
			t.Error(m)
		}
		if got := s.rowsOf("SELECT * FROM d.t"); got != `[("new")]` {
			t.Error(got)
		}
		s.must("CREATE VIEW d.v AS SELECT 1 AS x")
		if m := fault("SELECT 1 AS x", strings.ReplaceAll(into, `"t"`, `"v"`)+`"WRITE_APPEND"`); m != "p:d.v is not allowed for this operation because it is currently a VIEW." {
			t.Error(m)
		}
	})
}
