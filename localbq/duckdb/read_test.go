//go:build cgo

package duckdb_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigquery"
	bqstorage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/api/googleapi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

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
