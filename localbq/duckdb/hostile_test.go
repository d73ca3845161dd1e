//go:build cgo

package duckdb_test

import (
	"fmt"
	"strings"
	"testing"

	bqstorage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/localbq/internal/hostile"
)

// What a statement may cost that is refused before it runs, client and server together.
const modest = 64 << 20

func TestHostileStatements(t *testing.T) {
	const deep = 10_000
	s := start(t)
	s.words(1)
	nested := func(begin, middle, end string) string {
		return strings.Repeat(begin, deep) + middle + strings.Repeat(end, deep)
	}
	const tooDeep = "Not supported by local BigQuery: statements nested more than 200 levels deep at [1:"
	statements := map[string]string{
		"parentheses":        "SELECT " + nested("(", "1", ")"),
		"unary minus":        "SELECT " + nested("- ", "1", ""),
		"NOT":                "SELECT " + nested("NOT ", "TRUE", ""),
		"arrays":             "SELECT " + nested("[", "1", "]"),
		"structs":            "SELECT " + nested("STRUCT(", "1", ")"),
		"functions":          "SELECT " + nested("ABS(", "1", ")"),
		"CASE":               "SELECT " + nested("CASE WHEN TRUE THEN ", "1", " END"),
		"casts":              "SELECT " + nested("CAST(", "1", " AS INT64)"),
		"types":              "SELECT CAST(NULL AS " + nested("ARRAY<STRUCT<a ", "INT64", ">>") + ")",
		"subqueries":         "SELECT " + nested("(SELECT ", "1", ")"),
		"FROM":               "SELECT 1 FROM " + nested("(SELECT 1 FROM ", "d.words", ")"),
		"joins":              "SELECT 1 FROM " + nested("(", "d.words", " JOIN d.words ON TRUE)"),
		"WITH":               nested("WITH a AS (", "SELECT 1", ") SELECT 1"),
		"columns of a table": "CREATE TABLE d.t (a " + nested("STRUCT<a ", "INT64", ">") + ")",
		"sets":               nested("(", "SELECT 1", " UNION ALL SELECT 1)"),
	}
	for name, sql := range statements {
		t.Run("10,000 nested messages: "+name, func(t *testing.T) {
			s := *s
			s.T = t
			hostile.Allocates(t, modest, func() {
				code, answer := s.do("POST", "/queries", fmt.Sprintf(`{"query": %q, "useLegacySql": false}`, sql), "")
				if message, _ := at(answer, "error", "message").(string); code != 400 || !strings.HasPrefix(message, tooDeep) {
					t.Errorf("got %d %.300s, want 400 %s", code, text(answer), tooDeep)
				}
			})
		})
	}
	t.Run("10,000 in a row", func(t *testing.T) {
		s := *s
		s.T = t
		const want = "Not supported by local BigQuery: more than 4000 operators, joins or set operations in a row at [1:"
		for name, sql := range map[string]string{
			"additions": "SELECT " + strings.Repeat("1 + ", deep) + "1", "ANDs": "SELECT " + strings.Repeat("TRUE AND ", deep) + "TRUE",
			"concatenations": "SELECT " + strings.Repeat("'a' || ", deep) + "'a'", "unions": strings.Repeat("SELECT 1 UNION ALL ", deep) + "SELECT 1",
			"tests": "SELECT 1" + strings.Repeat(" IS NULL", deep), "subscripts": "SELECT JSON '1'" + strings.Repeat("[0]", deep), "joins": "SELECT 1 FROM d.words" + strings.Repeat(", d.words", deep),
		} {
			hostile.Allocates(t, modest, func() {
				code, answer := s.do("POST", "/queries", fmt.Sprintf(`{"query": %q, "useLegacySql": false}`, sql), "")
				if message, _ := at(answer, "error", "message").(string); code != 400 || !strings.HasPrefix(message, want) {
					t.Errorf("%s: got %d %.300s, want 400 %s", name, code, text(answer), want)
				}
			})
		}
		if got := s.query("SELECT " + strings.Repeat("word_count = 7 OR ", 3999) + "TRUE FROM d.words"); got[0][0] != true {
			t.Errorf("as many as are allowed: %v", got)
		}
	})
	t.Run("10,000 nested messages in a row restriction", func(t *testing.T) {
		read, err := bqstorage.NewBigQueryReadClient(t.Context(), s.GRPCClientOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		defer read.Close()
		for name, restriction := range map[string]string{
			"parentheses": nested("(", "TRUE", ")"), "NOT": nested("NOT ", "TRUE", ""), "IF": nested("IF(TRUE, ", "TRUE", ", FALSE)"), "minus": "word_count = " + nested("- ", "1", ""),
		} {
			hostile.Allocates(t, modest, func() {
				_, err = read.CreateReadSession(t.Context(), &storagepb.CreateReadSessionRequest{Parent: "projects/p", ReadSession: &storagepb.ReadSession{
					Table: "projects/p/datasets/d/tables/words", DataFormat: storagepb.DataFormat_ARROW, ReadOptions: &storagepb.ReadSession_TableReadOptions{RowRestriction: restriction},
				}})
			})
			if status.Code(err) != codes.InvalidArgument || !strings.HasPrefix(status.Convert(err).Message(), "request failed: "+tooDeep) {
				t.Errorf("%s: got %v, want %s", name, err, tooDeep)
			}
		}
	})
	t.Run("10,000 nested messages in values", func(t *testing.T) {
		s := *s
		s.T = t
		for name, sql := range map[string]string{
			"PARSE_JSON": "SELECT PARSE_JSON(CONCAT(REPEAT('[', 10000), REPEAT(']', 10000)))", "JSON literal": "SELECT JSON '" + nested("[", "", "]") + "'",
			"JSON_VALUE": "SELECT JSON_VALUE(CONCAT(REPEAT('[', 10000), REPEAT(']', 10000)), '$" + strings.Repeat("[0]", deep) + "')", "geography": "SELECT ST_GEOGFROMTEXT(CONCAT(REPEAT('GEOMETRYCOLLECTION(', 10000), 'POINT(1 1)', REPEAT(')', 10000)))",
		} {
			code, answer := s.do("POST", "/queries", fmt.Sprintf(`{"query": %q, "useLegacySql": false}`, sql), "")
			if code != 200 && code != 400 {
				t.Errorf("%s: got %d %.300s, want rows or a refusal", name, code, text(answer))
			}
		}
		if got := s.query("SELECT 1"); got[0][0] != int64(1) {
			t.Errorf("afterwards: %v", got)
		}
	})
}
