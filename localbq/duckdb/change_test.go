//go:build cgo

package duckdb_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigquery"
	"google.golang.org/api/iterator"
)

// run runs a statement by jobs.query and answers its fault, "" for none.
func (s *service) run(sql string) string {
	s.Helper()
	code, answer := s.do("POST", "/queries", `{"useLegacySql": false, "query": `+text(sql)+`}`, "")
	if code == 200 && at(answer, "jobComplete") == true {
		return ""
	}
	m, _ := at(answer, "error", "message").(string)
	return m
}

// must fails the test unless the statements run.
func (s *service) must(statements ...string) {
	s.Helper()
	for _, sql := range statements {
		if m := s.run(sql); m != "" {
			s.Fatalf("%s: %s", sql, m)
		}
	}
}

// rowsOf are a query's rows.
func (s *service) rowsOf(sql string) string {
	s.Helper()
	code, answer := s.do("POST", "/queries", `{"useLegacySql": false, "query": `+text(sql)+`}`, "")
	if code != 200 {
		s.Fatalf("%s: %s", sql, text(answer))
	}
	return strings.NewReplacer(`{"f":[`, "(", `}]}`, ")", `{"v":`, "", `}`, "").Replace(text(at(answer, "rows")))
}

func TestInsertStatements(t *testing.T) {
	s := start(t)
	s.must("CREATE SCHEMA d", `CREATE TABLE d.t (a INT64 NOT NULL, b STRING(3) DEFAULT 'x', c NUMERIC(5, 2), l ARRAY<STRING>)`)
	s.must("INSERT INTO d.t (a, c) VALUES (1, 1.005), (2, NULL)", "INSERT d.t VALUES (3, 'abc', 2, ['p', 'q'])",
		"INSERT INTO d.t (b, a) SELECT b, a + 10 FROM d.t WHERE a < 3")
	want := `[("1","x","1.01",""),("2","x",null,""),("3","abc","2","p+q"),("11","x",null,""),("12","x",null,"")]`
	if got := s.rowsOf("SELECT a, b, c, ARRAY_TO_STRING(l, '+') FROM d.t ORDER BY a"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for sql, want := range map[string]string{
		"INSERT d.t (a) VALUES (1, 2)":                "Inserted row has wrong column count; Has 2, expected 1 at [1:24]",
		"INSERT d.t (a) SELECT 'x'":                   "Query column 1 has type STRING which cannot be inserted into column a, which has type INT64 at [1:16]",
		"INSERT d.t (a) VALUES ('x')":                 "Value has type STRING which cannot be inserted into column a, which has type INT64 at [1:24]",
		"INSERT d.t (z) VALUES (1)":                   "Column z is not present in table d.t at [1:13]",
		"INSERT d.t (a, A) VALUES (1, 1)":             "INSERT has columns with duplicate name: a at [1:16]",
		"INSERT d.t (b) VALUES ('x')":                 "Missing required field: a.",
		"INSERT d.t (a) SELECT NULL FROM d.t":         "Required field a cannot be null",
		"INSERT d.t (a, b) VALUES (1, 'long')":        "Field b: STRING(3) has maximum length 3 but got a value with length 4",
		"INSERT d.none VALUES (1)":                    "Not found: Table p:d.none was not found in location US",
		"INSERT INTO d.t (a) VALUES (1); SELECT 1":    "Not supported by local BigQuery: scripts of several statements at [1:33]",
		"CREATE TABLE d.t (a INT64)":                  "Already Exists: Table p:d.t",
		"CREATE TABLE d.u (a INT64, A STRING)":        "Duplicate column name A in CREATE TABLE at [1:28]",
		"CREATE FUNCTION d.f() AS (1)":                "Not supported by local BigQuery: CREATE FUNCTION statements at [1:1]",
		"DROP VIEW d.t":                               "p:d.t is not allowed for this operation because it is currently a TABLE.",
		"DROP TABLE d.none":                           "Not found: Table p:d.none",
		"ALTER TABLE d.t ADD COLUMN a INT64":          "Column already exists: a at [1:17]",
		"ALTER TABLE d.t ADD COLUMN n INT64 NOT NULL": "Provided Schema does not match Table p:d.t. Cannot add required fields to an existing schema. (field: n)",
		"DROP SCHEMA d":                               "Dataset p:d is still in use",
	} {
		if got := s.run(sql); got != want {
			t.Errorf("%s\n got %s\nwant %s", sql, got, want)
		}
	}
	if got := s.rowsOf("SELECT COUNT(*) FROM d.t"); got != `[("5")]` {
		t.Errorf("after statements that failed: %s", got)
	}
	s.must("TRUNCATE TABLE d.t")
	if got := s.rowsOf("SELECT COUNT(*) FROM d.t"); got != `[("0")]` {
		t.Errorf("after TRUNCATE: %s", got)
	}
}

func TestDDL(t *testing.T) {
	s := start(t)
	s.must(`CREATE SCHEMA IF NOT EXISTS d OPTIONS (location = 'EU', labels = [('team', 'x')], default_table_expiration_days = 2)`,
		"CREATE SCHEMA IF NOT EXISTS d")
	_, d := s.do("GET", "/datasets/d", "", "")
	if at(d, "location") != "EU" || text(at(d, "labels")) != `{"team":"x"}` || at(d, "defaultTableExpirationMs") != "172800000" {
		t.Errorf("dataset: %s", text(d))
	}
	s.must(`CREATE TABLE d.t (id INT64 NOT NULL OPTIONS (description = 'key'), ts TIMESTAMP, s STRUCT<a STRING, b ARRAY<DATE>>, PRIMARY KEY (id) NOT ENFORCED)
		PARTITION BY TIMESTAMP_TRUNC(ts, HOUR) CLUSTER BY id
		OPTIONS (description = "words", labels = [("k", "v")], require_partition_filter = TRUE, partition_expiration_days = 1.5,
			expiration_timestamp = TIMESTAMP "2026-03-01 00:00:00+00")`)
	_, r := s.do("GET", "/datasets/d/tables/t", "", "")
	for path, want := range map[string]any{
		"description": "words", "labels": `{"k":"v"}`, "requirePartitionFilter": true, "expirationTime": "1772323200000",
		"timePartitioning": `{"expirationMs":"129600000","field":"ts","type":"HOUR"}`, "clustering": `{"fields":["id"]}`,
		"tableConstraints": `{"primaryKey":{"columns":["id"]}}`,
	} {
		if got := at(r, path); got != want && text(got) != want {
			t.Errorf("%s is %s, want %v", path, text(got), want)
		}
	}
	s.must("ALTER TABLE d.t ADD COLUMN IF NOT EXISTS n NUMERIC(5, 2), ALTER COLUMN id DROP NOT NULL, SET OPTIONS (description = NULL)",
		"ALTER TABLE d.t DROP PRIMARY KEY", "ALTER TABLE d.t SET OPTIONS (require_partition_filter = false)", "ALTER TABLE IF EXISTS d.none ADD COLUMN n INT64")
	_, r = s.do("GET", "/datasets/d/tables/t", "", "")
	if at(r, "description") != nil || at(r, "tableConstraints") != nil || !strings.Contains(text(at(r, "schema")), `{"name":"n","precision":"5","scale":"2","type":"NUMERIC"}`) {
		t.Errorf("altered: %s", text(r))
	}
	s.must("CREATE TABLE d.like LIKE d.t", "CREATE TABLE d.r (n INT64) PARTITION BY RANGE_BUCKET(n, GENERATE_ARRAY(0, 100, 10))",
		"CREATE TABLE d.c AS SELECT 1 AS n, 'x' AS s", "CREATE TABLE IF NOT EXISTS d.c (z INT64)",
		"CREATE VIEW d.v OPTIONS (description = 'seen') AS SELECT n + 1 AS m FROM d.c;", "CREATE OR REPLACE VIEW d.v AS SELECT n + 2 AS m FROM d.c",
		"CREATE MATERIALIZED VIEW d.m AS SELECT COUNT(*) AS k FROM d.c", "INSERT d.c VALUES (2, 'y')")
	if got := s.rowsOf("SELECT m, k FROM d.v, d.m ORDER BY m"); got != `[("3","2"),("4","2")]` {
		t.Errorf("views: %s", got)
	}
	if got := s.run("INSERT d.v VALUES (1)"); got != "Cannot insert into view p:d.v at [1:1]" {
		t.Error(got)
	}
	s.must("CREATE OR REPLACE TABLE d.c (w STRING) AS SELECT 'only'")
	if got := s.rowsOf("SELECT * FROM d.c"); got != `[("only")]` {
		t.Errorf("replaced: %s", got)
	}
	s.must("DROP VIEW d.v", "DROP MATERIALIZED VIEW d.m", "DROP TABLE d.like", "DROP TABLE IF EXISTS d.like", "DROP SCHEMA d CASCADE", "DROP SCHEMA IF EXISTS d")
	if code, _ := s.do("GET", "/datasets/d", "", ""); code != 404 {
		t.Errorf("dropped: %d", code)
	}
}

func TestStatementJobs(t *testing.T) {
	s := start(t)
	s.must("CREATE SCHEMA d")
	n := 0
	figures := func(sql string) string {
		n++
		_, job := s.insert(fmt.Sprintf("job%d", n), "", sql, "")
		q := at(job, "statistics", "query").(map[string]any)
		return strings.Join([]string{text(q["statementType"]), text(q["ddlOperationPerformed"]), text(q["numDmlAffectedRows"]), text(q["dmlStats"])}, " ")
	}
	for _, c := range [][2]string{
		{"CREATE TABLE d.t (n INT64)", `"CREATE_TABLE" "CREATE" null null`},
		{"CREATE TABLE IF NOT EXISTS d.t (n INT64)", `"CREATE_TABLE" "SKIP" null null`},
		{"INSERT d.t VALUES (1), (2)", `"INSERT" null "2" {"insertedRowCount":"2"}`},
		{"INSERT d.t SELECT n FROM d.t WHERE n > 5", `"INSERT" null "0" {"insertedRowCount":"0"}`},
		{"TRUNCATE TABLE d.t", `"TRUNCATE_TABLE" null null {"deletedRowCount":"2"}`},
		{"CREATE OR REPLACE TABLE d.t AS SELECT 1 AS x", `"CREATE_TABLE_AS_SELECT" "REPLACE" null null`},
		{"DROP TABLE d.t", `"DROP_TABLE" "DROP" null null`},
	} {
		if got := figures(c[0]); got != c[1] {
			t.Errorf("%s\n got %s\nwant %s", c[0], got, c[1])
		}
	}
	t.Run("a destination besides", func(t *testing.T) {
		_, job := s.do("POST", "/jobs", `{"configuration": {"query": {"query": "CREATE TABLE d.x (n INT64)", "useLegacySql": false,
			"destinationTable": {"projectId": "p", "datasetId": "d", "tableId": "y"}}}}`, "")
		id := at(job, "jobReference", "jobId").(string)
		if _, a := s.do("GET", "/queries/"+id, "", ""); at(a, "error", "message") != "Cannot set destination table in jobs with DDL statements" {
			t.Error(text(a))
		}
	})
	t.Run("a dry run changes nothing", func(t *testing.T) {
		code, a := s.do("POST", "/queries", `{"query": "CREATE TABLE d.dry (n INT64)", "useLegacySql": false, "dryRun": true}`, "")
		if code != 200 || at(a, "statementType") != "CREATE_TABLE" {
			t.Errorf("%d %s", code, text(a))
		}
		if code, _ := s.do("GET", "/datasets/d/tables/dry", "", ""); code != 404 {
			t.Errorf("the table is there: %d", code)
		}
	})
	t.Run("the official client", func(t *testing.T) {
		s.must("CREATE TABLE d.go (n INT64)")
		q := s.client.Query("INSERT INTO d.go VALUES (@n)")
		q.Parameters = []bigquery.QueryParameter{{Name: "n", Value: 7}}
		it, err := q.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var row []bigquery.Value
		if err := it.Next(&row); err != iterator.Done {
			t.Errorf("INSERT answers rows: %v %v", row, err)
		}
		job, err := s.client.Query("INSERT d.go SELECT n + 1 FROM d.go").Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		status, err := job.Wait(t.Context())
		if err != nil || status.Err() != nil {
			t.Fatal(err, status.Err())
		}
		figures := status.Statistics.Details.(*bigquery.QueryStatistics)
		if figures.NumDMLAffectedRows != 1 || figures.StatementType != "INSERT" {
			t.Errorf("%+v", figures)
		}
		if got := s.rowsOf("SELECT n FROM d.go ORDER BY n"); got != `[("7"),("8")]` {
			t.Error(got)
		}
	})
	t.Run("a table made to expire is gone by the clock", func(t *testing.T) {
		s.must("CREATE TABLE d.brief (n INT64) OPTIONS (expiration_timestamp = TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL 2 HOUR))")
		s.clock.Advance(2*time.Hour + time.Second)
		if got := s.run("SELECT * FROM d.brief"); got != "Not found: Table p:d.brief was not found in location US" {
			t.Error(got)
		}
	})
}
