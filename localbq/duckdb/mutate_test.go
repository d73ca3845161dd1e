//go:build cgo

package duckdb_test

import "testing"

func TestUpdateAndDelete(t *testing.T) {
	s := start(t)
	s.must("CREATE SCHEMA d", "CREATE TABLE d.t (id INT64 NOT NULL, name STRING(5), tags ARRAY<STRING>, r STRUCT<a INT64, b STRING>)",
		"INSERT d.t SELECT n, 'x', ['p'], STRUCT(n, 'y') FROM UNNEST(GENERATE_ARRAY(1, 6)) AS n",
		"CREATE TABLE d.u (id INT64, name STRING)", "INSERT d.u VALUES (1, 'one'), (2, 'two'), (2, 'zwei')")
	figures := func(sql string) string {
		_, a := s.do("POST", "/queries", `{"useLegacySql": false, "query": `+text(sql)+`}`, "")
		if at(a, "error") != nil {
			return text(at(a, "error", "message"))
		}
		return text(at(a, "numDmlAffectedRows")) + " " + text(at(a, "dmlStats"))
	}
	for _, c := range [][2]string{
		{"UPDATE d.t SET name = CONCAT(name, '!'), tags = [name] WHERE id IN (2, 3)", `"2" {"updatedRowCount":"2"}`},
		{"DELETE FROM d.t WHERE id = 6", `"1" {"deletedRowCount":"1"}`},
		{"DELETE d.t AS x WHERE x.id > 100", `"0" {"deletedRowCount":"0"}`},
		{"UPDATE d.t x SET name = u.name FROM d.u AS u WHERE x.id = u.id AND u.id = 1", `"1" {"updatedRowCount":"1"}`},
		{"UPDATE d.t SET id = id + 10, r = NULL WHERE id > (SELECT MAX(id) FROM d.u) AND id < 5", `"2" {"updatedRowCount":"2"}`},
	} {
		if got := figures(c[0]); got != c[1] {
			t.Errorf("%s\n got %s\nwant %s", c[0], got, c[1])
		}
	}
	const all = "SELECT id, name, ARRAY_TO_STRING(tags, '+'), r.a, r.b FROM d.t ORDER BY id"
	want := `[("1","one","p","1","y"),("2","x!","x","2","y"),("5","x","p","5","y"),("13","x!","x",null,null),("14","x","p",null,null)]`
	if got := s.rowsOf(all); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for sql, want := range map[string]string{
		"UPDATE d.t SET name = u.name FROM d.u AS u WHERE t.id = u.id": "UPDATE/MERGE must match at most one source row for each target row",
		"UPDATE d.t SET name = 'too long' WHERE TRUE":                  "Field name: STRING(5) has maximum length 5 but got a value with length 8",
		"UPDATE d.t SET id = NULL WHERE TRUE":                          "Required field id cannot be null",
		"UPDATE d.t SET id = 'x' WHERE TRUE":                           "Value of type STRING cannot be assigned to id, which has type INT64 at [1:21]",
		"UPDATE d.t SET z = 1 WHERE TRUE":                              "Column z is not present in table d.t at [1:16]",
		"UPDATE d.t SET id = 1, id = 2 WHERE TRUE":                     "Update item id assigned more than once at [1:24]",
		"UPDATE d.t SET id = 1":                                        "Syntax error: UPDATE must have a WHERE clause at [1:22]",
		"DELETE FROM d.t":                                              "Syntax error: DELETE must have a WHERE clause at [1:16]",
		"DELETE FROM d.t WHERE 1":                                      "WHERE clause should return type BOOL, but returns INT64 at [1:23]",
		"DELETE FROM d.none WHERE TRUE":                                "Not found: Table p:d.none was not found in location US",
	} {
		if got := s.run(sql); got != want {
			t.Errorf("%s\n got %s\nwant %s", sql, got, want)
		}
	}
	if got := s.rowsOf(all); got != want {
		t.Errorf("after statements that failed: %s", got)
	}
	if visible, err := s.Audit().Visible("p.d.t"); err != nil || len(visible) != 5 {
		t.Errorf("the audit log sees %d rows: %v", len(visible), err)
	}
	s.must("CREATE VIEW d.v AS SELECT 1 AS x")
	if got := s.run("DELETE FROM d.v WHERE TRUE"); got != "Cannot change rows of p:d.v, which is no table at [1:1]" {
		t.Error(got)
	}
	s.must("CREATE TABLE d.f (day DATE, n INT64) PARTITION BY day OPTIONS (require_partition_filter = TRUE)", "INSERT d.f VALUES ('2026-01-01', 1)")
	if got := s.run("DELETE FROM d.f WHERE n = 1"); got != "Cannot query over table 'p.d.f' without a filter over column(s) 'day' that can be used for partition elimination at [1:1]" {
		t.Error(got)
	}
	s.must("DELETE FROM d.f WHERE day = '2026-01-01'", "CREATE TABLE d.i (n INT64) PARTITION BY _PARTITIONDATE", "INSERT d.i (n) VALUES (1), (2)",
		"DELETE FROM d.i WHERE _PARTITIONDATE > '2000-01-01' AND n = 1")
	if got := s.rowsOf("SELECT n, (SELECT COUNT(*) FROM d.f WHERE day > '2000-01-01') FROM d.i"); got != `[("2","0")]` {
		t.Error(got)
	}
}
