//go:build cgo

package duckdb_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"cloud.google.com/go/bigquery"

	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/duckdb"
)

// inFolder starts a service on a folder, which close ends.
func inFolder(t *testing.T, dir string, clock *localbq.ManualClock) (s *service, end func()) {
	t.Helper()
	queries, err := duckdb.New()
	if err != nil {
		t.Fatal(err)
	}
	i, err := localbq.Start(t.Context(), localbq.Config{Project: "p", Dir: dir, Queries: queries, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	c, err := bigquery.NewClient(t.Context(), "p", i.ClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	return &service{t, i, clock, c}, func() {
		t.Helper()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		if err := errors.Join(c.Close(), i.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// told is what the service says of a job.
func (s *service) told(id string) string {
	s.Helper()
	code, job := s.do("GET", "/jobs/"+id, "", "")
	if code != 200 {
		s.Fatalf("job %s: %d %s", id, code, text(job))
	}
	return text(map[string]any{"status": job["status"], "statistics": job["statistics"], "configuration": job["configuration"], "user": job["user_email"]})
}

// TestQueryJobsOutliveTheProcess: what a query was, and what became of it, is known to the next process on the folder, and a
// statement that was not over when the process ended has failed.
func TestQueryJobsOutliveTheProcess(t *testing.T) {
	dir, clock := t.TempDir(), localbq.NewManualClock()
	jobs := []struct{ id, sql string }{
		{"schema", "CREATE SCHEMA d"},
		{"create", "CREATE TABLE d.t (id INT64, s STRING)"},
		{"insert", "INSERT d.t VALUES (1, 'a'), (2, 'b'), (3, 'c')"},
		{"update", "UPDATE d.t SET s = 'z' WHERE id = 2"},
		{"none", "DELETE FROM d.t WHERE id = 77"},
		{"merge", "MERGE d.t USING (SELECT 3 AS id UNION ALL SELECT 4) AS n ON t.id = n.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, s) VALUES (n.id, 'n')"},
		{"made", "CREATE TABLE d.made AS SELECT id, s FROM d.t"},
		{"replaced", "CREATE OR REPLACE TABLE d.made AS SELECT id FROM d.t"},
		{"altered", "ALTER TABLE d.t ADD COLUMN x INT64"},
		{"select", "SELECT id, s FROM d.t ORDER BY id"},
		{"again", "SELECT id, s FROM d.t ORDER BY id"},
		{"dropped", "SELECT 1 AS n"},
		{"bad", "SELECT nobody FROM d.t"},
		{"copy", "CREATE TABLE d.other AS SELECT 1 AS n"},
		{"truncated", "TRUNCATE TABLE d.other"},
	}
	before, results := map[string]string{}, map[string]string{}
	s, end := inFolder(t, dir, clock)
	for _, j := range jobs {
		if code, job := s.insert(j.id, "US", j.sql, ""); code != 200 {
			t.Fatalf("%s: %s", j.sql, text(job))
		}
		before[j.id] = s.told(j.id)
		if failed := strings.Contains(before[j.id], "errorResult"); failed != (j.id == "bad") {
			t.Fatalf("%s: %s", j.sql, before[j.id])
		}
	}
	for _, id := range []string{"select", "again", "merge", "made", "bad"} {
		_, answer := s.do("GET", "/queries/"+id, "", "")
		results[id] = text(answer)
	}
	for _, table := range []string{"d.t", "d.made", "d.other"} {
		if lost, err := s.Audit().Unaccounted(table); err != nil || len(lost) > 0 {
			t.Errorf("the audit log does not know of rows %v of %s: %v", lost, table, err)
		}
	}
	if made, err := s.Audit().JobsByID(); err != nil || len(made["p:US.made"]) != 1 || len(made["p:US.insert"]) != 1 {
		t.Errorf("changes of jobs: %v, %v", made, err)
	}
	end()
	for _, from := range []string{"the log", "a checkpoint"} {
		s, end := inFolder(t, dir, clock)
		for _, j := range jobs {
			if got := s.told(j.id); got != before[j.id] {
				t.Errorf("from %s: job %s\n got %s\nwant %s", from, j.id, got, before[j.id])
			}
			if code, _ := s.insert(j.id, "US", j.sql, ""); code != 409 {
				t.Errorf("job %s sent again: %d", j.id, code)
			}
		}
		for id, want := range results {
			if _, got := s.do("GET", "/queries/"+id, "", ""); text(got) != want {
				t.Errorf("from %s: the result of %s\n got %s\nwant %s", from, id, text(got), want)
			}
		}
		if got := s.rowsOf("SELECT COUNTIF(job_id = 'merge' AND dml_statistics.deleted_row_count = 1), COUNT(*) FROM `region-us`.INFORMATION_SCHEMA.JOBS"); got != fmt.Sprintf(`[("1","%d")]`, len(jobs)+1) {
			t.Errorf("from %s: JOBS has %s", from, got)
		}
		end()
	}
}

func TestQueryJobsHeldAtTheEnd(t *testing.T) {
	dir, clock := t.TempDir(), localbq.NewManualClock()
	s, end := inFolder(t, dir, clock)
	s.must("CREATE SCHEMA d", "CREATE TABLE d.t (id INT64)")
	if err := s.Faults().Add(localbq.Fault{Match: localbq.FaultMatch{Method: "job.running", Job: "held"}, Action: localbq.FaultAction{Barrier: true}}); err != nil {
		t.Fatal(err)
	}
	code, answer := s.do("POST", "/jobs", `{"jobReference": {"jobId": "held"}, "configuration": {"labels": {"k": "v"}, "query": {"query": "INSERT d.t VALUES (1)", "useLegacySql": false}}}`, "")
	if code != 200 {
		t.Fatalf("%d %s", code, text(answer))
	}
	if _, err := s.Faults().NextBarrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	end()
	for range 2 {
		s, end := inFolder(t, dir, clock)
		_, job := s.do("GET", "/jobs/held", "", "")
		if reason := at(job, "status", "errorResult", "reason"); reason != "backendError" || at(job, "status", "state") != "DONE" {
			t.Errorf("the job: %s", text(job))
		}
		if at(job, "configuration", "query", "query") != "INSERT d.t VALUES (1)" || at(job, "configuration", "labels", "k") != "v" {
			t.Errorf("its configuration: %s", text(job))
		}
		if got := s.rowsOf("SELECT COUNT(*) FROM d.t"); got != `[("0")]` {
			t.Errorf("rows: %s", got)
		}
		end()
	}
}
