package storageread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// fakeJobs is the jobs resource, answering from a script: one answer for each call.
type fakeJobs struct {
	script []answer

	mu    sync.Mutex
	calls []string // "POST /…/jobs", "GET /…/jobs/ID?location=EU"
	job   bqrest.Job
	patch bqrest.Table
}

type answer struct {
	code   int           // 200 when 0
	state  string        // of the job
	reason string        // of its errorResult; of the error for other codes
	table  string        // destination, "" for none
	age    time.Duration // since its creation; 0 says nothing about it
	kind   string        // of the answered table, instead of a job
}

func (f *fakeJobs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	call := r.Method + " " + r.URL.Path
	if l := r.URL.Query().Get("location"); l != "" {
		call += "?location=" + l
	}
	f.calls = append(f.calls, call)
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(r.Body).Decode(&f.job); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	if len(f.script) == 0 {
		http.Error(w, "the script is at its end", http.StatusTeapot)
		return
	}
	a := f.script[0]
	f.script = f.script[1:]
	w.Header().Set("Content-Type", "application/json")
	if a.code != 0 {
		w.WriteHeader(a.code)
		fmt.Fprintf(w, `{"error":{"code":%d,"message":"m","errors":[{"reason":%q}]}}`, a.code, a.reason)
		return
	}
	if strings.Contains(r.URL.Path, "/tables/") {
		if r.Method == http.MethodPatch {
			json.NewDecoder(r.Body).Decode(&f.patch)
		}
		json.NewEncoder(w).Encode(&bqrest.Table{Type: a.kind})
		return
	}
	id := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	if r.Method == http.MethodPost {
		id = f.job.JobReference.JobId
	}
	out := bqrest.Job{JobReference: &bqrest.JobReference{ProjectId: "bill", JobId: id, Location: "EU"},
		Configuration: &bqrest.JobConfiguration{Query: &bqrest.JobConfigurationQuery{}}, Status: &bqrest.JobStatus{State: a.state}}
	if a.age != 0 {
		out.Statistics = &bqrest.JobStatistics{CreationTime: testNow.Add(-a.age).UnixMilli()}
	}
	if a.reason != "" {
		out.Status.ErrorResult = &bqrest.ErrorProto{Reason: a.reason, Message: "Syntax error"}
	}
	if a.table != "" {
		out.Configuration.Query.DestinationTable = &bqrest.TableReference{ProjectId: "bill", DatasetId: "_anon", TableId: a.table}
	}
	json.NewEncoder(w).Encode(&out)
}

// testNow is now for queries, in a window of an hour from 12 o'clock.
var testNow = time.UnixMilli(1754740800000).UTC()

type queryTest struct {
	jobs  *fakeJobs
	meter *testMeter
	waits []time.Duration
	log   *testLog
}

func (q *queryTest) run(t *testing.T, ctx context.Context, location string) (table.Destination, error) {
	t.Helper()
	c, a := q.attempt(t, location)
	return c.runQuery(ctx, a, c.Query)
}

// attempt is a query to be read, with its jobs served from the script until the test ends.
func (q *queryTest) attempt(t *testing.T, location string) (*Config, Attempt) {
	t.Helper()
	srv := httptest.NewServer(q.jobs)
	t.Cleanup(srv.Close)
	c := testConfig(nil)
	c.Table, c.Query, c.Parent = table.Destination{}, &Query{Project: "bill", SQL: "SELECT 1", Location: location}, "bill"
	c.Connection.RESTEndpoint = srv.Listener.Addr().String()
	c.now = func() time.Time { return testNow }
	c.Pacer.Rand = func() float64 { return 0.5 }
	c.Pacer.Sleep = func(ctx context.Context, d time.Duration) error {
		q.waits = append(q.waits, d)
		return ctx.Err()
	}
	q.meter = newMeter()
	log, lines := newLog()
	q.log = lines
	return c, Attempt{Job: "pipeline", Meter: q.meter, Log: log}
}

func TestQuery(t *testing.T) {
	t.Parallel()
	busy := answer{code: 503, reason: "backendError"}
	for _, c := range []struct {
		name      string
		script    []answer
		waits     string
		submitted bool
		check     func(error) bool
	}{
		{name: "SRC-63 anonymous result", submitted: true,
			script: []answer{{state: "PENDING"}, {state: "RUNNING"}, {state: "DONE", table: "anon1"}}, waits: "[50ms]"},
		{name: "an error while running is no verdict", submitted: true,
			script: []answer{{state: "RUNNING"}, {state: "RUNNING", reason: "x"}, {state: "DONE", table: "anon1"}}, waits: "[50ms]"},
		{name: "polls are doubled up to 10 s", submitted: true,
			script: []answer{{}, {state: "RUNNING"}, {state: "RUNNING"}, {}, {state: "RUNNING"}, {state: "RUNNING"}, {state: "RUNNING"}, {}, {}, {}, {state: "DONE", table: "anon1"}},
			waits:  "[50ms 100ms 200ms 400ms 800ms 1.6s 3.2s 6.4s 10s]"},
		{name: "an answer got lost", submitted: true,
			script: []answer{busy, {code: 409, reason: "duplicate"}, {state: "DONE", table: "anon1"}}, waits: "[500ms]"},
		{name: "a bad moment while polling", submitted: true,
			script: []answer{{}, busy, {code: 403, reason: "rateLimitExceeded"}, {state: "DONE", table: "anon1"}}, waits: "[500ms 1s]"},
		{name: "SRC-65 the query fails", script: []answer{{}, {state: "DONE", reason: "invalidQuery", table: "anon1"}},
			check: func(err error) bool {
				e, ok := errors.AsType[*QueryJobError](err)
				return ok && e.Reason == "invalidQuery" && strings.HasPrefix(e.JobID, "millrace_bigquery_source_") && e.Location == "EU" &&
					strings.Contains(err.Error(), e.JobID) && strings.Contains(err.Error(), "SELECT 1")
			}},
		{name: "SRC-66 no table", script: []answer{{}, {state: "DONE"}},
			check: func(err error) bool { return errors.Is(err, ErrNoResultTable) }},
		{name: "SRC-66 gone while polling", script: []answer{{}, {code: 404, reason: "notFound"}},
			check: func(err error) bool { return strings.Contains(err.Error(), "disappeared") }},
		{name: "refused", script: []answer{{code: 400, reason: "invalidQuery"}},
			check: func(err error) bool { return strings.Contains(err.Error(), "submit the query job millrace_") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			q := &queryTest{jobs: &fakeJobs{script: c.script}}
			got, err := q.run(t, t.Context(), "")
			if c.check != nil {
				if err == nil || !c.check(err) {
					t.Errorf("got %v", err)
				}
			} else if err != nil || got.String() != "bill._anon.anon1" {
				t.Errorf("got %s: %v", got, err)
			}
			if len(q.jobs.script) > 0 {
				t.Errorf("%d answers were not asked for", len(q.jobs.script))
			}
			if c.waits != "" && fmt.Sprint(q.waits) != c.waits {
				t.Errorf("waited %v, want %s", q.waits, c.waits)
			}
			if c.submitted {
				q.meter.is(t, map[stream.Instrument]int64{QueryJobsSubmitted: 1})
			} else if q.meter.values[QueryJobsSubmitted.Name] != 0 {
				t.Error("a query that failed was counted")
			}
		})
	}
}

func TestQueryRequest(t *testing.T) {
	t.Parallel()
	q := &queryTest{jobs: &fakeJobs{script: []answer{{}, {state: "DONE", table: "anon1"}}}}
	if _, err := q.run(t, t.Context(), "eu"); err != nil {
		t.Fatal(err)
	}
	job := q.jobs.job
	if !regexp.MustCompile(`^millrace_bigquery_source_[0-9a-f]{32}$`).MatchString(job.JobReference.JobId) {
		t.Errorf("job id %q", job.JobReference.JobId)
	}
	if c := job.Configuration.Query; job.JobReference.Location != "eu" || c.Query != "SELECT 1" || c.UseLegacySql == nil || *c.UseLegacySql || c.DestinationTable != nil {
		t.Errorf("submitted %+v", c)
	}
	// The job is looked up where the service said it runs, not where it was asked to.
	want := "[POST /bigquery/v2/projects/bill/jobs GET /bigquery/v2/projects/bill/jobs/" + job.JobReference.JobId + "?location=EU]"
	if fmt.Sprint(q.jobs.calls) != want {
		t.Errorf("called %v, want %s", q.jobs.calls, want)
	}
}

func TestQueryPlan(t *testing.T) {
	t.Parallel()
	t.Run("SRC-63 the session reads the table that the finished job names", func(t *testing.T) {
		q := &queryTest{jobs: &fakeJobs{script: []answer{{state: "RUNNING"}, {state: "DONE", table: "anon1"}}}}
		s := &fakeService{streams: 1}
		c, a := q.attempt(t, "")
		c.dial = s.dial
		got, err := c.Plan(t.Context(), a)
		if err != nil || got.Table.String() != "bill._anon.anon1" {
			t.Fatalf("got %+v: %v", got, err)
		}
		if r := s.request; r.Parent != "projects/bill" || r.ReadSession.Table != "projects/bill/datasets/_anon/tables/anon1" {
			t.Errorf("asked for %v", r)
		}
		if q.jobs.job.Configuration.Query.DestinationTable != nil {
			t.Error("the job was given a destination")
		}
	})
	t.Run("SRC-65 a query that fails leads to no session", func(t *testing.T) {
		q := &queryTest{jobs: &fakeJobs{script: []answer{{}, {state: "DONE", reason: "invalidQuery"}}}}
		s := &fakeService{streams: 1}
		c, a := q.attempt(t, "")
		c.dial = s.dial
		_, err := c.Plan(t.Context(), a)
		if p, ok := errors.AsType[*PlanError](err); !ok || !strings.Contains(err.Error(), "SELECT 1") || s.dialed.Load() != 0 {
			t.Errorf("got %v (%v) after %d connections", err, p, s.dialed.Load())
		}
	})
}

// SRC-67: a plan that a checkpoint holds is not made again, and neither is the query under it.
func TestRestoredQueryIsNotRunAgain(t *testing.T) {
	t.Parallel()
	q := &queryTest{jobs: &fakeJobs{}}
	s := &fakeService{}
	c, a := q.attempt(t, "")
	c.dial = s.dial
	e, err := c.NewEnumerator(t.Context(), stream.EnumeratorContext{Job: a.Job, Lanes: 1, State: sampleState().encode(), Wake: func() {}, Meter: a.Meter, Log: a.Log})
	if err != nil {
		t.Fatal(err)
	}
	if split, err := e.Next(0); err != nil || split.ID != "s0" || split.Position != 42 {
		t.Errorf("got %s@%d: %v", split.ID, split.Position, err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if len(q.jobs.calls) != 0 || s.dialed.Load() != 0 {
		t.Errorf("called %v, %d connections", q.jobs.calls, s.dialed.Load())
	}
	q.meter.is(t, map[stream.Instrument]int64{QueryJobsSubmitted: 0, ReadSessionsCreated: 0})
}

func TestQueryStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := &queryTest{jobs: &fakeJobs{}}
	if _, err := q.run(t, ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
