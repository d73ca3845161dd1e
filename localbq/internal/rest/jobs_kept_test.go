package rest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// TestJobsRunAgain starts a service on a store that knows of load jobs that had not ended, as one does that was killed.
func TestJobsRunAgain(t *testing.T) {
	x := setupTransfers(t)
	x.puts("same", `{"n":1}`)
	x.puts("changed", `{"n":2}`)
	x.puts("gone", `{"n":3}`)
	x.puts("done", `{"n":4}`)
	claim := func(id, table, object string, change func(*keptJob)) {
		t.Helper()
		var configuration map[string]json.RawMessage
		text := loading(table, ndjson, "gs://b-1/"+object, `"schema":`+schemaOf("n:INTEGER"), `"writeDisposition":"WRITE_EMPTY"`)
		if err := json.Unmarshal([]byte("{"+text+"}"), &configuration); err != nil {
			t.Fatal(err)
		}
		k := &keptJob{Project: "p", Location: "US", ID: id, Created: x.clock.Now(), Configuration: configuration}
		if change != nil {
			change(k)
		}
		raw, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.store.ClaimJob(store.Job{Name: "p:US." + id, Record: raw}); err != nil {
			t.Fatal(err)
		}
	}
	claim("same", "same", "same", nil)
	claim("changed", "changed", "changed", nil)
	claim("gone", "gone", "gone", nil)
	claim("done", "done", "done", func(k *keptJob) { k.Ended = x.clock.Now().Add(time.Second) })
	claim("upload", "upload", "same", func(k *keptJob) { k.Upload = true })
	x.puts("changed", `{"n":20}`, `{"n":21}`)
	if err := x.objects.Delete("b-1", "gone", 0, noConditions); err != nil {
		t.Fatal(err)
	}

	again := New(Deps{Store: x.store, Clock: x.clock, Objects: x.objects, Reads: x.remember, NoQueries: "none here"})
	defer again.Close()
	x.server.Config.Handler = again
	t.Run("LBQ-173 the object as it was: the job's rows, once", func(t *testing.T) {
		x := x.in(t)
		if f := failure(x.wait("same")); f != "" {
			t.Errorf("the job failed: %s", f)
		}
		x.wantRows("same", `{"n":1}`)
		x.insert("same", loading("same", ndjson, "gs://b-1/same")).refused(409, "duplicate", "Already Exists: Job p:US.same")
		x.wantRows("same", `{"n":1}`)
	})
	t.Run("an object that was overwritten is read as it is now, and that is written down", func(t *testing.T) {
		x := x.in(t)
		if f := failure(x.wait("changed")); f != "" {
			t.Errorf("the job failed: %s", f)
		}
		x.wantRows("changed", `{"n":20}`, `{"n":21}`)
		now, err := x.objects.Get("b-1", "changed", 0, noConditions)
		if err != nil {
			t.Fatal(err)
		}
		if reads := x.read("p:US.changed"); len(reads) != 1 || reads[0].Generation != now.Generation {
			t.Errorf("the job read %+v, want generation %d", reads, now.Generation)
		}
	})
	t.Run("an object that is gone fails the job", func(t *testing.T) {
		x := x.in(t)
		if f := failure(x.wait("gone")); f != "notFound: Not found: URI gs://b-1/gone" {
			t.Errorf("the job: %q", f)
		}
		x.insert("gone", loading("gone", ndjson, "gs://b-1/same")).refused(409, "duplicate", "Already Exists: Job p:US.gone")
	})
	t.Run("a job that had ended does not run again, nor one whose file is gone", func(t *testing.T) {
		x := x.in(t)
		x.wait("done")
		x.do("GET", "/projects/p/datasets/d/tables/done", "").refused(404, "notFound", "Not found: Table p:d.done")
		if f := failure(x.wait("upload")); !strings.Contains(f, "the job's file went with it") {
			t.Errorf("the job: %q", f)
		}
	})
}
