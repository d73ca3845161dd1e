package rest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/profile"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

func withQuotas(q profile.Quotas) func(*Deps) { return func(d *Deps) { d.Profile.Quotas = q } }

const tooManyUpdates = "Exceeded rate limits: too many table update operations for this table."

func TestMetadataBurst(t *testing.T) {
	make := func(f *fixture) answer {
		return f.do("POST", "/projects/p/datasets/d/tables", `{"tableReference":{"tableId":"t"},"schema":`+schemaOf("n:INTEGER")+`}`)
	}
	t.Run("LBQ-147 sixteen racing creations with the quota of the service", func(t *testing.T) {
		f := setup(t, func(d *Deps) { d.Profile = profile.Service() })
		f.dataset()
		var mu sync.Mutex // guards codes
		codes := map[int]int{}
		var racing sync.WaitGroup
		for range 16 {
			racing.Go(func() {
				a := make(f)
				if a.code == 403 {
					a.refused(403, "rateLimitExceeded", tooManyUpdates)
				}
				mu.Lock()
				defer mu.Unlock()
				codes[a.code]++
			})
		}
		racing.Wait()
		if codes[200] != 1 || codes[409] != 4 || codes[403] != 11 {
			t.Errorf("answers %v, want one 200, four 409 and eleven 403", codes)
		}
	})
	t.Run("five in 10 s, creation included, and each table for itself", func(t *testing.T) {
		f := setup(t, func(d *Deps) { d.Profile.Quotas.MetadataBurst = profile.Service().Quotas.MetadataBurst })
		f.dataset()
		make(f).ok()
		patch := func(n int) answer {
			return f.do("PATCH", "/projects/p/datasets/d/tables/t", fmt.Sprintf(`{"description":"%d"}`, n))
		}
		for n := range 4 {
			f.clock.Advance(time.Second)
			patch(n).ok()
		}
		patch(5).refused(403, "rateLimitExceeded", tooManyUpdates)
		f.do("PUT", "/projects/p/datasets/d/tables/t", `{"description":"x"}`).refused(403, "rateLimitExceeded", tooManyUpdates)
		f.do("GET", "/projects/p/datasets/d/tables/t", "").ok()
		f.do("POST", "/projects/p/datasets/d/tables", `{"tableReference":{"tableId":"other"}}`).ok()
		f.clock.Advance(6 * time.Second) // ten since the creation
		patch(6).ok()
		patch(7).refused(403, "rateLimitExceeded", tooManyUpdates)
	})
	t.Run("none without the quota", func(t *testing.T) {
		f := setup(t)
		f.dataset()
		make(f).ok()
		for n := range 20 {
			f.do("PATCH", "/projects/p/datasets/d/tables/t", fmt.Sprintf(`{"description":"%d"}`, n)).ok()
		}
	})
}

func TestDailyLimits(t *testing.T) {
	const perTable = "quotaExceeded: Quota exceeded: Your table exceeded quota for imports or query appends per table."
	t.Run("modifications of a table, by jobs that fail too", func(t *testing.T) {
		x := setupTransfers(t, withQuotas(profile.Quotas{TableModifications: 3}))
		x.puts("rows.json", `{"n":1}`)
		x.puts("bad.json", `{"n":"x"}`)
		x.table("t", "n:INTEGER")
		x.table("u", "n:INTEGER")
		load := func(table, object string) string { return loading(table, "NEWLINE_DELIMITED_JSON", "gs://b-1/"+object) }
		copying := func(from, to string) string {
			return fmt.Sprintf(`"copy":{"writeDisposition":"WRITE_APPEND","sourceTable":{"projectId":"p","datasetId":"d","tableId":%q},"destinationTable":{"projectId":"p","datasetId":"d","tableId":%q}}`, from, to)
		}
		x.done("a", load("t", "rows.json"))
		x.fails("b", load("t", "bad.json"), "invalid")
		x.done("c", copying("u", "t"))
		x.fails("d", load("t", "rows.json"), perTable)
		x.fails("e", copying("u", "t"), perTable)
		x.done("f", load("u", "rows.json"))
		x.wantRows("t", `{"n":1}`)
		x.clock.Advance(8 * time.Hour) // a third comes back in a third of a day
		x.done("g", load("t", "rows.json"))
		x.fails("h", load("t", "rows.json"), perTable)
	})
	t.Run("load jobs and copy jobs of a project", func(t *testing.T) {
		x := setupTransfers(t, withQuotas(profile.Quotas{LoadJobs: 1, CopyJobs: 1}))
		x.puts("rows.json", `{"n":1}`)
		x.table("t", "n:INTEGER")
		load := loading("t", "NEWLINE_DELIMITED_JSON", "gs://b-1/rows.json")
		copying := `"copy":{"writeDisposition":"WRITE_TRUNCATE","sourceTable":{"projectId":"p","datasetId":"d","tableId":"t"},"destinationTable":{"projectId":"p","datasetId":"d","tableId":"u"}}`
		x.done("a", load)
		x.fails("b", load, "quotaExceeded: Quota exceeded: Your project exceeded quota for imports per project.")
		x.done("c", copying)
		x.fails("d", copying, "quotaExceeded: Quota exceeded: Your project exceeded quota for copies per project.")
		x.clock.Advance(24 * time.Hour)
		x.done("e", load)
	})
	t.Run("jobs that wait", func(t *testing.T) {
		const queued = "quotaExceeded: Quota exceeded: Your project exceeded quota for total number of jobs that can be queued per project."
		pending := profile.Window{Min: time.Minute, Max: time.Minute}
		x := setupTransfers(t, withQuotas(profile.Quotas{PendingJobs: 2, QueuedQueries: 1}), func(d *Deps) { d.Profile.Windows.JobPending = pending })
		x.puts("rows.json", `{"n":1}`)
		x.table("t", "n:INTEGER")
		load := loading("t", "NEWLINE_DELIMITED_JSON", "gs://b-1/rows.json")
		x.insert("query", `"query":{"query":"SELECT 1","useLegacySql":false}`).ok()
		x.await("query", "PENDING")
		x.fails("query2", `"query":{"query":"SELECT 1","useLegacySql":false}`, queued)
		x.insert("load", load).ok()
		x.await("load", "PENDING")
		x.fails("load2", load, queued)
		for _, id := range []string{"load", "query"} {
			x.outlast(id)
		}
		x.insert("load3", load).ok()
		if f := failure(x.outlast("load3")); f != "" {
			t.Error(f)
		}
	})
	t.Run("those of the service are those of its documentation", func(t *testing.T) {
		q := profile.Service().Quotas
		if q.MetadataBurst != 5 || q.TableModifications != 1500 || q.LoadJobs != 100_000 || q.CopyJobs != 100_000 || q.QueuedQueries != 1000 || q.PendingJobs != 50_000 {
			t.Errorf("%+v", q)
		}
	})
}

// await waits until a job has told of a state, which its answer is given in.
func (x *transfers) await(id, state string) {
	x.Helper()
	for {
		a := x.do("GET", "/projects/p/jobs/"+id, "").ok()
		got := a.body["status"].(map[string]any)["state"]
		if got == state {
			return
		}
		if got == "DONE" {
			x.Fatalf("job %s is done: %s", id, a.raw)
		}
	}
}

// outlast moves the clock until a job is over.
func (x *transfers) outlast(id string) map[string]any {
	x.Helper()
	for {
		a := x.do("GET", "/projects/p/jobs/"+id, "").ok()
		if a.body["status"].(map[string]any)["state"] == "DONE" {
			return a.body
		}
		x.clock.Advance(time.Second)
	}
}

func TestJobStates(t *testing.T) {
	t.Run("a job tells of its states in order, and stays in each as long as it is told", func(t *testing.T) {
		states, goOn := make(chan JobState), make(chan error)
		x := setupTransfers(t, func(d *Deps) {
			d.JobState = func(ctx context.Context, j JobState) error {
				states <- j
				return <-goOn
			}
		})
		x.puts("rows.json", `{"n":1}`)
		x.table("t", "n:INTEGER")
		x.insert("a", loading("t", "NEWLINE_DELIMITED_JSON", "gs://b-1/rows.json")).ok()
		for _, want := range []struct{ method, state, rows string }{
			{"job.pending", "PENDING", ""}, {"job.running", "RUNNING", ""}, {"job.done", "RUNNING", `{"n":1}`},
		} {
			j := <-states
			if j.Method != want.method || j.Name != "p:US.a" || j.ID != "a" || j.Type != "load" || j.Table.Table != "t" {
				t.Errorf("told of %+v, want %s", j, want.method)
			}
			x.await("a", want.state)
			x.wantRows("t", strings.Fields(want.rows)...)
			goOn <- nil
		}
		if f := failure(x.wait("a")); f != "" {
			t.Error(f)
		}
	})
	t.Run("an error fails the job, and nothing of it is there", func(t *testing.T) {
		for _, at := range []string{"job.pending", "job.running"} {
			x := setupTransfers(t, func(d *Deps) {
				d.JobState = func(_ context.Context, j JobState) error {
					if j.Method == at {
						return refusal.New(refusal.BackendError, "Error encountered during execution. Retrying may solve the problem.")
					}
					return nil
				}
			})
			x.puts("rows.json", `{"n":1}`)
			x.table("t", "n:INTEGER")
			x.fails("a", loading("t", "NEWLINE_DELIMITED_JSON", "gs://b-1/rows.json"), "backendError: Error encountered")
			x.wantRows("t")
		}
	})
	t.Run("delays of the profile", func(t *testing.T) {
		minute := profile.Window{Min: time.Minute, Max: time.Minute}
		x := setupTransfers(t, func(d *Deps) { d.Profile.Windows.JobPending, d.Profile.Windows.JobRunning = minute, minute })
		x.puts("rows.json", `{"n":1}`)
		x.table("t", "n:INTEGER")
		began := x.clock.Now()
		x.insert("a", loading("t", "NEWLINE_DELIMITED_JSON", "gs://b-1/rows.json")).ok()
		for {
			a := x.do("GET", "/projects/p/jobs/a", "").ok()
			if a.body["status"].(map[string]any)["state"] == "DONE" {
				break
			}
			if passed := x.clock.Now().Sub(began); passed < 2*time.Minute {
				x.wantRows("t")
			}
			x.clock.Advance(time.Second)
		}
		if took := x.clock.Now().Sub(began); took < 2*time.Minute {
			t.Errorf("the job took %v", took)
		}
	})
}
