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
	if got := s.run("SELECT * FROM d.INFORMATION_SCHEMA.PARTITIONS"); got != "Not supported by local BigQuery: INFORMATION_SCHEMA.PARTITIONS at [1:15]" {
		t.Error(got)
	}
}
