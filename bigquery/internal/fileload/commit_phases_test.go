package fileload_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/bigquery/internal/fileload"
	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/duckdb"
)

// newQueryBench has a service that runs queries.
func newQueryBench(t testing.TB) *bench {
	t.Helper()
	engine, err := duckdb.New()
	if err != nil {
		t.Fatal(err)
	}
	return newBench(t, localbq.Config{Queries: engine})
}

// temporary are the temporary tables that are there.
func (b *bench) temporary() []string {
	b.Helper()
	return slices.DeleteFunc(b.tables("d"), func(name string) bool { return !strings.HasPrefix(name, "millrace_tmp_") })
}

func TestFailures(t *testing.T) {
	t.Parallel()
	t.Run("FL-73 one load fails, all are awaited, nothing else is done", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.leaves()
		b.arm(failJob(localbq.FaultMatch{JobType: "load"}, "backendError", 1))
		var cs []loadplan.Committable
		for _, name := range []string{"u", "t", "v"} {
			cs = append(cs, b.stage(dst(name), "a", 1), b.stage(dst(name), "b", 2))
		}
		err := b.commit(cs...)
		if failed, ok := errors.AsType[*fileload.JobError](err); !ok || failed.Reason != "backendError" {
			t.Errorf("got %v", err)
		}
		for _, id := range b.jobIDs() {
			if j := b.job(id); j.Configuration.Load == nil || j.Status.State != "DONE" {
				t.Errorf("job %s is %s, a %s", id, j.Status.State, j.Configuration.JobType)
			}
		}
		if len(b.objects()) != 6 || len(b.temporary()) == 0 {
			t.Errorf("left are %v and %v", b.objects(), b.temporary())
		}
		b.must(cs...)
		for _, name := range []string{"t", "u", "v"} {
			b.holds(dst(name), 1, 2)
		}
		if len(b.objects()) > 0 || len(b.temporary()) > 0 {
			t.Errorf("left are %v and %v", b.objects(), b.temporary())
		}
	})
	t.Run("FL-73 the first destination of the plan is told first", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.arm(failJob(localbq.FaultMatch{Table: "d.u"}, "backendError", 1), failJob(localbq.FaultMatch{Table: "d.t"}, "internalError", 1))
		err := b.commit(b.stage(dst("u"), "a", 1), b.stage(dst("v"), "a", 1), b.stage(dst("t"), "a", 1))
		first, ok := errors.AsType[*fileload.LoadError](err)
		if !ok || first.Destination != dst("t") || !strings.Contains(err.Error(), "p.d.u") || strings.Contains(err.Error(), "p.d.v") {
			t.Errorf("got %v", err)
		}
		b.holds(dst("v"), 1)
	})
	t.Run("FL-74 a copy fails: everything is kept", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.leaves()
		b.arm(failJob(localbq.FaultMatch{JobType: "copy"}, "backendError", 1))
		cs := []loadplan.Committable{b.stage(dst("t"), "a", 1), b.stage(dst("t"), "b", 2)}
		if err := b.commit(cs...); err == nil {
			t.Fatal("the commit succeeded")
		}
		if len(b.objects()) != 2 || len(b.temporary()) != 2 {
			t.Errorf("left are %v and %v", b.objects(), b.temporary())
		}
		before := b.jobIDs()
		b.must(cs...)
		b.holds(dst("t"), 1, 2)
		if after := b.jobIDs(); len(after) != 4 || after[3] != before[2]+"-r1" {
			t.Errorf("jobs %v after %v", after, before)
		}
	})
	t.Run("FL-74 a query fails: everything is kept", func(t *testing.T) {
		b := newQueryBench(t)
		b.leaves()
		b.cfg.Options.Plan.Disposition = loadplan.TruncateData
		b.createTable(dst("t"), columns())
		b.arm(failJob(localbq.FaultMatch{JobType: "query"}, "backendError", 1))
		cs := []loadplan.Committable{b.stage(dst("t"), "a", 1), b.stage(dst("t"), "b", 2)}
		if err := b.commit(cs...); err == nil {
			t.Fatal("the commit succeeded")
		}
		if len(b.objects()) != 2 || len(b.temporary()) != 3 {
			t.Errorf("left are %v and %v", b.objects(), b.temporary())
		}
		before := b.jobIDs()
		b.must(cs...)
		b.holds(dst("t"), 1, 2)
		if after := b.jobIDs(); len(after) != 5 || after[4] != before[3]+"-r1" {
			t.Errorf("jobs %v after %v", after, before)
		}
		if len(b.objects()) > 0 || len(b.temporary()) > 0 {
			t.Errorf("left are %v and %v", b.objects(), b.temporary())
		}
	})
	t.Run("FL-55 a wave is submitted before it is awaited, and ends before the next one begins", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.cfg.Options.Limits.LoadWave = 2
		b.arm(localbq.Fault{Match: localbq.FaultMatch{Method: "job.pending"}, Count: 3, Action: localbq.FaultAction{Barrier: true}})
		cs := []loadplan.Committable{b.stage(dst("t"), "a", 1), b.stage(dst("u"), "a", 1), b.stage(dst("v"), "a", 1)}
		done := make(chan error, 1)
		go func() { done <- b.commit(cs...) }()
		next := func() *localbq.Barrier {
			held, err := b.bq.Faults().NextBarrier(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return held
		}
		first, second := next(), next()
		first.Release()
		looks := len(b.calls("jobs.get"))
		b.eventually(func() bool { return len(b.calls("jobs.get")) > looks+3 }) // the second is awaited
		if n := len(b.calls("jobs.insert")); n != 2 {
			t.Errorf("%d submissions before the first wave has ended", n)
		}
		second.Release()
		next().Release()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := len(b.calls("jobs.insert")); n != 3 {
			t.Errorf("%d submissions", n)
		}
	})
	t.Run("a table that is not empty", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.must(b.stage(dst("t"), "a", 1).WithCheckpoint(1))
		b.cfg.Options.Plan.Disposition = loadplan.Empty
		err := b.commit(b.stage(dst("t"), "b", 2).WithCheckpoint(2))
		if failed, ok := errors.AsType[*fileload.JobError](err); !ok || failed.Reason != "duplicate" || !permanent(err) {
			t.Errorf("got %v", err)
		}
		b.holds(dst("t"), 1)
	})
}

func TestStagedFileGone(t *testing.T) {
	t.Parallel()
	gone := func(b *bench, c loadplan.Committable) {
		if err := b.bucket.Object(strings.TrimPrefix(c.URI, "gs://staged/")).Delete(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	for name, leaves := range map[string]bool{"direct": false, "with temporary tables": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, localbq.Config{})
			if leaves {
				b.leaves()
			}
			var cs []loadplan.Committable
			for i := range 5 {
				cs = append(cs, b.stage(dst("t"), fmt.Sprint(i), int64(i)).WithCheckpoint(7))
			}
			gone(b, cs[3])
			err := b.commit(cs...)
			refuses(t, err, fileload.ErrStagedFileGone)
			for _, word := range []string{cs[3].URI, "p.d.t", "checkpoint 7", "restore", "start the job from"} {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%v does not say %q", err, word)
				}
			}
			b.holds(dst("t"))
			if len(b.objects()) != 4 {
				t.Errorf("left are %v", b.objects())
			}
			// The way out: it is restored.
			b.stage(dst("t"), "3", 3)
			b.must(cs...)
			b.holds(dst("t"), 0, 1, 2, 3, 4)
		})
	}
	t.Run("several, and a bucket", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		cs := []loadplan.Committable{b.stage(dst("t"), "a", 1), b.stage(dst("t"), "b", 2), b.stage(dst("t"), "c", 3)}
		gone(b, cs[1])
		gone(b, cs[2])
		err := b.commit(cs...)
		refuses(t, err, fileload.ErrStagedFileGone)
		if !strings.Contains(err.Error(), cs[1].URI+", and 1 more") {
			t.Errorf("got %v", err)
		}
		for _, name := range b.objects() {
			if err := b.bucket.Object(name).Delete(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.bucket.Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		refuses(t, b.commit(cs...), fileload.ErrStagedFileGone)
	})
	t.Run("a table that is gone is none", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.arm(localbq.Fault{Match: localbq.FaultMatch{Method: "job.running"}, Action: localbq.FaultAction{State: []localbq.FaultState{{Do: localbq.FaultDeleteTable}}}})
		err := b.commit(b.stage(dst("t"), "a", 1))
		if failed, ok := errors.AsType[*fileload.JobError](err); !ok || failed.Reason != "notFound" || errors.Is(err, fileload.ErrStagedFileGone) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRecommit(t *testing.T) {
	t.Parallel()
	t.Run("FL-76 after success, with files and temporary tables gone", func(t *testing.T) {
		for _, d := range []loadplan.Disposition{loadplan.Append, loadplan.Truncate, loadplan.TruncateData} {
			b := newQueryBench(t)
			b.leaves()
			b.createTable(dst("t"), columns())
			b.cfg.Options.Plan.Disposition = d
			cs := []loadplan.Committable{b.stage(dst("t"), "a", 1), b.stage(dst("t"), "b", 2)}
			b.must(cs...)
			jobs := b.jobIDs()
			for range 2 {
				b.must(cs...)
			}
			b.holds(dst("t"), 1, 2)
			if again := b.jobIDs(); !slices.Equal(jobs, again) || len(b.temporary()) > 0 {
				t.Errorf("%s: jobs %v after %v, tables %v", d, again, jobs, b.temporary())
			}
		}
	})
	t.Run("FL-76 after success, and the table was dropped since", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.cfg.Create.Never = true
		b.createTable(dst("t"), columns())
		one := b.stage(dst("t"), "a", 1)
		b.must(one)
		if err := b.bq.DeleteTable("d.t"); err != nil {
			t.Fatal(err)
		}
		b.must(one)
	})
	t.Run("FL-77 a temporary table is gone, and nothing has been brought in", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.leaves()
		b.arm(failJob(localbq.FaultMatch{JobType: "copy"}, "backendError", 1))
		cs := []loadplan.Committable{b.stage(dst("t"), "a", 1), b.stage(dst("t"), "b", 2)}
		if err := b.commit(cs...); err == nil {
			t.Fatal("the commit succeeded")
		}
		before := b.jobIDs()
		if err := b.bq.DeleteTable("d." + b.temporary()[1]); err != nil {
			t.Fatal(err)
		}
		b.must(cs...)
		b.holds(dst("t"), 1, 2)
		again := b.jobIDs()[len(before):]
		if len(again) != 2 || !strings.HasSuffix(again[0], "-p1-r1") || again[1] != before[2]+"-r1" {
			t.Errorf("jobs %v after %v", again, before)
		}
	})
	t.Run("FL-77 an intermediate table is gone", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.leaves()
		b.cfg.Options.Limits.SourcesPerCopy = 2
		var cs []loadplan.Committable
		for i := range 5 {
			cs = append(cs, b.stage(dst("t"), fmt.Sprint(i), int64(i)))
		}
		b.arm(failJob(localbq.FaultMatch{JobType: "copy", Table: "d.t"}, "backendError", 1))
		if err := b.commit(cs...); err == nil {
			t.Fatal("the commit succeeded")
		}
		for _, name := range b.temporary() {
			if strings.Contains(name, "_l1_g0") {
				if err := b.bq.DeleteTable("d." + name); err != nil {
					t.Fatal(err)
				}
			}
		}
		b.must(cs...)
		b.holds(dst("t"), 0, 1, 2, 3, 4)
		if len(b.temporary()) > 0 {
			t.Errorf("left are %v", b.temporary())
		}
	})
	t.Run("a final action that runs is only awaited", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.leaves()
		cs := []loadplan.Committable{b.stage(dst("t"), "a", 1), b.stage(dst("t"), "b", 2)}
		held := b.hold(localbq.FaultMatch{Method: "job.running", JobType: "copy"})
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { first <- b.commitWith(ctx, b.committer(), cs...) }()
		job := held()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the first: %v", err)
		}
		jobs := len(b.calls("jobs.insert"))
		second := make(chan error, 1)
		go func() { second <- b.commit(cs...) }()
		b.eventually(func() bool { return len(b.log.with("a job of an earlier try is there", "state=RUNNING")) > 0 })
		job.Release()
		if err := <-second; err != nil || len(b.calls("jobs.insert")) != jobs {
			t.Errorf("%v, %d submissions", err, len(b.calls("jobs.insert"))-jobs)
		}
		b.holds(dst("t"), 1, 2)
		if len(b.temporary()) > 0 || len(b.objects()) > 0 {
			t.Errorf("left are %v and %v", b.temporary(), b.objects())
		}
	})
}

func TestConcurrency(t *testing.T) {
	t.Parallel()
	t.Run("FL-79 at most so many destinations act at once", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.cfg.Options.Plan.Location = "US"
		var cs []loadplan.Committable
		for i := range 9 {
			b.createTable(dst(fmt.Sprint("t", i)), columns())
			cs = append(cs, b.stage(dst(fmt.Sprint("t", i)), "a", 1))
		}
		b.arm(localbq.Fault{Match: localbq.FaultMatch{Method: "jobs.insert"}, Count: 9, Action: localbq.FaultAction{Barrier: true}})
		done := make(chan error, 1)
		go func() { done <- b.commit(cs...) }()
		var held []*localbq.Barrier
		for range 8 {
			one, err := b.bq.Faults().NextBarrier(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, one)
		}
		if active, most := b.meter.of("active_destinations"); active != 8 || most != 8 {
			t.Errorf("%d act, %d at most", active, most)
		}
		if queued, _ := b.meter.of("queued_destinations"); queued != 1 {
			t.Errorf("%d wait", queued)
		}
		held[0].Release()
		ninth, err := b.bq.Faults().NextBarrier(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range append(held[1:], ninth) {
			one.Release()
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		for _, gauge := range []string{"active_destinations", "queued_destinations", "pending_jobs"} {
			if now, _ := b.meter.of(gauge); now != 0 {
				t.Errorf("%s is %d after the commit", gauge, now)
			}
		}
		if _, most := b.meter.of("pending_jobs"); most == 0 {
			t.Error("no job was pending")
		}
	})
}

// many stages files files for each of so many destinations.
func (b *bench) many(destinations, files int) (cs []loadplan.Committable) {
	b.Helper()
	for i := range destinations {
		for j := range files {
			cs = append(cs, b.stage(dst(fmt.Sprint("t", i)), fmt.Sprint(j), int64(j)))
		}
	}
	return cs
}

// latency has each job wait for so long before it begins.
func latency(d time.Duration) localbq.Fault {
	return localbq.Fault{Match: localbq.FaultMatch{Method: "job.pending"}, Count: localbq.FaultAlways, Action: localbq.FaultAction{Delay: localbq.FaultDuration(d)}}
}

// TestManyDestinations: what jobs take is taken once, however many destinations there are.
func TestManyDestinations(t *testing.T) {
	t.Parallel()
	clock := localbq.NewManualClock()
	b := newBench(t, localbq.Config{Clock: clock})
	b.arm(latency(time.Second))
	done := make(chan error, 1)
	cs := b.many(50, 2)
	go func() { done <- b.commit(cs...) }()
	b.eventually(func() bool { pending, _ := b.meter.of("pending_jobs"); return pending == 50 })
	clock.Advance(time.Second)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := len(b.calls("jobs.insert")); n != 50 {
		t.Errorf("%d jobs for 50 destinations", n)
	}
	if left := b.objects(); len(left) > 0 {
		t.Errorf("%d files are left", len(left))
	}
	if now := clock.Now().Sub(localbq.NewManualClock().Now()); now != time.Second {
		t.Errorf("the service's clock has moved by %v", now)
	}
	b.holds(dst("t49"), 0, 1)
}

// BenchmarkManyDestinations commits 50 destinations of 20 files each, where each job takes a second and polls are as by default.
func BenchmarkManyDestinations(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		s := newBench(b, localbq.Config{})
		s.cfg.Pacer.Sleep = nil
		s.arm(latency(time.Second))
		cs := s.many(50, 20)
		b.StartTimer()
		s.must(cs...)
	}
}

// TestTwoAtOnce has three processes commit the same at the same time, as they do when one was taken for dead. Both succeed, or one
// fails in a way that passes, and rows are there once.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 8 {
		b := newBench(t, localbq.Config{})
		b.leaves()
		b.cfg.Options.Limits.SourcesPerCopy = 2
		b.cfg.Options.KeepFiles = round%2 == 1
		b.cfg.Options.Plan.Disposition = []loadplan.Disposition{loadplan.Append, loadplan.Truncate}[round/2%2]
		var cs []loadplan.Committable
		for i := range 5 {
			cs = append(cs, b.stage(dst("t"), fmt.Sprint(i), int64(i)))
		}
		cs = append(cs, b.stage(dst("u"), "a", 9))
		var processes sync.WaitGroup
		errs := make([]error, 3)
		for i := range errs {
			processes.Go(func() { errs[i] = b.commit(cs...) })
		}
		processes.Wait()
		for _, err := range errs {
			if err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		}
		b.holds(dst("t"), 0, 1, 2, 3, 4)
		b.holds(dst("u"), 9)
		if left := b.temporary(); len(left) > 0 {
			t.Errorf("round %d: left are %v", round, left)
		}
	}
}

// TestSeveralUnderFaults has three processes commit the same while jobs fail and answers are lost, again and again until each has
// succeeded.
func TestSeveralUnderFaults(t *testing.T) {
	t.Parallel()
	for round := range 6 {
		b := newBench(t, localbq.Config{Seed: uint64(round + 1)})
		b.leaves()
		b.cfg.Options.Limits.SourcesPerCopy = 2
		b.cfg.Options.RetryIDLimit = 100
		b.cfg.Options.InlineRetries = round % 3
		b.cfg.Options.Plan.Disposition = []loadplan.Disposition{loadplan.Append, loadplan.Truncate}[round%2]
		b.arm(localbq.Fault{Match: localbq.FaultMatch{Method: "job.running", Probability: 0.2}, Count: localbq.FaultAlways,
			Action: localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 500, Reason: "backendError"}}},
			localbq.Fault{Match: localbq.FaultMatch{Service: "rest", Probability: 0.05}, Count: localbq.FaultAlways, Action: localbq.FaultAction{LoseAck: true}})
		var cs []loadplan.Committable
		for i := range 4 {
			cs = append(cs, b.stage(dst("t"), fmt.Sprint(i), int64(i)))
		}
		cs = append(cs, b.stage(dst("u"), "a", 9))
		var processes sync.WaitGroup
		for range 3 {
			processes.Go(func() {
				var err error
				for range 50 {
					if err = b.commit(cs...); err == nil {
						return
					}
					if permanent(err) {
						break
					}
				}
				t.Errorf("round %d: %v", round, err)
			})
		}
		processes.Wait()
		b.bq.Faults().Clear()
		b.holds(dst("t"), 0, 1, 2, 3)
		b.holds(dst("u"), 9)
		if left := b.temporary(); len(left) > 0 {
			t.Errorf("round %d: left are %v", round, left)
		}
		if left := b.objects(); len(left) > 0 {
			t.Errorf("round %d: left are %v", round, left)
		}
	}
}
