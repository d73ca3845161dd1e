//go:build cgo

package duckdb_test

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigquery"
	bqstorage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"cloud.google.com/go/civil"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/localbq"
)

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
		for page := range 4 {
			token, more := at(answer, "pageToken").(string)
			if more != (page < 3) || len(at(answer, "rows").([]any)) != 25 || at(answer, "totalRows") != "100" {
				t.Fatalf("page %d: %s", page, text(answer))
			}
			for _, r := range at(answer, "rows").([]any) {
				got = append(got, text(at(r, "f")))
			}
			if more {
				_, answer = s.do("GET", "/queries/"+id+"?maxResults=25&pageToken="+token, "", "")
			}
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
			`{"configuration": {"query": {"query": "SELECT 1"}}}`:                                                                              "local BigQuery does not implement legacy SQL: set useLegacySql to false, because BigQuery takes its absence for true",
			`{"configuration": {"query": {"query": "SELECT 1", "useLegacySql": false, "createSession": true}}}`:                                "local BigQuery does not implement job.configuration.query.createSession",
			`{"configuration": {"query": {"query": "SELECT 1", "useLegacySql": false, "connectionProperties": [{"key": "x", "value": "y"}]}}}`: "local BigQuery does not implement job.configuration.query.connectionProperties",
		} {
			code, answer := s.do("POST", "/jobs", body, "")
			if code != 501 || at(answer, "error", "message") != want {
				t.Errorf("%s: %d %s", body, code, text(answer))
			}
		}
		code, answer := s.do("POST", "/queries", `{"query": "BEGIN TRANSACTION", "useLegacySql": false}`, "")
		if code != 400 || at(answer, "error", "message") != "Not supported by local BigQuery: BEGIN statements at [1:1]" {
			t.Errorf("%d %s", code, text(answer))
		}
	})
}

func TestAnonymousResults(t *testing.T) {
	t.Run("LBQ-157 LBQ-160 readable by a session of whoever asked, for a day", func(t *testing.T) {
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
		call, err := read.ReadRows(t.Context(), &storagepb.ReadRowsRequest{ReadStream: session.Streams[0].Name})
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := call.Recv(); err != nil || answer.RowCount != 3 || string(answer.GetAvroRows().GetSerializedBinaryRows()) != "\x02\x02\x02\x04\x02\x06" {
			t.Errorf("rows %v, %v", answer, err)
		}
		if _, err := call.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("behind the rows: %v", err)
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

func TestDroppedResult(t *testing.T) {
	s := start(t)
	s.insert("q", "", "SELECT n FROM UNNEST([1, 2, 3]) AS n", "")
	drop := func(job string) localbq.Fault {
		return localbq.Fault{Match: localbq.FaultMatch{Method: "datasets.list"}, Action: localbq.FaultAction{
			State: []localbq.FaultState{{Do: localbq.FaultDropResult, Job: job}}}}
	}
	if err := s.Faults().Add(drop("q"), drop("nosuch")); err != nil {
		t.Fatal(err)
	}
	s.do("GET", "/datasets", "", "")
	if code, _ := s.do("GET", "/queries/q", "", ""); code != 404 {
		t.Errorf("the results: %d", code)
	}
	if code, job := s.do("GET", "/jobs/q", "", ""); code != 200 || at(job, "status", "state") != "DONE" {
		t.Errorf("the job: %d %s", code, text(job))
	}
	rules := s.Faults().List()
	if len(rules[0].Failed) != 0 || len(rules[1].Failed) != 1 || !strings.Contains(rules[1].Failed[0], `job "nosuch"`) {
		t.Errorf("rules %+v", rules)
	}
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
