//go:build cgo

package duckdb_test

import "testing"

func TestInformationSchema(t *testing.T) {
	s := start(t)
	s.must("CREATE SCHEMA d", `CREATE TABLE d.t (id INT64 NOT NULL, day DATE, name STRING(5) DEFAULT 'x', n NUMERIC(5, 2), r STRUCT<a INT64, b ARRAY<STRING>>,
		PRIMARY KEY (id) NOT ENFORCED) PARTITION BY day CLUSTER BY name, id`, "CREATE VIEW d.v AS SELECT id FROM d.t", "CREATE MATERIALIZED VIEW d.m AS SELECT COUNT(*) AS n FROM d.t")
	for sql, want := range map[string]string{
		"SELECT table_catalog, table_schema, table_name, table_type, is_insertable_into, creation_time < TIMESTAMP '2030-01-01' FROM d.INFORMATION_SCHEMA.TABLES ORDER BY 3": `[("p","d","m","MATERIALIZED VIEW","NO","true"),("p","d","t","BASE TABLE","YES","true"),("p","d","v","VIEW","NO","true")]`,
		"SELECT column_name, ordinal_position, is_nullable, data_type, is_partitioning_column, clustering_ordinal_position, column_default FROM d.INFORMATION_SCHEMA.COLUMNS WHERE table_name = 't' ORDER BY 2": `[("id","1","NO","INT64","NO","2","NULL"),("day","2","YES","DATE","YES",null,"NULL"),` +
			`("name","3","YES","STRING(5)","NO","1","'x'"),("n","4","YES","NUMERIC(5, 2)","NO",null,"NULL"),("r","5","YES","STRUCT<a INT64, b ARRAY<STRING>>","NO",null,"NULL")]`,
		"SELECT table_name, view_definition, use_standard_sql FROM `p.d.INFORMATION_SCHEMA.VIEWS`":                                        `[("v","SELECT id FROM d.t","YES")]`,
		"SELECT table_name, constraint_name, constraint_type, enforced FROM d.INFORMATION_SCHEMA.TABLE_CONSTRAINTS":                       `[("t","t.pk$","PRIMARY KEY","NO")]`,
		"SELECT constraint_name, column_name, ordinal_position, position_in_unique_constraint FROM d.INFORMATION_SCHEMA.KEY_COLUMN_USAGE": `[("t.pk$","id","1",null)]`,
	} {
		if got := s.rowsOf(sql); got != want {
			t.Errorf("%s\n got %s\nwant %s", sql, got, want)
		}
	}
	const count = "SELECT COUNT(*) FROM d.INFORMATION_SCHEMA.TABLES"
	s.rowsOf(count)
	s.must("DROP VIEW d.v")
	if got := s.rowsOf(count); got != `[("2")]` {
		t.Errorf("after DROP: %s", got)
	}
	if got := s.run("SELECT * FROM d.INFORMATION_SCHEMA.ROUTINES"); got != "Not supported by local BigQuery: INFORMATION_SCHEMA.ROUTINES at [1:15]" {
		t.Error(got)
	}
}

func TestInformationOfRegions(t *testing.T) {
	s := start(t)
	s.must("CREATE SCHEMA d OPTIONS (description = 'it\\'s \"d\"', default_table_expiration_days = 1.5, labels = [('k', 'v')])", "CREATE SCHEMA e OPTIONS (location = 'EU')",
		"CREATE TABLE d.t (day DATE, r STRUCT<a INT64, b ARRAY<STRUCT<c STRING(3)>>>) PARTITION BY day",
		"INSERT d.t (day) VALUES ('2026-01-01'), ('2026-01-01'), ('2026-02-01'), (NULL)", "CREATE TABLE d.p AS SELECT 1 AS n", "CREATE VIEW d.v AS SELECT 1 AS n",
		"CREATE TABLE d.i (n INT64) PARTITION BY _PARTITIONDATE", "INSERT d.i (n) VALUES (1)")
	s.insert("bad", "", "SELECT 1 / 0", "ann")
	for sql, want := range map[string]string{
		"SELECT catalog_name, schema_name, location, ddl FROM INFORMATION_SCHEMA.SCHEMATA ORDER BY 2":                                                                   `[("p","d","US",null)]`,
		"SELECT schema_name, location FROM `region-eu`.INFORMATION_SCHEMA.SCHEMATA":                                                                                     `[("e","EU")]`,
		"SELECT schema_name FROM `p`.`region-EU`.INFORMATION_SCHEMA.SCHEMATA":                                                                                           `[("e")]`,
		"SELECT schema_name FROM other.INFORMATION_SCHEMA.SCHEMATA":                                                                                                     "null",
		"SELECT option_name, option_type, option_value FROM region-us.INFORMATION_SCHEMA.SCHEMATA_OPTIONS ORDER BY 1":                                                   `[("default_table_expiration_days","FLOAT64","1.5"),("description","STRING","\"it's \\\"d\\\"\""),("labels","ARRAY<STRUCT<STRING, STRING>>","[STRUCT(\"k\", \"v\")]")]`,
		"SELECT table_name, partition_id, total_rows, IF(table_name = 't', NULL, total_logical_bytes), storage_tier FROM d.INFORMATION_SCHEMA.PARTITIONS ORDER BY 1, 2": `[("i","20260101","1","8","ACTIVE"),("p",null,"1","8","ACTIVE"),("t","20260101","2",null,"ACTIVE"),("t","20260201","1",null,"ACTIVE"),("t","__NULL__","1",null,"ACTIVE")]`,
		"SELECT column_name, field_path, data_type FROM d.INFORMATION_SCHEMA.COLUMN_FIELD_PATHS WHERE table_name = 't' ORDER BY 2":                                      `[("day","day","DATE"),("r","r","STRUCT<a INT64, b ARRAY<STRUCT<c STRING(3)>>>"),("r","r.a","INT64"),("r","r.b","ARRAY<STRUCT<c STRING(3)>>"),("r","r.b.c","STRING(3)")]`,
		"SELECT user_email, job_type, statement_type, state, error_result.reason, error_result.message, end_time >= start_time, start_time >= creation_time, cache_hit, total_slot_ms FROM `region-us`.INFORMATION_SCHEMA.JOBS WHERE job_id = 'bad'": `[("ann","QUERY",null,"DONE","invalidQuery","division by zero: 1 / 0","true","true","false",null)]`,
		"SELECT query, statement_type, dml_statistics.inserted_row_count, destination_table.table_id FROM `region-us`.INFORMATION_SCHEMA.JOBS_BY_PROJECT WHERE statement_type = 'INSERT' AND destination_table.table_id = 'i'":                       `[("INSERT d.i (n) VALUES (1)","INSERT","1","i")]`,
		"SELECT COUNT(*), COUNTIF(state = 'RUNNING') FROM `region-us`.INFORMATION_SCHEMA.JOBS_BY_USER WHERE user_email = 'ann'":                                                                                                                      `[("0","0")]`,
	} {
		if got := s.rowsOf(sql); got != want {
			t.Errorf("%s\n got %s\nwant %s", sql, got, want)
		}
	}
	if got := s.run("SELECT * FROM `region-eu`.INFORMATION_SCHEMA.JOBS, d.t"); got != "Not found: Dataset p:d was not found in location EU" {
		t.Error(got)
	}
	s.must("SELECT * FROM `region-us`.INFORMATION_SCHEMA.JOBS")
}
