//go:build cgo

package bigquery

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/duckdb"
	"github.com/millrace-dev/millrace/stream"
)

// queries is a local service that runs queries, with 3 rows in p.d.t.
type queries struct {
	*local
	rest *bqrest.Service
}

func startQueries(t *testing.T) *queries {
	t.Helper()
	return startQueriesAt(t, nil)
}

func startQueriesAt(t *testing.T, clock localbq.Clock) *queries {
	t.Helper()
	engine, err := duckdb.New()
	if err != nil {
		t.Fatal(err)
	}
	l := startLocal(t, localbq.Config{Queries: engine, Clock: clock})
	l.write(t, idName, idDocs(3)...)
	rest, err := l.connection.REST(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rest.Close)
	return &queries{l, rest.Service}
}

func (q *queries) dataset(t *testing.T, name, location string) {
	t.Helper()
	d := &bqrest.Dataset{DatasetReference: &bqrest.DatasetReference{ProjectId: "p", DatasetId: name}, Location: location}
	if _, err := q.rest.Datasets.Insert("p", d).Do(); err != nil {
		t.Fatal(err)
	}
}

// run runs a statement that has no result to read.
func (q *queries) run(t *testing.T, sql string) {
	t.Helper()
	if _, err := q.rest.Jobs.Query("p", &bqrest.QueryRequest{Query: sql, UseLegacySql: new(false), TimeoutMs: 60_000}).Do(); err != nil {
		t.Fatal(err)
	}
}

func (q *queries) source(t *testing.T, in Input, o SourceOptions) *Source[string] {
	t.Helper()
	o.Connection = q.connection
	src, err := NewSource(in, jsonrow.NewDeserializer(func(doc []byte) string { return string(doc) }, jsonrow.WriteOptions{}), o)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// attempt plans the read of a job and ends before a checkpoint, as a process does that is killed.
func (q *queries) attempt(t *testing.T, src *Source[string]) error {
	t.Helper()
	woken := make(chan struct{}, 1)
	e, err := src.NewEnumerator(t.Context(), stream.EnumeratorContext{Job: "nightly", Lanes: 1,
		Wake: func() { woken <- struct{}{} }, Meter: stream.NoMeter, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	<-woken
	_, err = e.Next(0)
	return errors.Join(err, e.Close())
}

// jobs are the query jobs of sources so far, the newest first.
func (q *queries) jobs(t *testing.T) (all []*bqrest.Job) {
	t.Helper()
	list, err := q.rest.Jobs.List("p").Projection("full").Do()
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range list.Jobs {
		if strings.HasPrefix(j.JobReference.JobId, "millrace_bigquery_source_") {
			full, err := q.rest.Jobs.Get("p", j.JobReference.JobId).Location(j.JobReference.Location).Do()
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, full)
		}
	}
	return all
}

func result(j *bqrest.Job) *bqrest.TableReference { return j.Configuration.Query.DestinationTable }

var reused = SourceOptions{QueryLocation: "US", ReuseQueryResultWithin: 12 * time.Hour}

func TestSourceLocalQueryLanding(t *testing.T) {
	t.Parallel()
	q := startQueries(t)
	q.dataset(t, "scratch", "US")
	for name, dataset := range map[string]string{"SRC-63 anonymous": "", "SRC-64 named": "scratch"} {
		t.Run(name, func(t *testing.T) {
			src := q.source(t, FromQuery("p", "SELECT id FROM d.t WHERE id > 0"), SourceOptions{QueryResultDataset: dataset})
			if got := read(t, src); len(got) != 2 || got[0] != `{"id":1}` {
				t.Errorf("got %v", got)
			}
			job := q.jobs(t)[0]
			to := result(job)
			if dataset == "" && (to == nil || to.DatasetId == "scratch" || to.DatasetId == "d") || dataset != "" && (to.DatasetId != dataset || to.TableId != job.JobReference.JobId) {
				t.Errorf("the result is in %+v", to)
			}
			if dataset == "" {
				return
			}
			left, err := q.rest.Tables.Get(to.ProjectId, to.DatasetId, to.TableId).Do()
			if err != nil {
				t.Fatal(err)
			}
			if life := time.Until(time.UnixMilli(left.ExpirationTime)); life < 23*time.Hour || life > 24*time.Hour {
				t.Errorf("the result is kept for %v", life)
			}
		})
	}
	t.Run("parameters", func(t *testing.T) {
		src := q.source(t, FromQuery("p", "SELECT id, @s AS s FROM d.t WHERE id IN UNNEST(@ids)"), SourceOptions{QueryPriority: QueryBatch, QueryParameters: []QueryParameter{
			{Name: "ids", Type: "INT64", Values: []string{"1", "7"}}, {Name: "s", Type: "STRING", Value: new("`; DROP TABLE d.t; --")}}})
		if got := read(t, src); len(got) != 1 || got[0] != "{\"id\":1,\"s\":\"`; DROP TABLE d.t; --\"}" {
			t.Errorf("got %v", got)
		}
	})
}

func TestSourceLocalViews(t *testing.T) {
	t.Parallel()
	q := startQueries(t)
	q.run(t, "CREATE VIEW d.v AS SELECT * FROM d.t WHERE id < 2")
	q.run(t, "CREATE MATERIALIZED VIEW d.mv AS SELECT name, COUNT(*) AS n FROM d.t GROUP BY name")
	view := func(name string) Input {
		return FromTable(table.Destination{Project: "p", Dataset: "d", Table: name})
	}
	for _, c := range []struct {
		name, view string
		o          SourceOptions
		want       []string
	}{
		{"SRC-59 a view", "v", SourceOptions{}, idDocs(2)},
		{"SRC-59 a materialized view", "mv", SourceOptions{SelectedFields: []string{"n"}}, []string{`{"n":1}`, `{"n":1}`, `{"n":1}`}},
		{"SRC-59 a table", "t", SourceOptions{}, idDocs(3)},
		{"SRC-62 members and a restriction", "v", SourceOptions{SelectedFields: []string{"st.x", "id"}, RowRestriction: "id = 1"}, []string{`{"st":{"x":1},"id":1}`}},
		{"a limit", "v", SourceOptions{Limit: 1}, idDocs(1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.MaterializeViews = true
			got := read(t, q.source(t, view(c.view), c.o))
			if len(got) != len(c.want) || c.o.Limit == 0 && fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	t.Run("SRC-58 a view that is not expected", func(t *testing.T) {
		_, err := q.source(t, view("v"), SourceOptions{}).Session(t.Context())
		if err == nil || !strings.Contains(err.Error(), "MaterializeViews") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("SRC-60 none", func(t *testing.T) {
		_, err := q.source(t, view("none"), SourceOptions{MaterializeViews: true}).Session(t.Context())
		if err == nil || !strings.Contains(err.Error(), "p.d.none does not exist") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("hostile columns", func(t *testing.T) {
		for _, name := range []string{"id`, (SELECT 1) AS `x", "id` FROM d.t; DROP TABLE d.t; --", "id\n", "id -- ", "id/*", "id\x00", `id\`, "id'", "*"} {
			src := q.source(t, view("v"), SourceOptions{MaterializeViews: true, SelectedFields: []string{name}})
			if got, err := src.Session(t.Context()); err == nil {
				t.Errorf("%q is read as %v", name, got.Schema().Fields)
			}
		}
		if n, err := q.NumRows("d.t"); err != nil || n != 3 {
			t.Errorf("%d rows are left: %v", n, err)
		}
	})
}

func TestSourceLocalQueryReuse(t *testing.T) {
	t.Parallel()
	input := FromQuery("p", "SELECT id FROM d.t")
	t.Run("SRC-71 a kill before the first checkpoint", func(t *testing.T) {
		t.Parallel()
		q := startQueries(t)
		for range 3 {
			if err := q.attempt(t, q.source(t, input, reused)); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(q.jobs(t)); n != 1 {
			t.Errorf("%d query jobs", n)
		}
	})
	t.Run("without a window each attempt runs the query", func(t *testing.T) {
		t.Parallel()
		q := startQueries(t)
		for range 2 {
			if err := q.attempt(t, q.source(t, input, SourceOptions{})); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(q.jobs(t)); n != 2 {
			t.Errorf("%d query jobs", n)
		}
	})
	for name, dataset := range map[string]string{"SRC-71 the result has expired": "scratch", "SRC-71 an anonymous result has expired": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := localbq.NewManualClock() // of the service alone
			clock.Advance(time.Since(clock.Now()))
			q := startQueriesAt(t, clock)
			q.dataset(t, "scratch", "US")
			o := reused
			o.QueryResultDataset = dataset
			if err := q.attempt(t, q.source(t, input, o)); err != nil {
				t.Fatal(err)
			}
			first := q.jobs(t)[0]
			if err := q.attempt(t, q.source(t, input, o)); err != nil || len(q.jobs(t)) != 1 {
				t.Fatalf("%d jobs before it has: %v", len(q.jobs(t)), err)
			}
			life := 24 * time.Hour
			if to := result(first); dataset != "" { // less is left of it, so that what is made anew outlives it
				life = time.Hour
				sooner := &bqrest.Table{ExpirationTime: clock.Now().Add(life).UnixMilli()}
				if _, err := q.rest.Tables.Patch("p", to.DatasetId, to.TableId, sooner).Do(); err != nil {
					t.Fatal(err)
				}
			}
			clock.Advance(life + time.Minute)
			if err := q.attempt(t, q.source(t, input, o)); err != nil {
				t.Fatal(err)
			}
			if jobs := q.jobs(t); len(jobs) != 2 || jobs[0].JobReference.JobId != first.JobReference.JobId+"_r1" {
				t.Errorf("%d jobs, the newest %s", len(jobs), jobs[0].JobReference.JobId)
			}
		})
	}
	t.Run("SRC-71 a failed job is passed", func(t *testing.T) {
		t.Parallel()
		q := startQueries(t)
		later := FromQuery("p", "SELECT id FROM d.later")
		err := q.attempt(t, q.source(t, later, reused))
		if e, ok := errors.AsType[*QueryJobError](err); !ok || e.Reason != "notFound" {
			t.Fatalf("got %v", err)
		}
		q.run(t, "CREATE TABLE d.later AS SELECT 7 AS id")
		if err := q.attempt(t, q.source(t, later, reused)); err != nil {
			t.Fatal(err)
		}
		if jobs := q.jobs(t); len(jobs) != 2 || !strings.HasSuffix(jobs[0].JobReference.JobId, "_r1") {
			t.Errorf("%d jobs", len(jobs))
		}
	})
	t.Run("a wrong location is explained", func(t *testing.T) {
		t.Parallel()
		q := startQueries(t)
		o := reused
		o.QueryLocation = "EU"
		err := q.attempt(t, q.source(t, input, o))
		if err == nil || !strings.Contains(err.Error(), "the query ran in EU, as QueryLocation says") {
			t.Errorf("got %v", err)
		}
		q.dataset(t, "elsewhere", "europe-west1")
		_, err = q.source(t, input, SourceOptions{QueryResultDataset: "elsewhere"}).Session(t.Context())
		if err == nil || !strings.Contains(err.Error(), "set QueryLocation") {
			t.Errorf("got %v", err)
		}
	})
}

func TestSourceLocalExplains(t *testing.T) {
	t.Parallel()
	q := startQueries(t)
	t.Run("time travel", func(t *testing.T) {
		_, err := q.local.source(t, SourceOptions{SnapshotTime: time.Now().Add(-8 * 24 * time.Hour)}).Session(t.Context())
		if err == nil || !strings.Contains(err.Error(), "earlier versions are kept") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("permissions", func(t *testing.T) {
		if err := q.SetDenials(localbq.Denial{Permission: "bigquery.readsessions.create"}, localbq.Denial{Permission: "bigquery.jobs.create"}); err != nil {
			t.Fatal(err)
		}
		_, table := q.local.source(t, SourceOptions{}).Session(t.Context())
		_, query := q.source(t, FromQuery("p", "SELECT 1"), SourceOptions{}).Session(t.Context())
		if table == nil || !strings.Contains(table.Error(), "permission bigquery.readsessions.create in the project p") ||
			query == nil || !strings.Contains(query.Error(), "bigquery.jobs.create in the project p") {
			t.Errorf("got %v and %v", table, query)
		}
	})
}

func TestSourceLocalPartitions(t *testing.T) {
	t.Parallel()
	q := startQueries(t)
	q.run(t, "CREATE TABLE d.day (id INT64, day DATE) PARTITION BY day")
	q.run(t, "INSERT d.day (id, day) VALUES (1, '2026-12-31'), (2, '2026-12-31'), (3, '2027-01-01'), (4, NULL)")
	q.run(t, "CREATE TABLE d.range (id INT64) PARTITION BY RANGE_BUCKET(id, GENERATE_ARRAY(0, 100, 10))")
	q.run(t, "INSERT d.range (id) VALUES (19), (20), (29), (30)")
	of := func(name string) table.Destination {
		return table.Destination{Project: "p", Dataset: "d", Table: name}
	}
	list, err := ListPartitions(t.Context(), q.connection, "p", of("day"))
	if err != nil || fmt.Sprint(list) != "[{20261231 2} {20270101 1} {__NULL__ 1}]" {
		t.Errorf("listed %v: %v", list, err)
	}
	for _, name := range []string{"t", "none", "d' OR TRUE --"} {
		if list, err := ListPartitions(t.Context(), q.connection, "p", of(name)); len(list) != 0 {
			t.Errorf("%s: listed %v: %v", name, list, err)
		}
	}
	for _, c := range []struct {
		name, table string
		o           SourceOptions
		want        string
	}{
		{"SRC-93 a day", "day", SourceOptions{Partitions: []string{"20261231"}}, `[{"id":1} {"id":2}]`},
		{"SRC-93 two days with a restriction", "day", SourceOptions{Partitions: []string{"20261231", "20270101"}, RowRestriction: "id > 1 -- ours"}, `[{"id":2} {"id":3}]`},
		{"SRC-93 NULL", "day", SourceOptions{Partitions: []string{"__NULL__"}}, `[{"id":4}]`},
		{"SRC-93 a range", "range", SourceOptions{Partitions: []string{"20"}}, `[{"id":20} {"id":29}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.SelectedFields = []string{"id"}
			if got := read(t, q.source(t, FromTable(of(c.table)), c.o)); fmt.Sprint(got) != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
		})
	}
	for name, o := range map[string]SourceOptions{
		"20261231": {Partitions: []string{"2026"}}, "cannot be asked for together": {Partitions: []string{"20261231"}, RowRestriction: "id > 1) OR (TRUE"},
	} {
		_, err := q.source(t, FromTable(of("day")), o).Session(t.Context())
		p, ok := errors.AsType[*PlanError](err)
		if !ok || !p.Permanent() || !strings.Contains(err.Error(), name) && !strings.Contains(err.Error(), "no partition of the table") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := q.source(t, FromTable(of("t")), SourceOptions{Partitions: []string{"20261231"}}).Session(t.Context()); err == nil || !strings.Contains(err.Error(), "not partitioned") {
		t.Errorf("got %v", err)
	}
}

func TestInputSchema(t *testing.T) {
	t.Parallel()
	q := startQueries(t)
	q.run(t, "CREATE VIEW d.v AS SELECT id, name FROM d.t")
	of := func(name string) Input {
		return FromTable(table.Destination{Project: "p", Dataset: "d", Table: name})
	}
	for _, c := range []struct {
		name string
		from Input
		o    SourceOptions
		want string
	}{
		{"a table", of("t"), SourceOptions{}, "id INT64, st STRUCT.x.y, name STRING"},
		{"columns", of("t"), SourceOptions{SelectedFields: []string{"NAME", "st.y"}}, "st STRUCT.y, name STRING"},
		{"a column and its member", of("t"), SourceOptions{SelectedFields: []string{"st.y", "st"}}, "st STRUCT.x.y"},
		{"no such column", of("t"), SourceOptions{SelectedFields: []string{"st.z"}}, `!there is no column "st.z"`},
		{"a view", of("v"), SourceOptions{MaterializeViews: true}, "id INT64, name STRING"},
		{"a query", FromQuery("p", "SELECT name AS n, @x AS x FROM d.t"), SourceOptions{QueryResultDataset: "d", QueryParameters: []QueryParameter{{Name: "x", Type: "DATE"}}}, "n STRING, x DATE"},
		{"a query that is wrong", FromQuery("p", "SELEKT 1"), SourceOptions{}, "!ask for the columns of the query SELEKT 1"},
		{"no table", of("none"), SourceOptions{}, "!does not exist"},
		{"options that are wrong", of("t"), SourceOptions{Limit: -1}, "!Limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Connection = q.connection
			s, err := InputSchema(t.Context(), c.from, c.o)
			if want, fails := strings.CutPrefix(c.want, "!"); fails {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v", err)
				}
				return
			}
			var got []string
			if err != nil {
				t.Fatal(err)
			}
			for i := range s.Fields {
				f := &s.Fields[i]
				text := f.Name + " " + f.TypeText()
				for k := range f.Fields {
					text += "." + f.Fields[k].Name
				}
				got = append(got, text)
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("got %s, want %s", text, c.want)
			}
		})
	}
}
