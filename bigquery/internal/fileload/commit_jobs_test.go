package fileload_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/bigquery/internal/fileload"
	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
)

func (b *bench) createDataset(project, id, location string) {
	b.Helper()
	_, err := b.rest.Datasets.Insert(project, &bqrest.Dataset{Location: location,
		DatasetReference: &bqrest.DatasetReference{ProjectId: project, DatasetId: id}}).Do()
	if err != nil {
		b.Fatal(err)
	}
}

func TestLocations(t *testing.T) {
	t.Parallel()
	t.Run("FL-65 each job is where its table is, one look for each dataset", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.createDataset("p", "e", "europe-west3")
		b.leaves()
		here, there := dst("t"), table.Destination{Project: "p", Dataset: "e", Table: "t"}
		cs := []loadplan.Committable{b.stage(here, "a", 1), b.stage(there, "a", 2), b.stage(there, "b", 3)}
		c := b.committer()
		defer c.Close()
		for range 2 {
			if err := c.Commit(t.Context(), b.encode(cs)); err != nil {
				t.Fatal(err)
			}
		}
		b.holds(here, 1)
		b.holds(there, 2, 3)
		if n := len(b.calls("datasets.get")); n != 2 {
			t.Errorf("%d looks at datasets", n)
		}
		places := map[string]int{}
		list, err := b.rest.Jobs.List("p").Do()
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range list.Jobs {
			places[j.JobReference.Location]++
		}
		if places["US"] != 1 || places["europe-west3"] != 3 {
			t.Errorf("jobs are in %v", places)
		}
	})
	t.Run("FL-65 Location is asked nobody for", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.cfg.Options.Plan.Location = "US"
		b.must(b.stage(dst("t"), "a", 1))
		if n := len(b.calls("datasets.get")); n != 0 {
			t.Errorf("%d looks at datasets", n)
		}
	})
	t.Run("FL-66 a dataset that is not there, or may not be looked at", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		nowhere := b.stage(table.Destination{Project: "p", Dataset: "nowhere", Table: "t"}, "a", 1)
		if err := b.commit(nowhere); err == nil || !strings.Contains(err.Error(), "bigquery.datasets.get") || !strings.Contains(err.Error(), "p.nowhere") {
			t.Errorf("got %v", err)
		}
		b.arm(answer("datasets.get", localbq.FaultMatch{}, 403, "accessDenied", 1))
		if err := b.commit(b.stage(dst("t"), "a", 1)); err == nil || !strings.Contains(err.Error(), "bigquery.datasets.get") {
			t.Errorf("got %v", err)
		}
		if len(b.calls("jobs.insert")) > 0 {
			t.Errorf("calls %v", b.calls())
		}
	})
	t.Run("temporary tables elsewhere are refused before anything is submitted", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.createDataset("p", "e", "EU")
		b.cfg.Options.Plan.TempDataset = "e"
		b.leaves()
		err := b.commit(b.stage(dst("t"), "a", 1), b.stage(dst("t"), "b", 2))
		refuses(t, err, fileload.ErrLocations)
		if len(b.calls("jobs.insert")) > 0 || !strings.Contains(err.Error(), "EU") || !strings.Contains(err.Error(), "US") {
			t.Errorf("%v, calls %v", err, b.calls())
		}
	})
	t.Run("a dataset that was made anew elsewhere is found there", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		c := b.committer()
		defer c.Close()
		if err := c.Commit(t.Context(), b.encode([]loadplan.Committable{b.stage(dst("t"), "a", 1).WithCheckpoint(1)})); err != nil {
			t.Fatal(err)
		}
		if err := b.rest.Datasets.Delete("p", "d").DeleteContents(true).Do(); err != nil {
			t.Fatal(err)
		}
		b.createDataset("p", "d", "EU")
		second := b.encode([]loadplan.Committable{b.stage(dst("t"), "b", 2).WithCheckpoint(2)})
		if err := c.Commit(t.Context(), second); err == nil {
			t.Error("the job was taken where the dataset is not any more")
		} else if permanent(err) {
			t.Errorf("%v is not tried again", err)
		}
		if err := c.Commit(t.Context(), second); err != nil {
			t.Error(err)
		}
		b.holds(dst("t"), 2)
	})
}

func TestSubmitOrAttach(t *testing.T) {
	t.Parallel()
	load := localbq.FaultMatch{JobType: "load"}
	t.Run("FL-67 FL-78 a job that runs is awaited, and outlives a commit that is cancelled", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		staged := b.stage(dst("t"), "a", 1)
		held := b.hold(localbq.FaultMatch{Method: "job.running"})
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { first <- b.commitWith(ctx, b.committer(), staged) }()
		job := held()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the first commit: %v", err)
		}
		if len(b.objects()) != 1 {
			t.Error("a commit that was cancelled has cleared away")
		}
		second := make(chan error, 1)
		go func() { second <- b.commit(staged) }()
		b.eventually(func() bool { return len(b.log.with("a job of an earlier try is there", "state=RUNNING")) > 0 })
		job.Release()
		if err := <-second; err != nil {
			t.Errorf("the second commit: %v", err)
		}
		b.holds(dst("t"), 1)
		if inserts, cancels := b.calls("jobs.insert"), b.calls("jobs.cancel"); len(inserts) != 1 || len(cancels) > 0 {
			t.Errorf("calls %v %v", inserts, cancels)
		}
		if loads, _ := b.meter.of("load_jobs_submitted"); loads != 2 {
			t.Errorf("%d loads are counted, want one for each commit", loads)
		}
	})
	t.Run("FL-68 a job that has failed is run again, under the next id", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		staged := b.stage(dst("t"), "a", 1)
		b.arm(failJob(load, "backendError", 2))
		for i, id := range []string{"", "-r1"} {
			err := b.commit(staged)
			failed, ok := errors.AsType[*fileload.JobError](err)
			if !ok || failed.ID != b.jobIDs()[0]+id || failed.Reason != "backendError" || failed.Message != "scripted" || failed.Location != "US" {
				t.Fatalf("try %d: %v", i, err)
			}
			if permanent(err) {
				t.Errorf("%v is not tried again", err)
			}
			if !strings.Contains(err.Error(), failed.ID) || !strings.Contains(err.Error(), "p.d.t") {
				t.Errorf("%v does not name the job that ran, and the table", err)
			}
		}
		b.must(staged)
		b.holds(dst("t"), 1)
		if ids := b.jobIDs(); len(ids) != 3 || ids[2] != ids[0]+"-r2" {
			t.Errorf("jobs %v", ids)
		}
		if lines := b.log.with("level=WARN", "has failed", "job_id=", "-r1"); len(lines) != 1 {
			t.Errorf("warnings %q", b.log.with("WARN"))
		}
	})
	t.Run("FL-69 until no ids are left, and on with a higher limit", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		staged := b.stage(dst("t"), "a", 1)
		b.arm(failJob(load, "backendError", 6))
		for range 6 {
			if err := b.commit(staged); err == nil {
				t.Fatal("the commit succeeded")
			}
		}
		gets, inserts := len(b.calls("jobs.get")), len(b.calls("jobs.insert"))
		err := b.commit(staged)
		refuses(t, err, fileload.ErrRetryIDsExhausted)
		if _, ok := errors.AsType[*fileload.JobError](err); !ok || !strings.Contains(err.Error(), "RetryIDLimit") {
			t.Errorf("%v does not say why, and what to do", err)
		}
		if gets, inserts := len(b.calls("jobs.get"))-gets, len(b.calls("jobs.insert"))-inserts; gets != 6 || inserts != 0 {
			t.Errorf("%d looks, %d submissions", gets, inserts)
		}
		b.cfg.Options.RetryIDLimit = 6
		b.must(staged)
		b.holds(dst("t"), 1)
	})
	t.Run("FL-71 an id that is taken though it seemed free", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		staged := b.stage(dst("t"), "a", 1)
		b.must(staged)
		b.arm(answer("jobs.get", localbq.FaultMatch{}, 404, "notFound", 1))
		b.must(staged)
		b.holds(dst("t"), 1)
		if n := len(b.calls("jobs.insert")); n != 2 {
			t.Errorf("%d submissions", n)
		}
		b.arm(answer("jobs.get", localbq.FaultMatch{}, 404, "notFound", 2))
		if err := b.commit(staged); err == nil || !strings.Contains(err.Error(), "409") || permanent(err) {
			t.Errorf("one that is there and is not: %v", err)
		}
		b.arm(answer("jobs.get", localbq.FaultMatch{}, 404, "notFound", 1), localbq.Fault{Match: localbq.FaultMatch{Method: "jobs.get", Nth: 2},
			Action: localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 403, Reason: "accessDenied"}}})
		if err := b.commit(staged); err == nil || !strings.Contains(err.Error(), "409") || !strings.Contains(err.Error(), "403") {
			t.Errorf("one that is there and may not be seen: %v", err)
		}
	})
	t.Run("an answer that is lost", func(t *testing.T) {
		for _, method := range []string{"jobs.insert", "jobs.get", "tables.get", "tables.insert", "datasets.get", "tables.delete", "objects.delete"} {
			b := newBench(t, localbq.Config{})
			b.leaves()
			b.arm(localbq.Fault{Match: localbq.FaultMatch{Method: method}, Count: 3, Action: localbq.FaultAction{LoseAck: true}})
			b.must(b.stage(dst("t"), "a", 1), b.stage(dst("t"), "b", 2), b.stage(dst("u"), "a", 3))
			b.holds(dst("t"), 1, 2)
			if ids := b.jobIDs(); len(ids) != 4 {
				t.Errorf("%s: jobs %v", method, ids)
			}
			if left := b.objects(); len(left) > 0 {
				t.Errorf("%s: left are %v", method, left)
			}
		}
	})
	t.Run("FL-72 polls at growing intervals", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		staged := b.stage(dst("t"), "a", 1)
		held := b.hold(localbq.FaultMatch{Method: "job.pending"})
		done := make(chan error, 1)
		go func() { done <- b.commit(staged) }()
		job := held()
		b.eventually(func() bool { return len(b.waits.list()) >= 4 })
		job.Release()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for i, d := range b.waits.list()[:4] {
			if want := time.Second << i; d < want*3/4 || d > want*5/4 {
				t.Errorf("wait %d is %v, want some %v", i, d, want)
			}
		}
	})
	t.Run("FL-72 a job that disappears", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		staged := b.stage(dst("t"), "a", 1)
		held := b.hold(localbq.FaultMatch{Method: "job.running"})
		done := make(chan error, 1)
		go func() { done <- b.commit(staged) }()
		job := held()
		b.arm(answer("jobs.get", localbq.FaultMatch{}, 404, "notFound", 1))
		if err := <-done; !errors.Is(err, fileload.ErrJobVanished) || permanent(err) {
			t.Errorf("got %v", err)
		}
		job.Release()
		b.must(staged)
		b.holds(dst("t"), 1)
	})
	t.Run("InlineJobRetries", func(t *testing.T) {
		for _, reason := range []string{"backendError", "internalError", "jobBackendError", "jobInternalError", "rateLimitExceeded"} {
			b := newBench(t, localbq.Config{})
			b.cfg.Options.InlineRetries = 2
			b.arm(failJob(load, reason, 2))
			b.must(b.stage(dst("t"), "a", 1))
			b.holds(dst("t"), 1)
			if ids := b.jobIDs(); len(ids) != 3 || ids[2] != ids[0]+"-r2" {
				t.Errorf("%s: jobs %v", reason, ids)
			}
			if pending, _ := b.meter.of("pending_jobs"); pending != 0 {
				t.Errorf("%s: %d jobs pending", reason, pending)
			}
		}
		b := newBench(t, localbq.Config{})
		b.cfg.Options.InlineRetries = 2
		b.arm(failJob(load, "invalid", 1))
		if err := b.commit(b.stage(dst("t"), "a", 1)); err == nil || len(b.jobIDs()) != 1 || !permanent(err) {
			t.Errorf("files that are wrong: %v with jobs %v", err, b.jobIDs())
		}
		b = newBench(t, localbq.Config{})
		b.cfg.Options.InlineRetries = 2
		b.arm(failJob(load, "backendError", localbq.FaultAlways))
		if err := b.commit(b.stage(dst("t"), "a", 1)); err == nil || len(b.jobIDs()) != 3 {
			t.Errorf("one that always fails: %v with jobs %v", err, b.jobIDs())
		}
	})
	t.Run("CallTimeout bounds a call that is not answered", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.cfg.Options.CallTimeout = 50 * time.Millisecond
		b.arm(localbq.Fault{Match: localbq.FaultMatch{Method: "jobs.insert"}, Count: localbq.FaultAlways, Action: localbq.FaultAction{Hang: true}})
		if err := b.commit(b.stage(dst("t"), "a", 1)); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "submit job") || permanent(err) {
			t.Errorf("got %v", err)
		}
		b.bq.Faults().Clear()
	})
	t.Run("a bad moment of the service passes", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.arm(answer("jobs.insert", localbq.FaultMatch{}, 503, "backendError", 5), answer("jobs.get", localbq.FaultMatch{}, 500, "internalError", 5),
			answer("datasets.get", localbq.FaultMatch{}, 502, "backendError", 2))
		b.must(b.stage(dst("t"), "a", 1))
		b.holds(dst("t"), 1)
	})
	t.Run("jobs of another project", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.cfg.Options.Plan.JobProject = "example.com:billing"
		b.leaves()
		b.must(b.stage(dst("t"), "a", 1), b.stage(dst("t"), "b", 2))
		b.holds(dst("t"), 1, 2)
		list, err := b.rest.Jobs.List("example.com:billing").Do()
		if err != nil || len(list.Jobs) != 3 || len(b.jobIDs()) != 0 {
			t.Errorf("jobs %v and %v, %v", list, b.jobIDs(), err)
		}
	})
	t.Run("FL-56 temporary tables of another project and dataset", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.createDataset("tp", "scratch", "US")
		b.cfg.Options.Plan.TempProject, b.cfg.Options.Plan.TempDataset = "tp", "scratch"
		b.leaves()
		b.must(b.stage(dst("t"), "a", 1), b.stage(dst("t"), "b", 2))
		b.holds(dst("t"), 1, 2)
		for _, id := range b.jobIDs() {
			if l := b.job(id).Configuration.Load; l != nil && (l.DestinationTable.ProjectId != "tp" || l.DestinationTable.DatasetId != "scratch") {
				t.Errorf("%s loads into %+v", id, l.DestinationTable)
			}
		}
	})
	t.Run("names of every kind", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.createDataset("example.com:pro-ject", "D_1", "EU")
		b.leaves()
		to := table.Destination{Project: "example.com:pro-ject", Dataset: "D_1", Table: "Täble – 漢字 1"}
		for _, d := range []loadplan.Disposition{loadplan.Append, loadplan.Truncate} {
			b.cfg.Options.Plan.Disposition = d
			b.must(b.stage(to, fmt.Sprint("a", d), 1).WithCheckpoint(int64(d)), b.stage(to, fmt.Sprint("b", d), 2).WithCheckpoint(int64(d)))
			b.holds(to, 1, 2)
		}
	})
}

// hold holds the next call or job that matches, and waits for it.
func (b *bench) hold(m localbq.FaultMatch) (next func() *localbq.Barrier) {
	b.Helper()
	b.arm(localbq.Fault{Match: m, Action: localbq.FaultAction{Barrier: true}})
	return func() *localbq.Barrier {
		b.Helper()
		held, err := b.bq.Faults().NextBarrier(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		return held
	}
}

// eventually waits until something is so.
func (b *bench) eventually(so func() bool) {
	b.Helper()
	for tick := time.NewTicker(time.Millisecond); !so(); {
		select {
		case <-tick.C:
		case <-b.Context().Done():
			b.Fatal("it never comes to be")
		}
	}
}

func (w *waits) list() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}
