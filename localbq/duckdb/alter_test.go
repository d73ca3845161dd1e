//go:build cgo

package duckdb_test

import (
	"testing"
	"time"
)

func TestAlterColumns(t *testing.T) {
	s := start(t)
	s.must("CREATE SCHEMA d", "CREATE TABLE d.t (id INT64 NOT NULL, day DATE, name STRING(5) DEFAULT 'x', n INT64, r STRUCT<a INT64, b STRING>, l ARRAY<INT64>) PARTITION BY day CLUSTER BY id",
		"INSERT d.t VALUES (1, '2026-01-01', 'one', 10, (1, 'x'), [1, 2]), (2, '2026-01-02', NULL, NULL, NULL, [])")
	step := func(sql, query, want string) {
		t.Helper()
		s.must(sql)
		if got := s.rowsOf(query); got != want {
			t.Errorf("%s\n got %s\nwant %s", sql, got, want)
		}
	}
	step("ALTER TABLE d.t RENAME COLUMN name TO `na'me --%\\n`", "SELECT id, `na'me --%\\n` FROM d.t ORDER BY id", `[("1","one"),("2",null)]`)
	step("ALTER TABLE d.t ADD COLUMN name INT64", "SELECT id, name, `na'me --%\\n` FROM d.t ORDER BY id", `[("1",null,"one"),("2",null,null)]`)
	step("ALTER TABLE d.t DROP COLUMN `na'me --%\\n`, DROP COLUMN IF EXISTS none, DROP COLUMN name, ADD COLUMN name STRING", "SELECT id, name FROM d.t ORDER BY id", `[("1",null),("2",null)]`)
	step("ALTER TABLE d.t ALTER COLUMN n SET DATA TYPE BIGNUMERIC, ALTER COLUMN l SET DATA TYPE ARRAY<FLOAT64>, ALTER COLUMN r SET DATA TYPE STRUCT<a NUMERIC, b STRING, c DATE>",
		"SELECT id, n / 4, l[SAFE_OFFSET(1)] + 0.5, r.a, r.b, r.c FROM d.t ORDER BY id", `[("1","2.5","2.5","1","x",null),("2",null,null,null,null,null)]`)
	step("ALTER TABLE d.t ALTER COLUMN name SET DEFAULT \"it's\"", "SELECT 1", `[("1")]`)
	step("INSERT d.t (id) VALUES (3)", "SELECT id, name FROM d.t ORDER BY id", `[("1",null),("2",null),("3","it's")]`)
	step("ALTER TABLE d.t ALTER COLUMN name DROP DEFAULT, ALTER COLUMN name SET DATA TYPE STRING, ALTER COLUMN id DROP NOT NULL, ALTER COLUMN id SET OPTIONS (description = 'the \"key\"')",
		"SELECT column_default, is_nullable FROM d.INFORMATION_SCHEMA.COLUMNS WHERE column_name IN ('name', 'id') ORDER BY column_name", `[("NULL","YES"),("NULL","YES")]`)
	t.Run("a patch over REST keeps what columns are", func(t *testing.T) {
		_, r := s.do("GET", "/datasets/d/tables/t", "", "")
		if code, a := s.do("PATCH", "/datasets/d/tables/t", `{"schema": `+text(at(r, "schema"))+`, "description": "patched"}`, ""); code != 200 {
			t.Fatal(text(a))
		}
		if got := s.rowsOf("SELECT id, name FROM d.t ORDER BY id"); got != `[("1",null),("2",null),("3","it's")]` {
			t.Error(got)
		}
	})
	for sql, want := range map[string]string{
		"ALTER TABLE d.t DROP COLUMN day":                              "Column day cannot be dropped: it is used by partitioning at [1:17]",
		"ALTER TABLE d.t RENAME COLUMN ID TO x":                        "Column id cannot be renamed: it is used by clustering at [1:17]",
		"ALTER TABLE d.t RENAME COLUMN n TO NAME":                      "Column already exists: NAME at [1:36]",
		"ALTER TABLE d.t RENAME COLUMN n TO _PARTITIONx":               "Invalid field name \"_PARTITIONx\". Field names are not allowed to start with the (case-insensitive) prefixes _TABLE_, _FILE_, _PARTITION, _ROW_TIMESTAMP, __ROOT__, _COLIDENTIFIER",
		"ALTER TABLE d.t RENAME COLUMN none TO x":                      "Column not found: none at [1:31]",
		"ALTER TABLE d.t DROP COLUMN none":                             "Column not found: none at [1:29]",
		"ALTER TABLE d.t DROP COLUMN r.a":                              "Members of columns cannot be altered: r at [1:29]",
		"ALTER TABLE d.t ALTER COLUMN id SET DATA TYPE NUMERIC":        "The type of column id cannot be changed: it is used by clustering at [1:17]",
		"ALTER TABLE d.t ALTER COLUMN n SET DATA TYPE INT64":           "ALTER COLUMN SET DATA TYPE requires that the existing column type (BIGNUMERIC) is assignable to the new type (INT64) at [1:17]",
		"ALTER TABLE d.t ALTER COLUMN name SET DATA TYPE STRING(2)":    "Provided Schema does not match Table p:d.t. Field name has changed max length from 0 to 2",
		"ALTER TABLE d.t ALTER COLUMN r SET DATA TYPE STRUCT<a INT64>": "ALTER COLUMN SET DATA TYPE requires that the existing column type (NUMERIC) is assignable to the new type (INT64) at [1:17]",
		"ALTER TABLE d.t ALTER COLUMN n SET DEFAULT 'x'":               "Default of column n has type STRING, which is not that of the column, BIGNUMERIC at [1:17]",
		"ALTER TABLE d.t ALTER COLUMN name SET COLLATE 'und:ci'":       "Not supported by local BigQuery: ALTER COLUMN SET COLLATE at [1:17]",
		"ALTER TABLE d.t DROP COLUMN n, RENAME TO u":                   "ALTER TABLE RENAME TO cannot be combined with other actions at [1:32]",
	} {
		if got := s.run(sql); got != want {
			t.Errorf("%s\n got %s\nwant %s", sql, got, want)
		}
	}
	s.must("CREATE TABLE d.one (x INT64)")
	if got := s.run("ALTER TABLE d.one DROP COLUMN x"); got != "Column x cannot be dropped: a table has at least one column at [1:19]" {
		t.Error(got)
	}
	t.Run("rows of before as they were", func(t *testing.T) {
		s.clock.Advance(time.Second)
		s.must("ALTER TABLE d.one ADD COLUMN y INT64", "INSERT d.one VALUES (1, 2)", "ALTER TABLE d.one DROP COLUMN x", "ALTER TABLE d.one RENAME COLUMN y TO x")
		if got := s.rowsOf("SELECT x FROM d.one"); got != `[("2")]` {
			t.Error(got)
		}
		if got := s.rowsOf("SELECT COUNT(x) FROM d.one FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01 00:00:00.5+00'"); got != `[("0")]` {
			t.Error(got)
		}
	})
}

func TestAlterOthers(t *testing.T) {
	s := start(t)
	s.must("CREATE SCHEMA d OPTIONS (description = 'old', default_table_expiration_days = 3)", "CREATE TABLE d.t AS SELECT 1 AS n", "CREATE VIEW d.v AS SELECT n FROM d.t",
		"CREATE MATERIALIZED VIEW d.m AS SELECT COUNT(*) AS k FROM d.t")
	s.must("ALTER SCHEMA d SET OPTIONS (description = NULL, labels = [('a', 'b')], friendly_name = 'F')", "ALTER SCHEMA IF EXISTS none SET OPTIONS (description = 'x')",
		"ALTER VIEW d.v SET OPTIONS (description = 'seen', labels = [('k', '')])", "ALTER VIEW IF EXISTS d.none SET OPTIONS (description = 'x')",
		"ALTER MATERIALIZED VIEW d.m SET OPTIONS (enable_refresh = FALSE)")
	_, d := s.do("GET", "/datasets/d", "", "")
	if at(d, "description") != nil || text(at(d, "labels")) != `{"a":"b"}` || at(d, "friendlyName") != "F" || at(d, "defaultTableExpirationMs") != "259200000" {
		t.Errorf("dataset: %s", text(d))
	}
	_, v := s.do("GET", "/datasets/d/tables/v", "", "")
	if at(v, "description") != "seen" || text(at(v, "labels")) != `{"k":""}` || at(v, "view", "query") != "SELECT n FROM d.t" {
		t.Errorf("view: %s", text(v))
	}
	_, m := s.do("GET", "/datasets/d/tables/m", "", "")
	if at(m, "materializedView", "enableRefresh") != false {
		t.Errorf("materialized view: %s", text(m))
	}
	_, job := s.insert("altered", "", "ALTER VIEW d.v SET OPTIONS (description = 'again')", "")
	q := at(job, "statistics", "query")
	if got := text(at(q, "statementType")) + text(at(q, "ddlOperationPerformed")) + text(at(q, "ddlTargetTable", "tableId")); got != `"ALTER_VIEW""ALTER""v"` {
		t.Error(got)
	}
	t.Run("RENAME TO", func(t *testing.T) {
		s.must("ALTER TABLE d.t RENAME TO `u-1`")
		if got := s.rowsOf("SELECT n FROM d.`u-1`"); got != `[("1")]` {
			t.Error(got)
		}
		s.must("INSERT d.`u-1` VALUES (2)", "CREATE TABLE d.t (n STRING)")
		if got := s.rowsOf("SELECT n FROM d.`u-1` ORDER BY n"); got != `[("1"),("2")]` {
			t.Error(got)
		}
		if unknown, err := s.Audit().Unaccounted("p.d.u-1"); err != nil || len(unknown) != 0 {
			t.Errorf("rows that the audit log does not know: %v %v", unknown, err)
		}
	})
	for sql, want := range map[string]string{
		"ALTER VIEW d.t SET OPTIONS (description = 'x')":   "p:d.t is not allowed for this operation because it is currently a TABLE.",
		"ALTER TABLE d.v SET OPTIONS (description = 'x')":  "p:d.v is not allowed for this operation because it is currently a VIEW.",
		"ALTER TABLE d.t RENAME TO `u-1`":                  "Already Exists: Table p:d.u-1",
		"ALTER TABLE d.t RENAME TO `a.b`":                  "Invalid table ID \"a.b\". Table IDs must be alphanumeric (plus underscores, dashes and spaces) and must be at most 1024 bytes long. Also, Table decorators cannot be used.",
		"ALTER SCHEMA none SET OPTIONS (description = '')": "Not found: Dataset p:none",
		"ALTER SCHEMA d SET OPTIONS (location = 'EU')":     "Cannot change the location of dataset p:d from US to EU",
		"ALTER SCHEMA d SET DEFAULT COLLATE ''":            "Not supported by local BigQuery: ALTER SCHEMA SET DEFAULT at [1:16]",
		"ALTER VIEW d.v RENAME TO w":                       "Not supported by local BigQuery: ALTER VIEW RENAME TO at [1:16]",
		"ALTER FUNCTION d.f SET OPTIONS ()":                "Not supported by local BigQuery: ALTER FUNCTION statements at [1:1]",
	} {
		if got := s.run(sql); got != want {
			t.Errorf("%s\n got %s\nwant %s", sql, got, want)
		}
	}
}

func TestKeysByDDL(t *testing.T) {
	s := start(t)
	s.must("CREATE SCHEMA d", "CREATE TABLE d.a (id INT64 PRIMARY KEY NOT ENFORCED, x STRING)",
		"CREATE TABLE d.b (id INT64, a INT64 REFERENCES d.a(id) NOT ENFORCED, c INT64, PRIMARY KEY (id) NOT ENFORCED, CONSTRAINT `own'` FOREIGN KEY (c) REFERENCES d.b(id) NOT ENFORCED)")
	keys := func() string {
		return s.rowsOf("SELECT constraint_name, column_name FROM d.INFORMATION_SCHEMA.KEY_COLUMN_USAGE WHERE table_name = 'b' ORDER BY 1, 2")
	}
	if got := keys(); got != `[("b.fk$1","a"),("b.own'","c"),("b.pk$","id")]` {
		t.Error(got)
	}
	s.must("ALTER TABLE d.b DROP CONSTRAINT `own'`", "ALTER TABLE d.b DROP CONSTRAINT IF EXISTS none", "ALTER TABLE d.b ADD CONSTRAINT IF NOT EXISTS k FOREIGN KEY (c) REFERENCES d.a (id) NOT ENFORCED",
		"ALTER TABLE d.b ADD CONSTRAINT IF NOT EXISTS k FOREIGN KEY (c) REFERENCES d.a (id) NOT ENFORCED", "ALTER TABLE d.b DROP CONSTRAINT `b.pk$`")
	if got := keys(); got != `[("b.fk$1","a"),("b.k","c")]` {
		t.Error(got)
	}
	s.must("ALTER TABLE d.b ADD PRIMARY KEY (id) NOT ENFORCED", "ALTER TABLE d.b DROP CONSTRAINT k, DROP CONSTRAINT `fk$1`, DROP PRIMARY KEY")
	if got := keys(); got != "null" {
		t.Error(got)
	}
	for sql, want := range map[string]string{
		"ALTER TABLE d.b ADD FOREIGN KEY (c) REFERENCES d.a (x) NOT ENFORCED":                    "Foreign key refers to columns that are not the primary key of table p:d.a: x at [1:21]",
		"ALTER TABLE d.b ADD FOREIGN KEY (c, a) REFERENCES d.a (id) NOT ENFORCED":                "A foreign key of 2 columns cannot refer to 1 columns at [1:21]",
		"ALTER TABLE d.b ADD FOREIGN KEY (z) REFERENCES d.a (id) NOT ENFORCED":                   "Foreign key column z does not exist in the schema",
		"ALTER TABLE d.b ADD FOREIGN KEY (c) REFERENCES d.none (id) NOT ENFORCED":                "Not found: Table p:d.none was not found in location US",
		"ALTER TABLE d.b ADD FOREIGN KEY (c) REFERENCES d.a (id)":                                "Syntax error: Expected keyword NOT but got end of script at [1:56]",
		"ALTER TABLE d.b DROP CONSTRAINT none":                                                   "Constraint none not found in table p:d.b at [1:33]",
		"CREATE TABLE d.c (id INT64 PRIMARY KEY NOT ENFORCED, b INT64 PRIMARY KEY NOT ENFORCED)": "Multiple primary keys are not allowed at [1:62]",
	} {
		if got := s.run(sql); got != want {
			t.Errorf("%s\n got %s\nwant %s", sql, got, want)
		}
	}
}
