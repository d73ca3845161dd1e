package localbq_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigquery"
	gcs "cloud.google.com/go/storage"

	"github.com/millrace-dev/millrace/localbq"
)

// loadJob starts a load job of one row into d.t.
func loadJob(t *testing.T, bq *localbq.Instance, id string) *bigquery.Job {
	t.Helper()
	c, err := bigquery.NewClient(t.Context(), bq.Project(), bq.ClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	source := bigquery.NewReaderSource(strings.NewReader(`{"id":1}`))
	source.SourceFormat = bigquery.JSON
	loader := c.Dataset("d").Table("t").LoaderFrom(source)
	loader.JobID = id
	job, err := loader.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func TestFaultJobs(t *testing.T) {
	t.Run("a job fails in a state", func(t *testing.T) {
		for _, method := range []string{"job.pending", "job.running"} {
			bq, _, _ := oneTable(t, localbq.Config{})
			arm(t, bq, localbq.Fault{
				Match:  localbq.FaultMatch{Method: method, JobType: "load", Job: "second", Table: "d.t"},
				Action: localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 503, Reason: "backendError", Message: "Error encountered during execution."}},
			})
			for id, fails := range map[string]bool{"first": false, "second": true} {
				status, err := loadJob(t, bq, id).Wait(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if failed := status.Err(); (failed != nil) != fails || fails && !strings.Contains(failed.Error(), "backendError") {
					t.Errorf("%s: job %s: %v", method, id, failed)
				}
			}
			bq.Faults().MustAllFire(t)
			wantContents(t, bq, "d.t", `{"id":1}`)
			noted := 0
			for r, err := range bq.Audit().Records() {
				if err != nil {
					t.Fatal(err)
				}
				if r.RPC == method && strings.HasSuffix(r.Job, ".second") && len(r.Rules) == 1 && r.Code == "backendError" {
					noted++
				}
			}
			if noted != 1 {
				t.Errorf("%s: %d records of it", method, noted)
			}
		}
	})
	t.Run("a job is held in a state", func(t *testing.T) {
		bq, _, _ := oneTable(t, localbq.Config{})
		for _, at := range []struct {
			method string
			state  bigquery.State
			rows   int64
		}{{"job.pending", bigquery.Pending, 0}, {"job.running", bigquery.Running, 0}, {"job.done", bigquery.Running, 1}} {
			bq.Faults().Clear()
			before, _ := bq.NumRows("d.t")
			arm(t, bq, localbq.Fault{Match: localbq.FaultMatch{Method: at.method}, Action: localbq.FaultAction{Barrier: true}})
			job := loadJob(t, bq, strings.ReplaceAll(at.method, ".", "_"))
			held, err := bq.Faults().NextBarrier(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if held.Call.JobType != "load" || held.Call.Job != job.ID() {
				t.Errorf("held %+v", held.Call)
			}
			if status, err := job.Status(t.Context()); err != nil || status.State != at.state {
				t.Errorf("%s: %+v, %v", at.method, status, err)
			}
			if n, _ := bq.NumRows("d.t"); n-before != at.rows {
				t.Errorf("%s: %d rows", at.method, n-before)
			}
			held.Release()
			if status, err := job.Wait(t.Context()); err != nil || status.Err() != nil {
				t.Error(status, err)
			}
		}
	})
	t.Run("a rule of calls does not count states of jobs", func(t *testing.T) {
		bq, _, _ := oneTable(t, localbq.Config{})
		arm(t, bq, localbq.Fault{Name: "calls", Match: localbq.FaultMatch{Table: "d.t"}, Action: localbq.FaultAction{Delay: 1}})
		if _, err := loadJob(t, bq, "a").Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if rules := bq.Faults().List(); rules[0].Fired != 0 {
			t.Errorf("fired %d times", rules[0].Fired)
		}
	})
	t.Run("rules that a job cannot follow", func(t *testing.T) {
		bq := start(t, localbq.Config{})
		for text, want := range map[string]string{
			`{"match": {"method": "job.running"}, "action": {"reset": true}}`:                                                      "a job can be failed",
			`{"match": {"service": "job"}, "action": {"loseAck": true}}`:                                                           "receive only",
			`{"match": {"service": "job"}, "phase": "answered", "action": {"barrier": true}}`:                                      "receive only",
			`{"match": {"method": "job.done"}, "action": {"http": {"code": 500, "reason": "internalError"}}}`:                      "a job can be failed in job.pending and job.running",
			`{"match": {"service": "job"}, "action": {"http": {"code": 500, "reason": "internalError"}}}`:                          "a job can be failed in job.pending and job.running",
			`{"match": {"service": "job", "method": "job.running"}, "action": {"status": {"code": "UNAVAILABLE"}, "delay": "1s"}}`: "a job can be failed",
		} {
			rules, err := localbq.ParseFaults([]byte(text))
			if err == nil {
				err = bq.Faults().Add(rules...)
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", text, err, want)
			}
		}
	})
}

func TestJobDelays(t *testing.T) {
	clock := localbq.NewManualClock()
	p := localbq.FriendlyProfile()
	p.Windows.JobPending = localbq.Window{Min: time.Hour, Max: time.Hour}
	bq, _, _ := oneTable(t, localbq.Config{Clock: clock, Profile: p})
	job := loadJob(t, bq, "a")
	for {
		status, err := job.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if status.Done() {
			break
		}
		clock.Advance(time.Minute)
	}
	if waited := clock.Now().Sub(localbq.NewManualClock().Now()); waited < time.Hour {
		t.Errorf("the job took %v", waited)
	}
	wantContents(t, bq, "d.t", `{"id":1}`)
}

// TestSnapshotsOfJobs reads at the ends of jobs, as answered, with a clock that moves and with one that stands still.
func TestSnapshotsOfJobs(t *testing.T) {
	for name, clock := range map[string]localbq.Clock{"the system's": nil, "one that stands still": localbq.NewManualClock()} {
		t.Run("LBQ-133 a row at the first job's end and two at the second's, by the clock that is "+name, func(t *testing.T) {
			bq, _, _ := oneTable(t, localbq.Config{Clock: clock})
			var ends []time.Time
			for i := range 5 {
				job := loadJob(t, bq, fmt.Sprint("job", i))
				status, err := job.Wait(t.Context())
				if err != nil || status.Err() != nil {
					t.Fatal(status, err)
				}
				ends = append(ends, status.Statistics.EndTime)
				if i%2 == 1 { // reading at an instant settles it, so that some are first read behind the next job
					if n := session(t, bq, ends[i])(); n != int64(i+1) {
						t.Errorf("%d rows at the end of job %d, at once", n, i)
					}
				}
			}
			for i, end := range ends {
				if n := session(t, bq, end)(); n != int64(i+1) {
					t.Errorf("%d rows at the end of job %d, later", n, i)
				}
			}
		})
	}
}

func TestLostJobAnswer(t *testing.T) {
	t.Run("LBQ-173 the answer to jobs.insert is lost: the same id is there, and its rows once", func(t *testing.T) {
		bq, _, _ := oneTable(t, localbq.Config{})
		c, err := gcs.NewClient(t.Context(), bq.GCSClientOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.Bucket("lake").Create(t.Context(), bq.Project(), nil); err != nil {
			t.Fatal(err)
		}
		put(t, c.Bucket("lake").Object("rows"), []byte(`{"id":1}`))
		arm(t, bq, localbq.Fault{Match: localbq.FaultMatch{Service: "rest", Method: "jobs.insert"}, Action: localbq.FaultAction{LoseAck: true}})
		insert := func() int {
			q, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+bq.REST()+"/projects/"+bq.Project()+"/jobs", strings.NewReader(
				`{"jobReference": {"jobId": "lost"}, "configuration": {"load": {"sourceUris": ["gs://lake/rows"], "sourceFormat": "NEWLINE_DELIMITED_JSON",
				"destinationTable": {"projectId": "`+bq.Project()+`", "datasetId": "d", "tableId": "t"}}}}`))
			if err != nil {
				t.Fatal(err)
			}
			q.GetBody = nil // so that the transport does not send it again by itself
			r, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(q)
			if err != nil {
				return 0
			}
			defer r.Body.Close()
			return r.StatusCode
		}
		for i, want := range []int{0, 409, 409} {
			if got := insert(); got != want {
				t.Errorf("try %d: answered %d, want %d", i, got, want)
			}
		}
		bq.Faults().MustAllFire(t)
		client, err := bigquery.NewClient(t.Context(), bq.Project(), bq.ClientOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		job, err := client.JobFromID(t.Context(), "lost")
		if err != nil {
			t.Fatal(err)
		}
		if status, err := job.Wait(t.Context()); err != nil || status.Err() != nil {
			t.Fatal(status, err)
		}
		wantContents(t, bq, "d.t", `{"id":1}`)
	})
}
