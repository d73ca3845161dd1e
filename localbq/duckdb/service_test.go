//go:build cgo

package duckdb_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigquery"
	bqstorage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"cloud.google.com/go/civil"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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

func TestQueryJobs(t *testing.T) {
	t.Run("LBQ-153 the same job id twice", func(t *testing.T) {
		s := start(t)
		if code, job := s.insert("job1", "", "SELECT 1 AS n", ""); code != 200 || at(job, "status", "state") != "DONE" || at(job, "status", "errorResult") != nil {
			t.Fatalf("%d %s", code, text(job))
		}
		code, answer := s.insert("job1", "", "SELECT 2 AS n", "")
		if code != 409 || at(answer, "error", "message") != "Already Exists: Job p:US.job1" {
			t.Errorf("%d %s", code, text(answer))
		}
		if _, r := s.do("GET", "/queries/job1", "", ""); text(at(r, "rows")) != `[{"f":[{"v":"1"}]}]` {
			t.Errorf("the result is %s", text(r))
		}
		if code, _ := s.insert("job1", "EU", "SELECT 3 AS n", ""); code != 200 {
			t.Errorf("the same id in another location: %d", code)
		}
	})
	t.Run("LBQ-154 the id of a failed job", func(t *testing.T) {
		s := start(t)
		code, job := s.insert("bad", "", "SELECT foo", "")
		if code != 200 || at(job, "status", "state") != "DONE" || text(at(job, "status", "errorResult")) != `{"location":"query","message":"Unrecognized name: foo at [1:8]","reason":"invalidQuery"}` {
			t.Errorf("%d %s", code, text(job))
		}
		if code, _ := s.insert("bad", "", "SELECT 1", ""); code != 409 {
			t.Errorf("the id again: %d", code)
		}
	})
	t.Run("LBQ-155 a regional job without its location", func(t *testing.T) {
		s := start(t)
		s.insert("far", "europe-west1", "SELECT 1", "")
		code, answer := s.do("GET", "/jobs/far", "", "")
		if code != 404 || at(answer, "error", "message") != "Not found: Job p:far" {
			t.Errorf("%d %s", code, text(answer))
		}
		if code, _ := s.do("GET", "/jobs/far?location=europe-west1", "", ""); code != 200 {
			t.Errorf("with its location: %d", code)
		}
	})
	t.Run("LBQ-156 a location that is not the dataset's", func(t *testing.T) {
		s := start(t)
		s.words(1)
		_, job := s.insert("here", "EU", "SELECT * FROM d.words", "")
		if got := text(at(job, "status", "errorResult")); got != `{"message":"Not found: Dataset p:d was not found in location EU","reason":"notFound"}` {
			t.Errorf("got %s", got)
		}
		if _, job := s.insert("there", "", "SELECT * FROM d.words", ""); at(job, "jobReference", "location") != "US" || at(job, "status", "errorResult") != nil {
			t.Errorf("without a location: %s", text(job))
		}
	})
	t.Run("a table that is not there", func(t *testing.T) {
		s := start(t)
		s.words(1)
		code, answer := s.do("POST", "/queries", `{"query": "SELECT * FROM d.none", "useLegacySql": false}`, "")
		if code != 404 || at(answer, "error", "message") != "Not found: Table p:d.none was not found in location US" {
			t.Errorf("%d %s", code, text(answer))
		}
	})
	t.Run("LBQ-162 no rows asked for", func(t *testing.T) {
		s := start(t)
		code, answer := s.do("POST", "/queries", `{"query": "SELECT * FROM UNNEST([1, 2, 3]) AS n", "useLegacySql": false, "maxResults": 0}`, "")
		if code != 200 || at(answer, "totalRows") != "3" || at(answer, "rows") != nil || at(answer, "pageToken") == nil || at(answer, "jobComplete") != true {
			t.Errorf("%d %s", code, text(answer))
		}
	})
	t.Run("LBQ-163 pages walk to the end", func(t *testing.T) {
		s := start(t)
		_, answer := s.do("POST", "/queries", `{"query": "SELECT n FROM UNNEST(GENERATE_ARRAY(1, 100)) AS n ORDER BY n", "useLegacySql": false, "maxResults": 25}`, "")
		id := at(answer, "jobReference", "jobId").(string)
		var got []string
		for page := 0; page < 5; page++ {
			for _, r := range at(answer, "rows").([]any) {
				got = append(got, text(at(r, "f")))
			}
			token, _ := at(answer, "pageToken").(string)
			if token == "" {
				break
			}
			_, answer = s.do("GET", "/queries/"+id+"?maxResults=25&pageToken="+token, "", "")
		}
		if len(got) != 100 || got[0] != `[{"v":"1"}]` || got[99] != `[{"v":"100"}]` {
			t.Errorf("%d rows, from %s to %s", len(got), got[0], got[len(got)-1])
		}
	})
	t.Run("a request repeated", func(t *testing.T) {
		s := start(t)
		body := `{"query": "SELECT RAND()", "useLegacySql": false, "requestId": "r1"}`
		_, first := s.do("POST", "/queries", body, "")
		_, second := s.do("POST", "/queries", body, "")
		if text(at(first, "rows")) != text(at(second, "rows")) {
			t.Error("the repeated request ran again")
		}
		s.clock.Advance(15 * time.Minute)
		if _, third := s.do("POST", "/queries", body, ""); text(at(first, "rows")) == text(at(third, "rows")) {
			t.Error("the request is still remembered after 15 minutes")
		}
	})
	t.Run("dry run", func(t *testing.T) {
		s := start(t)
		s.words(100)
		code, answer := s.do("POST", "/queries", `{"query": "SELECT word_count AS n FROM d.words", "useLegacySql": false, "dryRun": true}`, "")
		if code != 200 || at(answer, "totalBytesProcessed") != "720" || text(at(answer, "schema")) != `{"fields":[{"mode":"NULLABLE","name":"n","type":"INTEGER"}]}` {
			t.Errorf("%d %s", code, text(answer))
		}
		q := s.client.Query("SELECT * FROM d.words")
		q.DryRun = true
		run, err := q.Run(t.Context())
		if err != nil || run.LastStatus().Statistics.TotalBytesProcessed != 100*2+592+720 {
			t.Errorf("%v, %+v", err, run.LastStatus().Statistics)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		s := start(t)
		s.do("POST", "/jobs", `{"jobReference": {"jobId": "long"}, "configuration": {"query": {"useLegacySql": false,
			"query": "SELECT COUNT(*) FROM UNNEST(GENERATE_ARRAY(1, 1000000)) a, UNNEST(GENERATE_ARRAY(1, 1000000)) b WHERE MOD(a * b, 7) = 3"}}}`, "")
		if code, answer := s.do("POST", "/jobs/long/cancel", "", ""); code != 200 || at(answer, "kind") != "bigquery#jobCancelResponse" {
			t.Errorf("%d %s", code, text(answer))
		}
		if code, answer := s.do("GET", "/queries/long", "", ""); code != 499 || at(answer, "error", "message") != "Job execution was cancelled: User requested cancellation" {
			t.Errorf("%d %s", code, text(answer))
		}
	})
	t.Run("what is not implemented", func(t *testing.T) {
		s := start(t)
		for body, want := range map[string]string{
			`{"configuration": {"load": {"sourceUris": ["gs://a/b"]}}}`:                                                                   "local BigQuery does not implement job.configuration.load",
			`{"configuration": {"query": {"query": "SELECT 1"}}}`:                                                                         "local BigQuery does not implement legacy SQL: set useLegacySql to false, because BigQuery takes its absence for true",
			`{"configuration": {"query": {"query": "SELECT 1", "useLegacySql": false, "createSession": true}}}`:                           "local BigQuery does not implement job.configuration.query.createSession",
			`{"configuration": {"query": {"query": "SELECT 1", "useLegacySql": false, "schemaUpdateOptions": ["ALLOW_FIELD_ADDITION"]}}}`: "local BigQuery does not implement job.configuration.query.schemaUpdateOptions",
		} {
			code, answer := s.do("POST", "/jobs", body, "")
			if code != 501 || at(answer, "error", "message") != want {
				t.Errorf("%s: %d %s", body, code, text(answer))
			}
		}
		code, answer := s.do("POST", "/queries", `{"query": "INSERT INTO d.t VALUES (1)", "useLegacySql": false}`, "")
		if code != 400 || at(answer, "error", "message") != "Not supported by local BigQuery: INSERT statements at [1:1]" {
			t.Errorf("%d %s", code, text(answer))
		}
	})
}

func TestAnonymousResults(t *testing.T) {
	t.Run("LBQ-157 readable by a session of whoever asked, for a day", func(t *testing.T) {
		s := start(t)
		_, job := s.insert("q", "", "SELECT n FROM UNNEST([1, 2, 3]) AS n", "ann")
		table := at(job, "configuration", "query", "destinationTable").(map[string]any)
		dataset, id := table["datasetId"].(string), table["tableId"].(string)
		if !strings.HasPrefix(dataset, "_") || !strings.HasPrefix(id, "anon") {
			t.Errorf("the result is in %s.%s", dataset, id)
		}
		path := "/datasets/" + dataset + "/tables/" + id + "/data"
		if code, rows := s.do("GET", path, "", "ann"); code != 200 || at(rows, "totalRows") != "3" {
			t.Errorf("%d %s", code, text(rows))
		}
		if code, rows := s.do("GET", path, "", "bob"); code != 403 {
			t.Errorf("somebody else: %d %s", code, text(rows))
		}
		if _, list := s.do("GET", "/datasets", "", ""); at(list, "datasets") != nil {
			t.Errorf("the hidden dataset is listed: %s", text(list))
		}
		read, err := bqstorage.NewBigQueryReadClient(t.Context(), s.GRPCClientOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		defer read.Close()
		r := &storagepb.CreateReadSessionRequest{Parent: "projects/p", ReadSession: &storagepb.ReadSession{
			Table: "projects/p/datasets/" + dataset + "/tables/" + id, DataFormat: storagepb.DataFormat_AVRO,
		}}
		if _, err := read.CreateReadSession(t.Context(), r); status.Code(err) != codes.PermissionDenied {
			t.Errorf("a session of somebody else: %v", err)
		}
		_, job = s.insert("mine", "", "SELECT n FROM UNNEST([1, 2, 3]) AS n", "")
		table = at(job, "configuration", "query", "destinationTable").(map[string]any)
		r.ReadSession.Table = fmt.Sprintf("projects/p/datasets/%s/tables/%s", table["datasetId"], table["tableId"])
		session, err := read.CreateReadSession(t.Context(), r)
		if err != nil || len(session.Streams) != 1 || session.EstimatedRowCount != 3 || session.EstimatedTotalBytesScanned != 0 {
			t.Errorf("%v, %v", session, err)
		}
		s.clock.Advance(24*time.Hour + time.Second)
		if code, _ := s.do("GET", path, "", "ann"); code != 404 {
			t.Errorf("after a day: %d", code)
		}
		if code, _ := s.do("GET", "/queries/q", "", "ann"); code != 404 {
			t.Errorf("results after a day: %d", code)
		}
		if _, job := s.do("GET", "/jobs/q", "", "ann"); at(job, "status", "state") != "DONE" {
			t.Errorf("the job after a day: %s", text(job))
		}
	})
}

func TestDestination(t *testing.T) {
	s := start(t)
	s.words(3)
	run := func(sql, write string) error {
		q := s.client.Query(sql)
		q.Dst, q.WriteDisposition = s.client.Dataset("d").Table("words"), bigquery.TableWriteDisposition(write)
		job, err := q.Run(t.Context())
		if err != nil {
			return err
		}
		status, err := job.Wait(t.Context())
		if err != nil {
			return err
		}
		return status.Err()
	}
	if err := run("SELECT 'x' AS word, 1 AS word_count", ""); err == nil || !strings.Contains(err.Error(), "Already Exists: Table p:d.words") {
		t.Errorf("WRITE_EMPTY: %v", err)
	}
	if err := run("SELECT 'x' AS word, 1 AS word_count", "WRITE_APPEND"); err != nil {
		t.Error(err)
	}
	if err := run("SELECT 'x' AS word, 1 AS n", "WRITE_APPEND"); err == nil || !strings.Contains(err.Error(), "Invalid schema update. Cannot add fields (field: n)") {
		t.Errorf("WRITE_APPEND of another column: %v", err)
	}
	if got := s.query("SELECT COUNT(*) FROM d.words"); got[0][0] != int64(4) {
		t.Errorf("got %v", got)
	}
	if err := run("SELECT 1.5 AS other", "WRITE_TRUNCATE"); err != nil {
		t.Error(err)
	}
	if got := s.query("SELECT * FROM d.words"); len(got) != 1 || got[0][0] != 1.5 {
		t.Errorf("got %v", got)
	}
}

func TestParameters(t *testing.T) {
	s := start(t)
	stamp := time.Date(2020, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	q := s.client.Query("SELECT @s, @i, @f, @b, @y, @d, @t, @dt, @ts, @n, @list, @st.name, @st.tags[OFFSET(1)], @null IS NULL, ARRAY_LENGTH(@none), @S")
	hostile := "'; DROP TABLE x; -- \\ \" \x00 é"
	q.Parameters = []bigquery.QueryParameter{
		{Name: "s", Value: hostile}, {Name: "i", Value: int64(-5)}, {Name: "f", Value: 1.5}, {Name: "b", Value: true}, {Name: "y", Value: []byte{0, 255}},
		{Name: "d", Value: civil.DateOf(stamp)}, {Name: "t", Value: civil.TimeOf(stamp)}, {Name: "dt", Value: civil.DateTimeOf(stamp)}, {Name: "ts", Value: stamp},
		{Name: "n", Value: big.NewRat(5, 4)}, {Name: "list", Value: []string{"a", hostile}},
		{Name: "st", Value: struct {
			Name string   `bigquery:"name"`
			Tags []string `bigquery:"tags"`
		}{"x", []string{"p", "q"}}},
		{Name: "null", Value: bigquery.NullString{}}, {Name: "none", Value: []int64{}},
	}
	it, err := q.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	row := all(t, it)[0]
	want := []bigquery.Value{hostile, int64(-5), 1.5, true, []byte{0, 255}, civil.DateOf(stamp), civil.TimeOf(stamp), civil.DateTimeOf(stamp), stamp,
		big.NewRat(5, 4), []bigquery.Value{"a", hostile}, "x", "q", true, int64(0), hostile}
	for i := range want {
		if diff := cmp.Diff(fmt.Sprint(want[i]), fmt.Sprint(row[i])); diff != "" {
			t.Errorf("parameter %d (-want +got):\n%s", i, diff)
		}
	}
	q = s.client.Query("SELECT ? || ?, ?")
	q.Parameters = []bigquery.QueryParameter{{Value: "a"}, {Value: "b"}, {Value: int64(3)}}
	if it, err = q.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if row := all(t, it)[0]; row[0] != "ab" || row[1] != int64(3) {
		t.Errorf("positional: %v", row)
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

func TestRowRestriction(t *testing.T) {
	s := start(t)
	s.words(1000)
	read, err := bqstorage.NewBigQueryReadClient(t.Context(), s.GRPCClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	session := func(restriction string) (*storagepb.ReadSession, error) {
		return read.CreateReadSession(t.Context(), &storagepb.CreateReadSessionRequest{Parent: "projects/p", ReadSession: &storagepb.ReadSession{
			Table: "projects/p/datasets/d/tables/words", DataFormat: storagepb.DataFormat_ARROW,
			ReadOptions: &storagepb.ReadSession_TableReadOptions{RowRestriction: restriction, SelectedFields: []string{"word"}},
		}})
	}
	count := func(stream string, offset int64) int64 {
		call, err := read.ReadRows(t.Context(), &storagepb.ReadRowsRequest{ReadStream: stream, Offset: offset})
		if err != nil {
			t.Fatal(err)
		}
		rows := int64(0)
		for {
			r, err := call.Recv()
			if errors.Is(err, io.EOF) {
				return rows
			}
			if err != nil {
				t.Fatal(err)
			}
			rows += r.RowCount
		}
	}
	t.Run("LBQ-136 matching rows only, NULL is no match", func(t *testing.T) {
		r, err := session("word_count > 100")
		if err != nil {
			t.Fatal(err)
		}
		if got := count(r.Streams[0].Name, 0); got != 810 {
			t.Errorf("%d rows, want 810", got)
		}
		if got := count(r.Streams[0].Name, 800); got != 10 {
			t.Errorf("%d rows from 800 on, want 10", got)
		}
		if r.EstimatedRowCount != 1000 {
			t.Errorf("estimated %d rows, which is before the restriction", r.EstimatedRowCount)
		}
	})
	for restriction, want := range map[string]string{
		"word_count >":            "request failed: Syntax error: Unexpected end of script at [1:13]",
		"COUNT(*) > 1":            "request failed: Aggregate function COUNT not allowed in a row restriction at [1:1]",
		"word IN (SELECT 'word')": "request failed: Subqueries are not allowed in a row restriction at [1:10]",
		"nothing = 1":             "request failed: Unrecognized name: nothing at [1:1]",
	} {
		if _, err := session(restriction); status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != want {
			t.Errorf("%s\n got %v\nwant %s", restriction, err, want)
		}
	}
}

func TestViewsOverREST(t *testing.T) {
	s := start(t)
	s.words(5)
	view := s.client.Dataset("d").Table("v")
	if err := view.Create(t.Context(), &bigquery.TableMetadata{ViewQuery: "SELECT word, word_count * 2 AS twice FROM words"}); err != nil {
		t.Fatal(err)
	}
	md, err := view.Metadata(t.Context())
	if err != nil || md.Type != bigquery.ViewTable || len(md.Schema) != 2 || md.Schema[1].Name != "twice" || md.Schema[1].Type != bigquery.IntegerFieldType {
		t.Errorf("%+v, %v", md, err)
	}
	if got := s.query("SELECT SUM(twice) FROM d.v"); got[0][0] != int64(30) {
		t.Errorf("got %v", got)
	}
	if err := s.client.Dataset("d").Table("w").Create(t.Context(), &bigquery.TableMetadata{ViewQuery: "SELECT nope FROM words"}); err == nil {
		t.Error("a view of a column that is not there was made")
	} else if e, ok := errors.AsType[*googleapi.Error](err); !ok || e.Errors[0].Reason != "invalidQuery" {
		t.Errorf("got %v", err)
	}
	for _, materialized := range []bool{false, true} {
		t.Run("LBQ-132 views cannot be read by session", func(t *testing.T) {
			name := fmt.Sprintf("m%v", materialized)
			md := &bigquery.TableMetadata{ViewQuery: "SELECT 1 AS n"}
			if materialized {
				md = &bigquery.TableMetadata{MaterializedView: &bigquery.MaterializedViewDefinition{Query: "SELECT 1 AS n"}}
			}
			if err := s.client.Dataset("d").Table(name).Create(t.Context(), md); err != nil {
				t.Fatal(err)
			}
			read, err := bqstorage.NewBigQueryReadClient(t.Context(), s.GRPCClientOptions()...)
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			_, err = read.CreateReadSession(t.Context(), &storagepb.CreateReadSessionRequest{Parent: "projects/p", ReadSession: &storagepb.ReadSession{
				Table: "projects/p/datasets/d/tables/" + name, DataFormat: storagepb.DataFormat_AVRO,
			}})
			if status.Convert(err).Message() != "request failed: non-table entities cannot be read with the storage API" {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTimeTravel(t *testing.T) {
	s := start(t)
	s.words(2)
	s.clock.Advance(time.Hour)
	q := s.client.Query("SELECT 'late' AS word, 1 AS word_count")
	q.Dst, q.WriteDisposition = s.client.Dataset("d").Table("words"), bigquery.WriteAppend
	job, err := q.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if status, err := job.Wait(t.Context()); err != nil || status.Err() != nil {
		t.Fatal(err, status.Err())
	}
	s.clock.Advance(time.Minute)
	if got := s.query("SELECT COUNT(*) FROM d.words FOR SYSTEM_TIME AS OF TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL 30 MINUTE)"); got[0][0] != int64(2) {
		t.Errorf("half an hour ago: %v", got)
	}
	if got := s.query("SELECT COUNT(*) FROM d.words"); got[0][0] != int64(3) {
		t.Errorf("now: %v", got)
	}
	// A job's rows are in a snapshot at its end (LBQ-133).
	end := job.LastStatus().Statistics.EndTime
	if got := s.query(fmt.Sprintf("SELECT COUNT(*) FROM d.words FOR SYSTEM_TIME AS OF TIMESTAMP_MILLIS(%d)", end.UnixMilli())); got[0][0] != int64(3) {
		t.Errorf("at the job's end: %v", got)
	}
}

func TestPartitions(t *testing.T) {
	s := start(t)
	if err := s.client.Dataset("d").Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	create := func(name string, md *bigquery.TableMetadata) {
		t.Helper()
		md.Schema = bigquery.Schema{{Name: "day", Type: bigquery.DateFieldType}, {Name: "n", Type: bigquery.IntegerFieldType}}
		if err := s.client.Dataset("d").Table(name).Create(t.Context(), md); err != nil {
			t.Fatal(err)
		}
	}
	fill := func(name, sql string) {
		t.Helper()
		q := s.client.Query(sql)
		q.Dst, q.WriteDisposition = s.client.Dataset("d").Table(name), bigquery.WriteAppend
		job, err := q.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := job.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := job.LastStatus().Err(); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("a filter that a table requires", func(t *testing.T) {
		create("strict", &bigquery.TableMetadata{TimePartitioning: &bigquery.TimePartitioning{Field: "day"}, RequirePartitionFilter: true})
		fill("strict", "SELECT DATE '2020-01-01' AS day, 1 AS n")
		for sql, refused := range map[string]bool{
			"SELECT n FROM d.strict": true, "SELECT n FROM d.strict WHERE n = 1": true, "SELECT day FROM d.strict WHERE n = 1": true,
			"SELECT n FROM d.strict WHERE day = '2020-01-01'": false, "SELECT n FROM (SELECT * FROM d.strict) WHERE day > '2019-01-01'": false,
			"SELECT a.n FROM (SELECT 1 AS n) AS a JOIN d.strict AS b ON a.n = b.n AND b.day < '2021-01-01'": false,
		} {
			_, err := s.client.Query(sql).Read(t.Context())
			if (err != nil) != refused {
				t.Errorf("%s: %v", sql, err)
			} else if err != nil && !strings.Contains(err.Error(), "Cannot query over table 'p.d.strict' without a filter over column(s) 'day' that can be used for partition elimination") {
				t.Errorf("%s: %v", sql, err)
			}
		}
	})
	t.Run("LBQ-137 partitions by ingestion time", func(t *testing.T) {
		create("arrived", &bigquery.TableMetadata{TimePartitioning: &bigquery.TimePartitioning{}})
		for n := range 3 {
			fill("arrived", fmt.Sprintf("SELECT CAST(NULL AS DATE) AS day, %d AS n UNION ALL SELECT NULL, %d", 2*n, 2*n+1))
			s.clock.Advance(24 * time.Hour)
		}
		if got := fmt.Sprint(s.query("SELECT n FROM d.arrived WHERE _PARTITIONDATE > '2026-01-01' AND _PARTITIONTIME < TIMESTAMP '2026-01-03' ORDER BY n")); got != "[[2] [3]]" {
			t.Errorf("got %s", got)
		}
		if got := fmt.Sprint(s.query("SELECT * FROM d.arrived ORDER BY n LIMIT 1")); got != "[[<nil> 0]]" {
			t.Errorf("* has more than the columns: %s", got)
		}
		read, err := bqstorage.NewBigQueryReadClient(t.Context(), s.GRPCClientOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		defer read.Close()
		session, err := read.CreateReadSession(t.Context(), &storagepb.CreateReadSessionRequest{Parent: "projects/p", ReadSession: &storagepb.ReadSession{
			Table: "projects/p/datasets/d/tables/arrived", DataFormat: storagepb.DataFormat_AVRO,
			ReadOptions: &storagepb.ReadSession_TableReadOptions{RowRestriction: `_PARTITIONDATE > "2026-01-01"`},
		}})
		if err != nil {
			t.Fatal(err)
		}
		call, err := read.ReadRows(t.Context(), &storagepb.ReadRowsRequest{ReadStream: session.Streams[0].Name})
		if err != nil {
			t.Fatal(err)
		}
		r, err := call.Recv()
		if err != nil || r.RowCount != 4 {
			t.Errorf("%d rows, %v", r.GetRowCount(), err)
		}
		if _, err := call.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("the stream goes on: %v", err)
		}
	})
}
