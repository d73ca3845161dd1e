//go:build cgo

package duckdb_test

import (
	"fmt"
	"testing"
)

// figures runs a statement and answers how many rows it says that it changed, or its fault.
func (s *service) figures(sql string) string {
	s.Helper()
	_, a := s.do("POST", "/queries", `{"useLegacySql": false, "query": `+text(sql)+`}`, "")
	if at(a, "error") != nil {
		return text(at(a, "error", "message"))
	}
	return text(at(a, "numDmlAffectedRows")) + " " + text(at(a, "dmlStats"))
}

func TestMerge(t *testing.T) {
	s := start(t)
	s.must("CREATE SCHEMA d", "CREATE TABLE d.n (id INT64, name STRING)", "INSERT d.n VALUES (2, 'zwei'), (3, 'drei'), (9, 'neun')")
	fresh := func() {
		s.must("CREATE OR REPLACE TABLE d.t (id INT64 NOT NULL, name STRING DEFAULT 'nobody', r STRUCT<a INT64, b STRING>, tags ARRAY<STRING>)",
			"INSERT d.t VALUES (1, 'one', (1, 'x'), ['p']), (2, 'two', (2, 'y'), []), (3, 'three', NULL, ['q', 'r'])")
	}
	const all = "SELECT id, name, r.a, r.b, ARRAY_TO_STRING(tags, '+') FROM d.t ORDER BY id"
	for _, c := range []struct{ name, sql, figures, rows string }{
		{"all clauses", `MERGE INTO d.t AS x USING d.n AS y ON x.id = y.id
			WHEN MATCHED AND y.name = 'zwei' THEN UPDATE SET name = y.name, x.r.a = x.r.a + 10
			WHEN MATCHED THEN DELETE
			WHEN NOT MATCHED BY TARGET AND y.id > 100 THEN INSERT (id, name) ROW
			WHEN NOT MATCHED THEN INSERT (id, tags) VALUES (y.id, [y.name])
			WHEN NOT MATCHED BY SOURCE THEN UPDATE SET name = DEFAULT, r.b = NULL`,
			`"4" {"deletedRowCount":"1","insertedRowCount":"1","updatedRowCount":"2"}`,
			`[("1","nobody","1",null,"p"),("2","zwei","12","y",""),("9","nobody",null,null,"neun")]`},
		{"constant false replaces", `MERGE d.t USING (SELECT id, name, NULL, ['z'] FROM d.n WHERE id < 3) ON FALSE
			WHEN NOT MATCHED THEN INSERT ROW WHEN NOT MATCHED BY SOURCE THEN DELETE`,
			`"4" {"deletedRowCount":"3","insertedRowCount":"1","updatedRowCount":"0"}`, `[("2","zwei",null,null,"z")]`},
		{"an array as the source", `MERGE d.t USING UNNEST([1, 7]) AS k ON t.id = k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, name) VALUES (k, DEFAULT)`,
			`"2" {"deletedRowCount":"1","insertedRowCount":"1","updatedRowCount":"0"}`,
			`[("2","two","2","y",""),("3","three",null,null,"q+r"),("7","nobody",null,null,"")]`},
		{"a source with names of hostile columns", "MERGE d.t USING (SELECT 3 AS `t1`, 'x' AS `c0\"`) AS `t'1` ON id = `t'1`.t1 WHEN MATCHED THEN UPDATE SET name = `c0\"`",
			`"1" {"deletedRowCount":"0","insertedRowCount":"0","updatedRowCount":"1"}`,
			`[("1","one","1","x","p"),("2","two","2","y",""),("3","x",null,null,"q+r")]`},
		{"two source rows of which one is picked", `MERGE d.t USING UNNEST([STRUCT(1 AS id, TRUE AS yes), (1, FALSE)]) AS y ON t.id = y.id WHEN MATCHED AND yes THEN DELETE`,
			`"1" {"deletedRowCount":"1","insertedRowCount":"0","updatedRowCount":"0"}`,
			`[("2","two","2","y",""),("3","three",null,null,"q+r")]`},
		{"conditions fail for the rows that they are about only", `MERGE d.t USING d.n ON t.id = n.id
			WHEN MATCHED AND 1 / (n.id - 9) < 0 THEN UPDATE SET name = CAST(1 / (n.id - 9) AS STRING)
			WHEN NOT MATCHED BY TARGET THEN INSERT (id) VALUES (5)`,
			`"3" {"deletedRowCount":"0","insertedRowCount":"1","updatedRowCount":"2"}`,
			`[("1","one","1","x","p"),("2","-0.14285714285714285","2","y",""),("3","-0.16666666666666666",null,null,"q+r"),("5","nobody",null,null,"")]`},
		{"subqueries", `MERGE d.t USING (SELECT MAX(id) AS id FROM d.t) m ON t.id = m.id
			WHEN MATCHED THEN UPDATE SET name = (SELECT STRING_AGG(name, ',' ORDER BY id) FROM d.n WHERE n.id < t.id)
			WHEN NOT MATCHED BY SOURCE AND EXISTS (SELECT 1 FROM d.n WHERE n.id = t.id) THEN DELETE`,
			`"2" {"deletedRowCount":"1","insertedRowCount":"0","updatedRowCount":"1"}`,
			`[("1","one","1","x","p"),("3","zwei",null,null,"q+r")]`},
		{"two source rows for one row", `MERGE d.t USING UNNEST([1, 1]) AS k ON t.id = k WHEN MATCHED THEN DELETE`,
			`"UPDATE/MERGE must match at most one source row for each target row"`, ""},
		{"a member of NULL", `MERGE d.t USING d.n ON t.id = n.id WHEN MATCHED THEN UPDATE SET r.a = 1`,
			`"Cannot set field of NULL STRUCT<a INT64, b STRING>"`, ""},
		{"NULL for a required column", `MERGE d.t USING d.n ON FALSE WHEN NOT MATCHED THEN INSERT (name) VALUES (name)`, `"Required field id cannot be null"`, ""},
		{"columns of the target where there is none", `MERGE d.t USING d.n ON t.id = n.id WHEN NOT MATCHED THEN INSERT (id) VALUES (t.id)`, `"Unrecognized name: t.id at [1:78]"`, ""},
		{"columns of the source where there is none", `MERGE d.t USING d.n ON t.id = n.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET name = n.name`, `"Unrecognized name: n.name at [1:86]"`, ""},
		{"too many values", `MERGE d.t USING d.n ON FALSE WHEN NOT MATCHED THEN INSERT (id) VALUES (1, 2)`, `"Inserted row has wrong column count; Has 2, expected 1 at [1:72]"`, ""},
		{"a row of other columns", `MERGE d.t USING d.n ON FALSE WHEN NOT MATCHED THEN INSERT ROW`, `"Inserted row has wrong column count; Has 2, expected 4 at [1:35]"`, ""},
		{"DELETE without a match", `MERGE d.t USING d.n ON FALSE WHEN NOT MATCHED THEN DELETE`, `"Syntax error: Expected keyword INSERT but got identifier \"DELETE\" at [1:52]"`, ""},
		{"INSERT with a match", `MERGE d.t USING d.n ON FALSE WHEN MATCHED THEN INSERT ROW`, `"Syntax error: INSERT is allowed with WHEN NOT MATCHED [BY TARGET] only at [1:48]"`, ""},
		{"no clause", `MERGE d.t USING d.n ON FALSE`, `"Syntax error: Expected keyword WHEN but got end of script at [1:29]"`, ""},
		{"the target as its source", `MERGE d.t USING d.t ON FALSE WHEN MATCHED THEN DELETE`, `"Duplicate table alias t in the same FROM clause at [1:17]"`, ""},
		{"a condition that is none", `MERGE d.t USING d.n ON 1 WHEN MATCHED THEN DELETE`, `"MERGE ON clause should return type BOOL, but returns INT64 at [1:24]"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			fresh()
			if got := s.figures(c.sql); got != c.figures {
				t.Errorf("\n got %s\nwant %s", got, c.figures)
			}
			want := c.rows
			if want == "" {
				want = `[("1","one","1","x","p"),("2","two","2","y",""),("3","three",null,null,"q+r")]`
			}
			if got := s.rowsOf(all); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
	t.Run("a table that has to be filtered", func(t *testing.T) {
		s.must("CREATE TABLE d.f (day DATE, n INT64) PARTITION BY day OPTIONS (require_partition_filter = TRUE)", "INSERT d.f VALUES ('2026-01-01', 1)")
		if got := s.run("MERGE d.f USING d.n ON f.n = n.id WHEN NOT MATCHED THEN INSERT (n) VALUES (id)"); got != "Cannot query over table 'p.d.f' without a filter over column(s) 'day' that can be used for partition elimination at [1:1]" {
			t.Error(got)
		}
		s.must("MERGE d.f USING d.n ON f.n = n.id AND day > '2025-01-01' WHEN NOT MATCHED THEN INSERT (n) VALUES (id)")
	})
	t.Run("many rows, each once", func(t *testing.T) {
		s.must("CREATE TABLE d.big AS SELECT n AS id, 0 AS v FROM UNNEST(GENERATE_ARRAY(1, 100000)) AS n")
		want := `"150000" {"deletedRowCount":"50000","insertedRowCount":"50000","updatedRowCount":"50000"}`
		if got := s.figures(`MERGE d.big USING UNNEST(GENERATE_ARRAY(1, 150000)) AS k ON id = k
			WHEN MATCHED AND MOD(k, 2) = 0 THEN UPDATE SET v = k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (k, k)`); got != want {
			t.Error(got)
		}
		if got := s.rowsOf("SELECT COUNT(*), COUNT(DISTINCT id), SUM(v - id), MIN(id) FROM d.big"); got != `[("100000","100000","0","2")]` {
			t.Error(got)
		}
		visible, err := s.Audit().Visible("p.d.big")
		if err != nil || len(visible) != 100000 {
			t.Errorf("the audit log sees %d rows: %v", len(visible), err)
		}
	})
	t.Run("the job names the statement", func(t *testing.T) {
		fresh()
		_, job := s.insert("merge", "", "MERGE d.t USING d.n ON t.id = n.id WHEN MATCHED THEN DELETE", "")
		if got := fmt.Sprint(at(job, "statistics", "query", "statementType"), at(job, "statistics", "query", "numDmlAffectedRows")); got != "MERGE2" {
			t.Error(got)
		}
	})
}

func TestDefaultAndMembers(t *testing.T) {
	s := start(t)
	s.must("CREATE SCHEMA d", "CREATE TABLE d.t (id INT64, s STRING DEFAULT 'ab', ts TIMESTAMP DEFAULT CURRENT_TIMESTAMP(), r STRUCT<a INT64, q STRUCT<b STRING, c ARRAY<INT64>>>, t STRUCT<id INT64>)")
	s.must("INSERT d.t (id, s, ts) VALUES (1, DEFAULT, DEFAULT), (2, 'x', NULL)", "INSERT d.t (id, r, t) VALUES (3, (1, ('x', [1])), STRUCT(5))")
	if got := s.rowsOf("SELECT id, s, ts IS NULL, ts = (SELECT MIN(ts) FROM d.t) FROM d.t ORDER BY id"); got != `[("1","ab","false","true"),("2","x","true",null),("3","ab","false","true")]` {
		t.Error(got)
	}
	s.must("UPDATE d.t SET s = DEFAULT, r = (7, ('n', [2])) WHERE id = 2", "UPDATE d.t AS x SET x.s = 'set', r.q.b = CONCAT(r.q.b, '!'), r.q.c = [x.id], t.id = 6 WHERE id = 3")
	if got := s.rowsOf("SELECT id, s, r.a, r.q.b, r.q.c[SAFE_OFFSET(0)], t.t.id AS k FROM d.t AS t ORDER BY id"); got != `[("1","ab",null,null,null,null),("2","ab","7","n","2",null),("3","set","1","x!","3","6")]` {
		t.Error(got)
	}
	for sql, want := range map[string]string{
		"UPDATE d.t SET r.a = 1 WHERE TRUE":                  "Cannot set field of NULL STRUCT<a INT64, q STRUCT<b STRING, c ARRAY<INT64>>>",
		"UPDATE d.t SET r.z = 1 WHERE TRUE":                  "Field name z does not exist in STRUCT<a INT64, q STRUCT<b STRING, c ARRAY<INT64>>> at [1:18]",
		"UPDATE d.t SET r.a.z = 1 WHERE TRUE":                "Cannot access field z on a value with type INT64 at [1:20]",
		"UPDATE d.t SET r.a = 1, r = NULL WHERE TRUE":        "Update item r overlaps with a member of it at [1:25]",
		"UPDATE d.t SET r = NULL, r.a = 1 WHERE TRUE":        "Update item r.a overlaps with r at [1:26]",
		"UPDATE d.t SET r.a = 1, r.A = 2 WHERE TRUE":         "Update item r.A assigned more than once at [1:25]",
		"UPDATE d.t SET r.q.c[OFFSET(0)] = 2 WHERE TRUE":     "Not supported by local BigQuery: SET of an element of an array at [1:21]",
		"UPDATE d.t SET r.a = 'x' WHERE TRUE":                "Value of type STRING cannot be assigned to r.a, which has type INT64 at [1:22]",
		"UPDATE d.t SET id = 1 + DEFAULT WHERE TRUE":         "Syntax error: Unexpected keyword DEFAULT at [1:25]",
		"INSERT d.t (id) SELECT DEFAULT":                     "Syntax error: Unexpected keyword DEFAULT at [1:24]",
		"UPDATE d.t SET `r`.`q`.`b\"; DROP` = '' WHERE TRUE": "Field name b\"; DROP does not exist in STRUCT<b STRING, c ARRAY<INT64>> at [1:24]",
	} {
		if got := s.run(sql); got != want {
			t.Errorf("%s\n got %s\nwant %s", sql, got, want)
		}
	}
}

func TestNullsAmongStructs(t *testing.T) {
	s := start(t)
	const query = "SELECT n, STRUCT(n AS a, [STRUCT('x' AS y)] AS b), IF(n = 2, NULL, STRUCT(n, 'z')), IF(n = 2, NULL, INTERVAL n DAY), " +
		"IF(n = 2, NULL, RANGE<DATE> '[2026-01-01, 2026-01-04)') FROM UNNEST([1, 2, 3]) AS n ORDER BY n"
	want := `[("1",("1",[("x"))],("1","z"),"0-0 1 0:0:0","[2026-01-01, 2026-01-04)"),("2",("2",[("x"))],null,null,null),("3",("3",[("x"))],("3","z"),"0-0 3 0:0:0","[2026-01-01, 2026-01-04)")]`
	if got := s.rowsOf(query); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}
