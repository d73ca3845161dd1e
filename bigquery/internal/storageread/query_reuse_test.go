package storageread

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/stream"
)

func TestQueryIdentity(t *testing.T) {
	t.Parallel()
	id := func(name string, change func(*Query)) string {
		q := &Query{Project: "p", SQL: "SELECT 1", Location: "US", ReuseWithin: time.Hour}
		if change != nil {
			change(q)
		}
		return q.base(name, q.bucket(testNow))
	}
	const base = "millrace_bigquery_source_pipeline_d4fe5fd350d5850e_487428"
	for _, c := range []struct{ name, got, want string }{
		{"SRC-68 golden", id("pipeline", nil), base},
		{"SRC-68 a dataset", id("pipeline", func(q *Query) { q.Landing = Landing{"p", "scratch", DefaultExpiration} }),
			"millrace_bigquery_source_pipeline_00f7ec444b57a268_487428"},
		{"SRC-68 a blank in the name", id("my job", nil), "millrace_bigquery_source_my_job_9a6dfb930ab58016_487428"},
		{"SRC-68 a hyphen in the name", id("my-job", nil), "millrace_bigquery_source_my_job_b1f7c49411f7ebf2_487428"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("got %s, want %s", c.got, c.want)
			}
		})
	}
	t.Run("SRC-68 five minutes later", func(t *testing.T) {
		q := &Query{Project: "p", SQL: "SELECT 1", Location: "US", ReuseWithin: time.Hour}
		if got := q.base("pipeline", q.bucket(testNow.Add(5*time.Minute))); got != base {
			t.Errorf("got %s", got)
		}
	})
	t.Run("SRC-68 windows of two lengths may have one number", func(t *testing.T) {
		noon := time.UnixMilli(0).Add(12 * time.Hour)
		ten, eleven := &Query{ReuseWithin: 10 * time.Hour}, &Query{ReuseWithin: 11 * time.Hour}
		if ten.bucket(noon) != 1 || eleven.bucket(noon) != 1 || ten.base("j", 1) == eleven.base("j", 1) {
			t.Errorf("%s and %s", ten.base("j", ten.bucket(noon)), eleven.base("j", eleven.bucket(noon)))
		}
	})
	t.Run("SRC-68 what is not the default follows, in order", func(t *testing.T) {
		q := &Query{Project: "p", SQL: "SELECT 1", ReuseWithin: time.Hour, Batch: true, Landing: Landing{"other", "scratch", 7 * time.Hour},
			Parameters: []QueryParameter{{Name: "a", Type: "STRING", Value: new("x")}}}
		fields := "8:pipeline" + "8:SELECT 1" + "1:p" + "-:" + "7:scratch" + "7:3600000" +
			"19:resultProject=other" + "21:expirationMs=25200000" + "14:priority=batch" + `53:parameters=[{"name":"a","type":"STRING","value":"x"}]`
		sum := sha256.Sum256([]byte(fields))
		if got, want := q.digest("pipeline"), hex.EncodeToString(sum[:8]); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("what changes a run changes its id", func(t *testing.T) {
		seen := map[string]int{}
		for i, change := range []func(*Query){
			nil,
			func(q *Query) { q.SQL = "SELECT 2" },
			func(q *Query) { q.Location = "" },
			func(q *Query) { q.Location = "EU" },
			func(q *Query) { q.Batch = true },
			func(q *Query) { q.Landing = Landing{"p", "scratch", DefaultExpiration} },
			func(q *Query) { q.Landing = Landing{"other", "scratch", DefaultExpiration} },
			func(q *Query) { q.Landing = Landing{"p", "scratch", 7 * time.Hour} },
			func(q *Query) { q.Parameters = []QueryParameter{{Name: "a", Type: "STRING", Value: new("x")}} },
			func(q *Query) { q.Parameters = []QueryParameter{{Name: "a", Type: "STRING"}} },
			func(q *Query) { q.Parameters = []QueryParameter{{Name: "a", Type: "STRING", Value: new("")}} },
			func(q *Query) { q.Parameters = []QueryParameter{{Name: "a", Type: "STRING", Values: []string{"x"}}} },
		} {
			got := id("pipeline", change)
			if old, ok := seen[got]; ok {
				t.Errorf("queries %d and %d are one", i, old)
			}
			seen[got] = i
		}
	})
	for name, hostile := range map[string]string{
		"SRC-69 300 CJK runes": strings.Repeat("漢", 300), "SRC-69 quotes and a path": "a`b'c\"d\n../e\x00;--", "SRC-69 not UTF-8": "\xff\xfe", "SRC-69 long": strings.Repeat("x", 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			got := id(hostile, nil)
			if !regexp.MustCompile(`^[A-Za-z0-9_]+$`).MatchString(got) || len(got) >= 200 {
				t.Errorf("got %d bytes: %q", len(got), got)
			}
		})
	}
}

// reusing makes a query that is reused for an hour.
func reusing(script ...answer) *queryTest { return &queryTest{jobs: &fakeJobs{script: script}} }

// calls are what was called, short: insert, current, _r1, before, table.
func (q *queryTest) asked(t *testing.T) string {
	t.Helper()
	current := (&Query{Project: "bill", SQL: "SELECT 1", Location: "EU", ReuseWithin: time.Hour}).base("pipeline", 487428)
	before := strings.TrimSuffix(current, "8") + "7"
	var out []string
	for _, call := range q.jobs.calls {
		call = strings.NewReplacer("/bigquery/v2/projects/bill/", "", "?location=EU", "", current, "current", before, "before").Replace(call)
		out = append(out, strings.NewReplacer("GET jobs/", "", "POST jobs", "insert", "GET datasets/_anon/tables/", "table ").Replace(call))
	}
	return strings.Join(out, ", ")
}

func TestQueryReuse(t *testing.T) {
	t.Parallel()
	const ok = "bill._anon.anon1"
	done := answer{state: "DONE", table: "anon1", age: time.Minute}
	failed, running := answer{state: "DONE", reason: "backendError", age: time.Minute}, answer{state: "RUNNING", age: time.Minute}
	gone, there := answer{code: 404, reason: "notFound"}, answer{kind: "TABLE"}
	aged := func(a answer, age time.Duration) answer { a.age = age; return a }
	type want struct {
		calls                 string
		submitted, reattached int64
		err, warned           string
	}
	for _, c := range []struct {
		name   string
		script []answer
		want   want
	}{
		{"SRC-70 the job runs", []answer{running, running, done}, want{calls: "current, current, current", reattached: 1}},
		{"SRC-70 the job says nothing of its state", []answer{{}, done}, want{calls: "current, current", reattached: 1}},
		{"SRC-71 the job has a result", []answer{done, there, done}, want{calls: "current, table anon1, current", reattached: 1}},
		{"SRC-71 the result is gone", []answer{done, gone, gone, {}, done},
			want{calls: "current, table anon1, current_r1, insert, current_r1", submitted: 1, warned: "is gone"}},
		{"SRC-71 nobody knows of the result", []answer{done, {code: 403, reason: "accessDenied"}},
			want{calls: "current, table anon1", err: "look at the table " + ok}},
		{"failed jobs are passed", []answer{failed, failed, gone, {}, done},
			want{calls: "current, current_r1, current_r2, insert, current_r2", submitted: 1, warned: "has failed"}},
		{"SRC-72 six failures", []answer{failed, failed, failed, failed, failed, failed},
			want{calls: "current, current_r1, current_r2, current_r3, current_r4, current_r5", err: "backendError"}},
		{"a job of the window before ran and is not old", []answer{gone, aged(done, 59*time.Minute), there, done},
			want{calls: "current, before, table anon1, before", reattached: 1}},
		{"SRC-73 59 minutes old", []answer{gone, aged(done, 59*time.Minute), there, done}, want{calls: "current, before, table anon1, before", reattached: 1}},
		{"SRC-73 61 minutes old", []answer{gone, aged(done, 61*time.Minute), {}, done}, want{calls: "current, before, insert, current", submitted: 1}},
		{"SRC-73 of an unknown age", []answer{gone, aged(done, 0), {}, done}, want{calls: "current, before, insert, current", submitted: 1}},
		{"SRC-73 from the future", []answer{gone, aged(done, -time.Minute), there, done}, want{calls: "current, before, table anon1, before", reattached: 1}},
		{"the one before is gone, and the next of its window is not there", []answer{gone, done, gone, gone, {}, done},
			want{calls: "current, before, table anon1, before_r1, insert, current", submitted: 1}},
		{"SRC-74 the one before failed and was run again", []answer{gone, failed, running, done},
			want{calls: "current, before, before_r1, before_r1", reattached: 1}},
		{"nothing is there", []answer{gone, gone, {}, done}, want{calls: "current, before, insert, current", submitted: 1}},
		{"SRC-75 somebody was faster", []answer{gone, gone, {code: 409, reason: "duplicate"}, running, done},
			want{calls: "current, before, insert, current, current", reattached: 1}},
		{"SRC-75 somebody was faster and failed", []answer{gone, gone, {code: 409, reason: "duplicate"}, failed, gone, {}, done},
			want{calls: "current, before, insert, current, current_r1, insert, current_r1", submitted: 1}},
		{"SRC-75 nobody knows of whom", []answer{gone, gone, {code: 409, reason: "duplicate"}, {code: 403, reason: "accessDenied"}},
			want{calls: "current, before, insert, current", err: "has been used already\nlook at the query job"}},
		{"SRC-75 the id is used in another location", []answer{gone, gone, {code: 409, reason: "duplicate"}, gone},
			want{calls: "current, before, insert, current", err: `not in the location "EU"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			q := reusing(c.script...)
			conf, a := q.attempt(t, "EU")
			conf.Query.ReuseWithin = time.Hour
			got, err := conf.runQuery(t.Context(), a, conf.Query)
			switch {
			case c.want.err != "" && (err == nil || !strings.Contains(err.Error(), c.want.err)):
				t.Errorf("got %v, want %q", err, c.want.err)
			case c.want.err == "" && (err != nil || got.String() != ok):
				t.Errorf("got %s: %v", got, err)
			}
			if asked := q.asked(t); asked != c.want.calls {
				t.Errorf("called  %s\nwanted %s", asked, c.want.calls)
			}
			if !strings.Contains(q.log.at(slog.LevelWarn), c.want.warned) {
				t.Errorf("warned %q", q.log.at(slog.LevelWarn))
			}
			if told := strings.Contains(q.log.at(slog.LevelInfo), "using the query job of an earlier attempt"); told != (c.want.reattached > 0) {
				t.Errorf("told of a job that is used: %v: %s", told, q.log.at(slog.LevelInfo))
			}
			if s, r := q.meter.values[QueryJobsSubmitted.Name], q.meter.values[QueryJobsReattached.Name]; s != c.want.submitted || r != c.want.reattached {
				t.Errorf("submitted %d, reattached %d", s, r)
			}
		})
	}
	t.Run("SRC-72 the error names the first id", func(t *testing.T) {
		q := reusing(failed, failed, failed, failed, failed, failed)
		conf, a := q.attempt(t, "EU")
		conf.Query.ReuseWithin = time.Hour
		_, err := conf.runQuery(t.Context(), a, conf.Query)
		if base := conf.Query.base("pipeline", 487428); err == nil || !strings.Contains(err.Error(), base+",") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("SRC-76 no name", func(t *testing.T) {
		q := reusing(answer{}, done)
		conf, a := q.attempt(t, "EU")
		conf.Query.ReuseWithin, a.Job = time.Hour, ""
		if _, err := conf.runQuery(t.Context(), a, conf.Query); err != nil {
			t.Fatal(err)
		}
		if id := q.jobs.job.JobReference.JobId; !regexp.MustCompile(`^millrace_bigquery_source_[0-9a-f]{32}$`).MatchString(id) ||
			!strings.Contains(q.log.at(slog.LevelWarn), "has no name") {
			t.Errorf("submitted %s, warned %q", id, q.log.at(slog.LevelWarn))
		}
	})
}

func TestQueryLanding(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, script ...answer) *queryTest {
		q := reusing(script...)
		conf, a := q.attempt(t, "EU")
		conf.Query.Landing = Landing{Project: "bill", Dataset: "scratch", Expiration: DefaultExpiration}
		if _, err := conf.runQuery(t.Context(), a, conf.Query); err != nil {
			t.Fatal(err)
		}
		return q
	}
	t.Run("SRC-64 a dataset", func(t *testing.T) {
		q := run(t, answer{}, answer{state: "DONE", table: "x"}, answer{})
		c := q.jobs.job.Configuration.Query
		if d := c.DestinationTable; d == nil || d.ProjectId != "bill" || d.DatasetId != "scratch" || d.TableId != q.jobs.job.JobReference.JobId || c.WriteDisposition != "WRITE_TRUNCATE" {
			t.Errorf("submitted %+v", c)
		}
		patched := "PATCH /bigquery/v2/projects/bill/datasets/_anon/tables/x" // where the finished job says its result is
		if want := testNow.Add(24 * time.Hour).UnixMilli(); q.jobs.patch.ExpirationTime != want || q.jobs.calls[2] != patched {
			t.Errorf("%v: expires at %d, want %d", q.jobs.calls, q.jobs.patch.ExpirationTime, want)
		}
	})
	t.Run("SRC-71 a result that is used again", func(t *testing.T) {
		q := reusing(answer{state: "DONE", table: "x"}, answer{kind: "TABLE"}, answer{state: "DONE", table: "x"}, answer{})
		conf, a := q.attempt(t, "EU")
		conf.Query.Landing = Landing{Project: "bill", Dataset: "scratch", Expiration: 7 * time.Hour}
		conf.Query.ReuseWithin = time.Hour
		if _, err := conf.runQuery(t.Context(), a, conf.Query); err != nil {
			t.Fatal(err)
		}
		if want := testNow.Add(7 * time.Hour).UnixMilli(); q.jobs.patch.ExpirationTime != want {
			t.Errorf("%v: expires at %d, want %d", q.jobs.calls, q.jobs.patch.ExpirationTime, want)
		}
	})
	t.Run("SRC-64 the expiration cannot be set", func(t *testing.T) {
		q := run(t, answer{}, answer{state: "DONE", table: "x"}, answer{code: 403, reason: "accessDenied"})
		if !strings.Contains(q.log.at(slog.LevelWarn), "will not expire") {
			t.Errorf("warned %q", q.log.at(slog.LevelWarn))
		}
	})
}

func TestQueryParameters(t *testing.T) {
	t.Parallel()
	q := reusing(answer{}, answer{state: "DONE", table: "x"})
	conf, a := q.attempt(t, "EU")
	conf.Query.Batch = true
	conf.Query.Parameters = []QueryParameter{{Name: "a", Type: "STRING", Value: new("")}, {Name: "b", Type: "INT64"}, {Name: "c", Type: "DATE", Values: []string{"2026-01-01"}}}
	if _, err := conf.runQuery(t.Context(), a, conf.Query); err != nil {
		t.Fatal(err)
	}
	c := q.jobs.job.Configuration.Query
	if p := c.QueryParameters; c.ParameterMode != "NAMED" || c.Priority != "BATCH" || len(p) != 3 || p[0].ParameterType.Type != "STRING" ||
		p[2].ParameterType.Type != "ARRAY" || p[2].ParameterType.ArrayType.Type != "DATE" || p[2].ParameterValue.ArrayValues[0].Value != "2026-01-01" {
		t.Errorf("submitted %+v", c)
	}
}

func TestViews(t *testing.T) {
	t.Parallel()
	plan := func(t *testing.T, change func(*Config), script ...answer) (*queryTest, *fakeService, error) {
		q := reusing(script...)
		s := &fakeService{streams: 1}
		conf, a := q.attempt(t, "")
		conf.Table, conf.Views, conf.Query, conf.dial = testConfig(nil).Table, &Query{Project: "bill"}, nil, s.dial
		conf.Table.Table = "v"
		if change != nil {
			change(conf)
		}
		_, err := conf.Plan(t.Context(), a)
		return q, s, err
	}
	landed := []answer{{}, {state: "DONE", table: "anon1"}}
	for _, kind := range []string{"VIEW", "MATERIALIZED_VIEW"} {
		t.Run("SRC-59 "+kind, func(t *testing.T) {
			q, s, err := plan(t, nil, append([]answer{{kind: kind}}, landed...)...)
			if err != nil || len(q.jobs.calls) != 3 || q.jobs.job.Configuration.Query.Query != "SELECT * FROM `p.d.v`" ||
				s.request.ReadSession.Table != "projects/bill/datasets/_anon/tables/anon1" {
				t.Errorf("called %v, read %v: %v", q.jobs.calls, s.request, err)
			}
		})
	}
	for _, kind := range []string{"TABLE", "SNAPSHOT", "EXTERNAL"} {
		t.Run("SRC-59 "+kind, func(t *testing.T) {
			q, s, err := plan(t, nil, answer{kind: kind})
			if err != nil || len(q.jobs.calls) != 1 || s.request.ReadSession.Table != "projects/p/datasets/d/tables/v" {
				t.Errorf("called %v, read %v: %v", q.jobs.calls, s.request, err)
			}
		})
	}
	t.Run("SRC-60 there is none", func(t *testing.T) {
		_, s, err := plan(t, nil, answer{code: 404, reason: "notFound"})
		if err == nil || !strings.Contains(err.Error(), "p.d.v does not exist") || s.dialed.Load() != 0 {
			t.Errorf("%d sessions: %v", s.dialed.Load(), err)
		}
	})
	t.Run("it cannot be looked at", func(t *testing.T) {
		_, s, err := plan(t, nil, answer{code: 403, reason: "accessDenied"})
		if err == nil || !strings.Contains(err.Error(), "bigquery.tables.get") || s.dialed.Load() != 0 {
			t.Errorf("%d sessions: %v", s.dialed.Load(), err)
		}
	})
	t.Run("SRC-61 without views no call is made", func(t *testing.T) {
		q, s, err := plan(t, func(c *Config) { c.Views = nil })
		if err != nil || len(q.jobs.calls) != 0 || s.request.ReadSession.Table != "projects/p/datasets/d/tables/v" {
			t.Errorf("called %v, read %v: %v", q.jobs.calls, s.request, err)
		}
	})
	t.Run("SRC-62 columns", func(t *testing.T) {
		q, s, err := plan(t, func(c *Config) {
			c.SelectedFields, c.RowRestriction, c.Limit = []string{"a", "b`c", "s.x", "S.y"}, "a > 1", 7
		}, append([]answer{{kind: "VIEW"}}, landed...)...)
		if err != nil || q.jobs.job.Configuration.Query.Query != "SELECT `a`, `b\\`c`, `s` FROM `p.d.v`" ||
			s.request.ReadSession.ReadOptions.RowRestriction != "a > 1" || len(s.request.ReadSession.ReadOptions.SelectedFields) != 4 {
			t.Errorf("ran %s, read %v: %v", q.jobs.job.Configuration.Query.Query, s.request, err)
		}
	})
	t.Run("a limit without a restriction", func(t *testing.T) {
		q, _, err := plan(t, func(c *Config) { c.Limit = 7 }, append([]answer{{kind: "VIEW"}}, landed...)...)
		if err != nil || q.jobs.job.Configuration.Query.Query != "SELECT * FROM `p.d.v` LIMIT 7" {
			t.Errorf("ran %s: %v", q.jobs.job.Configuration.Query.Query, err)
		}
	})
}

func TestQueryHints(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason, location, want string
	}{
		{"notFound", "EU", "the query ran in EU, as QueryLocation says"},
		{"notFound", "", "set QueryLocation"},
		{"accessDenied", "", "bigquery.jobs.create in the project bill"},
		{"invalidQuery", "", ""},
	} {
		q := reusing(answer{}, answer{state: "DONE", reason: c.reason})
		conf, a := q.attempt(t, c.location)
		_, err := conf.Plan(t.Context(), a)
		if p, ok := err.(*PlanError); !ok || !strings.Contains(p.Hint, c.want) || (p.Hint == "") != (c.want == "") {
			t.Errorf("%s in %q: %v", c.reason, c.location, err)
		}
	}
}

// A query that BigQuery makes no job of is explained as one that fails is, also where only its columns are asked for.
func TestRefusedQueryHints(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		refusal  answer
		location string
		want     string
	}{
		{answer{code: 404, reason: "notFound"}, "EU", "the query ran in EU, as QueryLocation says"},
		{answer{code: 404, reason: "notFound"}, "", "set QueryLocation"},
		{answer{code: 403, reason: "accessDenied"}, "", "bigquery.jobs.create in the project bill"},
		{answer{code: 400, reason: "invalidQuery"}, "EU", ""},
	} {
		conf, a := reusing(c.refusal).attempt(t, c.location)
		_, err := conf.Plan(t.Context(), a)
		if p, ok := err.(*PlanError); !ok || !strings.Contains(p.Hint, c.want) || (p.Hint == "") != (c.want == "") || !isHTTP(err, c.refusal.code) {
			t.Errorf("%d in %q: %v", c.refusal.code, c.location, err)
		}
		conf, _ = reusing(c.refusal).attempt(t, c.location)
		if _, err := conf.ResultSchema(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) || !isHTTP(err, c.refusal.code) {
			t.Errorf("columns, %d in %q: %v", c.refusal.code, c.location, err)
		}
	}
	// A view that is not there is no query that was refused.
	conf, a := reusing(answer{code: 404, reason: "notFound"}).attempt(t, "")
	conf.Table, conf.Views, conf.Query = testConfig(nil).Table, &Query{Project: "bill", Location: "EU"}, nil
	if _, err := conf.Plan(t.Context(), a); err == nil || strings.Contains(err.Error(), "QueryLocation") {
		t.Errorf("got %v", err)
	}
}

// Asking for streams by lanes.
func TestStreamsPerLane(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		most, least, lanes, want int
	}{{0, 0, 4, 12}, {0, 0, 0, 3}, {8, 0, 4, 0}, {0, 5, 4, 5}} {
		s := &fakeService{streams: 1}
		conf := testConfig(s.dial)
		conf.StreamsPerLane, conf.MaxStreamCount, conf.PreferredMinStreamCount = 3, c.most, c.least
		log, _ := newLog()
		if _, err := conf.Plan(t.Context(), Attempt{Lanes: c.lanes, Meter: stream.NoMeter, Log: log}); err != nil {
			t.Fatal(err)
		}
		if got := s.request.PreferredMinStreamCount; int(got) != c.want {
			t.Errorf("%s: asked for %d", fmt.Sprint(c), got)
		}
	}
}
