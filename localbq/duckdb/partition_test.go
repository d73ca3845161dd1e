//go:build cgo

package duckdb_test

import (
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/bigquery"
)

// TestPartitionsOfQueries writes results of queries to partitions.
func TestPartitionsOfQueries(t *testing.T) {
	s := start(t)
	dataset := s.client.Dataset("d")
	if err := dataset.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for name, by := range map[string]*bigquery.TimePartitioning{"arrived": {}, "days": {Field: "day"}} {
		schema := bigquery.Schema{{Name: "day", Type: bigquery.DateFieldType}, {Name: "n", Type: bigquery.IntegerFieldType}}
		if err := dataset.Table(name).Create(t.Context(), &bigquery.TableMetadata{Schema: schema, TimePartitioning: by}); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, sql string, disposition bigquery.TableWriteDisposition, options ...string) (string, error) {
		q := s.client.Query(sql)
		q.Dst, q.WriteDisposition, q.SchemaUpdateOptions = dataset.Table(name), disposition, options
		it, err := q.Read(t.Context())
		if err != nil {
			return "", err
		}
		var out []string
		for {
			var row []bigquery.Value
			if err := it.Next(&row); err != nil {
				return strings.Join(out, " "), nil
			}
			out = append(out, fmt.Sprint(row))
		}
	}
	want := func(name, sql string, disposition bigquery.TableWriteDisposition, result string) {
		t.Helper()
		if got, err := write(name, sql, disposition); err != nil || got != result {
			t.Errorf("%s to %s: got %s, %v; want %s", sql, name, got, err, result)
		}
	}
	refused := func(name, sql string, disposition bigquery.TableWriteDisposition, message string) {
		t.Helper()
		if got, err := write(name, sql, disposition); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s to %s: got %s, %v; want %s", sql, name, got, err, message)
		}
	}
	want("days$20260102", "SELECT DATE '2026-01-02' AS day, 1 AS n", bigquery.WriteEmpty, "[2026-01-02 1]")
	want("days", "SELECT DATE '2026-01-03' AS day, 2 AS n", bigquery.WriteAppend, "[2026-01-02 1] [2026-01-03 2]")
	refused("days$20260102", "SELECT DATE '2026-01-02' AS day, 3 AS n", bigquery.WriteEmpty, "Already Exists: Table p:d.days$20260102")
	refused("days$20260102", "SELECT DATE '2026-01-03' AS day, 3 AS n", bigquery.WriteTruncate, "Some rows belong to different partitions rather than destination partition 20260102")
	want("days$20260103", "SELECT DATE '2026-01-03' AS day, 3 AS n", bigquery.WriteTruncate, "[2026-01-03 3]")
	want("days$20260103", "SELECT DATE '2026-01-03' AS day, 4 AS n", bigquery.WriteAppend, "[2026-01-03 3] [2026-01-03 4]")
	if got := fmt.Sprint(s.query("SELECT n FROM d.days ORDER BY n")); got != "[[1] [3] [4]]" {
		t.Errorf("the table holds %s", got)
	}
	if got, err := write("days$20260103", "SELECT DATE '2026-01-03' AS day, 5 AS n, 'x' AS more", bigquery.WriteTruncate, "ALLOW_FIELD_ADDITION"); err != nil || got != "[2026-01-03 5 x]" {
		t.Errorf("a wider partition: %s, %v", got, err)
	}
	refused("none$20260102", "SELECT 1 AS n", bigquery.WriteAppend, "Cannot read partition information from a table that is not partitioned: p:d.none$20260102")

	want("arrived$20200101", "SELECT CAST(NULL AS DATE) AS day, 1 AS n", bigquery.WriteEmpty, "[<nil> 1]")
	want("arrived$20200102", "SELECT CAST(NULL AS DATE) AS day, 2 AS n", bigquery.WriteTruncate, "[<nil> 2]")
	want("arrived", "SELECT CAST(NULL AS DATE) AS day, 3 AS n", bigquery.WriteAppend, "[<nil> 1] [<nil> 2] [<nil> 3]")
	want("arrived$20200101", "SELECT CAST(NULL AS DATE) AS day, 4 AS n", bigquery.WriteTruncate, "[<nil> 4]")
	if got := fmt.Sprint(s.query("SELECT n, FORMAT_DATE('%F', _PARTITIONDATE) FROM d.arrived ORDER BY n")); got != "[[2 2020-01-02] [3 2026-01-01] [4 2020-01-01]]" {
		t.Errorf("the table holds %s", got)
	}
}
