//go:build cgo

package duckdb_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq"
)

// modes are a table's columns and members with their modes as REST answers them, "-" for none.
func (s *service) modes(table string) string {
	s.Helper()
	code, resource := s.do("GET", "/datasets/d/tables/"+table, "", "")
	if code != 200 {
		s.Fatalf("%d %s", code, text(resource))
	}
	return modesOf(at(resource, "schema", "fields"))
}

func modesOf(fields any) string {
	var out []string
	list, _ := fields.([]any)
	for _, f := range list {
		mode := at(f, "mode")
		if mode == nil {
			mode = "-"
		}
		one := fmt.Sprintf("%v:%v", at(f, "name"), mode)
		if inner := modesOf(at(f, "fields")); inner != "" {
			one += "(" + inner + ")"
		}
		out = append(out, one)
	}
	return strings.Join(out, " ")
}

// TestModesOfDDL: columns that DDL has made answer no mode NULLABLE, in the next process neither; others do.
func TestModesOfDDL(t *testing.T) {
	dir, clock := t.TempDir(), localbq.NewManualClock()
	s, end := inFolder(t, dir, clock)
	s.must("CREATE SCHEMA d", "CREATE TABLE d.t (a INT64 NOT NULL, b STRING, l ARRAY<INT64>, s STRUCT<x INT64, y ARRAY<STRUCT<z DATE>>>)",
		"CREATE TABLE d.made AS SELECT 1 AS n, STRUCT(2 AS x) AS s, [3] AS l")
	if code, answer := s.do("POST", "/datasets/d/tables", `{"tableReference": {"tableId": "rest"}, "schema": {"fields": [{"name": "a", "type": "INTEGER"}]}}`, ""); code != 200 {
		t.Fatalf("%d %s", code, text(answer))
	}
	s.must("ALTER TABLE d.rest ADD COLUMN b STRUCT<x INT64>", "CREATE TABLE d.same LIKE d.rest", "ALTER TABLE d.t ALTER COLUMN a DROP NOT NULL")
	want := map[string]string{
		"t":    "a:- b:- l:REPEATED s:-(x:- y:REPEATED(z:-))",
		"made": "n:- s:-(x:-) l:REPEATED",
		"rest": "a:NULLABLE b:-(x:-)",
		"same": "a:- b:-(x:-)",
	}
	for range 3 {
		for table, modes := range want {
			if got := s.modes(table); got != modes {
				t.Errorf("table %s has %s, want %s", table, got, modes)
			}
		}
		_, answer := s.do("POST", "/queries", `{"useLegacySql": false, "query": "SELECT b, s FROM d.t"}`, "")
		if got := modesOf(at(answer, "schema", "fields")); got != "b:NULLABLE s:NULLABLE(x:NULLABLE y:REPEATED(z:NULLABLE))" {
			t.Errorf("a result has %s", got)
		}
		end()
		s, end = inFolder(t, dir, clock)
	}
	end()
}
