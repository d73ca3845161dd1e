//go:build cgo

package duckdb_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/bigquery"
	"google.golang.org/api/iterator"

	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/duckdb"
)

// service is a local BigQuery with this engine, spoken to by the official clients and by bare HTTP.
type service struct {
	*testing.T
	*localbq.Instance
	clock  *localbq.ManualClock
	client *bigquery.Client
}

func start(t *testing.T) *service {
	queries, err := duckdb.New()
	if err != nil {
		t.Fatal(err)
	}
	return startWith(t, queries)
}

// startWith is start with an engine of the test's.
func startWith(t *testing.T, queries localbq.QueryEngine) *service {
	clock := localbq.NewManualClock()
	i, err := localbq.Start(t.Context(), localbq.Config{Project: "p", Queries: queries, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	c, err := bigquery.NewClient(t.Context(), "p", i.ClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	return &service{t, i, clock, c}
}

// in is the service for a subtest.
func (s *service) in(t *testing.T) *service {
	out := *s
	out.T = t
	return &out
}

// do makes a REST call as a principal, "" for anybody.
func (s *service) do(method, path, body, principal string) (int, map[string]any) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, "http://"+s.REST()+"/bigquery/v2/projects/p"+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	if principal != "" {
		r.Header.Set("Authorization", "Bearer local:"+principal)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		s.Fatal(err)
	}
	out := map[string]any{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &out); err != nil {
			s.Fatalf("%s: %v", raw, err)
		}
	}
	return res.StatusCode, out
}

// text is a value as JSON.
func text(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(b.String())
}

func at(v any, path ...string) any {
	for _, key := range path {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

// insert makes a query job of that id and waits for it.
func (s *service) insert(id, location, sql, principal string) (int, map[string]any) {
	s.Helper()
	code, job := s.do("POST", "/jobs", fmt.Sprintf(`{"jobReference": {"jobId": %q, "location": %q}, "configuration": {"query": {"query": %q, "useLegacySql": false}}}`, id, location, sql), principal)
	if code != 200 {
		return code, job
	}
	location = at(job, "jobReference", "location").(string)
	s.do("GET", "/queries/"+id+"?maxResults=0&location="+location, "", principal)
	return s.do("GET", "/jobs/"+id+"?location="+location, "", principal)
}

func all(t testing.TB, it *bigquery.RowIterator) (out [][]bigquery.Value) {
	t.Helper()
	for {
		var row []bigquery.Value
		err := it.Next(&row)
		if errors.Is(err, iterator.Done) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
}

func (s *service) query(sql string) [][]bigquery.Value {
	s.Helper()
	it, err := s.client.Query(sql).Read(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return all(s, it)
}

// words makes p.d.words with rows of a word and its count, written through a query.
func (s *service) words(n int) {
	s.Helper()
	if err := s.client.Dataset("d").Create(s.Context(), nil); err != nil {
		s.Fatal(err)
	}
	q := s.client.Query(fmt.Sprintf("SELECT CONCAT('word', CAST(n AS STRING)) AS word, IF(MOD(n, 10) = 0, NULL, n) AS word_count FROM UNNEST(GENERATE_ARRAY(1, %d)) AS n ORDER BY n", n))
	q.Dst = s.client.Dataset("d").Table("words")
	job, err := q.Run(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	if status, err := job.Wait(s.Context()); err != nil || status.Err() != nil {
		s.Fatal(err, status.Err())
	}
}

func TestEveryTypeThroughTheOfficialClients(t *testing.T) {
	const sql = `SELECT n, CAST(n AS FLOAT64) AS f, n > 1 AS b, CAST(n AS STRING) AS s, CAST(CAST(n AS STRING) AS BYTES) AS y,
		CAST(n AS NUMERIC) / 3 AS num, CAST(n AS BIGNUMERIC) / 3 AS big, DATE_ADD(DATE '2020-01-01', INTERVAL n DAY) AS d,
		TIME_ADD(TIME '00:00:00', INTERVAL n SECOND) AS t, DATETIME_ADD(DATETIME '2020-01-01', INTERVAL n HOUR) AS dt,
		TIMESTAMP_SECONDS(n) AS ts, TO_JSON(STRUCT(n AS a)) AS j, ST_GEOGPOINT(n, 0) AS g, [n, n + 1] AS a,
		STRUCT(n AS x, [STRUCT(CAST(n AS STRING) AS z)] AS l) AS st, IF(n = 1, NULL, n) AS nothing
		FROM UNNEST(GENERATE_ARRAY(1, 3000)) AS n ORDER BY n`
	rows := map[string][][]bigquery.Value{}
	for _, name := range []string{"REST", "Storage Read"} {
		s := start(t)
		if err := s.client.Dataset("d").Create(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		q := s.client.Query(sql)
		q.Dst = s.client.Dataset("d").Table("every")
		job, err := q.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if status, err := job.Wait(t.Context()); err != nil || status.Err() != nil {
			t.Fatal(err, status.Err())
		}
		if name == "Storage Read" {
			if err := s.client.EnableStorageReadClient(t.Context(), s.GRPCClientOptions()...); err != nil {
				t.Fatal(err)
			}
		}
		it := s.client.Dataset("d").Table("every").Read(t.Context())
		if it.IsAccelerated() != (name == "Storage Read") {
			t.Errorf("%s: accelerated %v", name, it.IsAccelerated())
		}
		rows[name] = all(t, it)
		if len(rows[name]) != 3000 {
			t.Errorf("%s: %d rows", name, len(rows[name]))
		}
		slices.SortFunc(rows[name], func(a, b []bigquery.Value) int { return int(a[0].(int64) - b[0].(int64)) })
	}
	for i, r := range rows["REST"] {
		if got, want := fmt.Sprint(rows["Storage Read"][i]), fmt.Sprint(r); got != want {
			t.Fatalf("row %d differs\n    REST %s\n Storage %s", i, want, got)
		}
	}
	want := "[1 1 false 1 [49] 333333333/1000000000 33333333333333333333333333333333333333/100000000000000000000000000000000000000 " +
		"2020-01-02 00:00:01 2020-01-01T01:00:00 1970-01-01 00:00:01 +0000 UTC {\"a\":1} POINT(1 0) [1 2] [1 [[1]]] <nil>]"
	if got := fmt.Sprint(rows["REST"][0]); got != want {
		t.Errorf("first row\n got %s\nwant %s", got, want)
	}
}
