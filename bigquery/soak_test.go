package bigquery

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/stream"
)

var soakLength = flag.Duration("soak", 0, "how long TestSoak runs; 0 skips it")

// soakPlan is the measure of a soak, in proportion to how long it takes. An hour has 10,000 destinations for each job.
type soakPlan struct {
	length       time.Duration
	destinations int           // that come and go
	pass         time.Duration // in which each of them comes once
	active       int           // of a lane at one time
	rate         int           // records a second, of a lane
	idle         time.Duration // after which a destination is let go
	checkpoints  time.Duration
	storm        time.Duration // how long quotas are used up, three times
	sample       time.Duration
}

const soakLanes = 2

func newSoakPlan(length time.Duration) soakPlan {
	p := soakPlan{length: length, rate: 1000}
	p.destinations = max(60, int(10_000*length/time.Hour))
	p.pass = length / 6
	p.active = max(2, p.destinations/soakLanes/20)
	p.idle = max(p.pass/60, 10*time.Millisecond)
	p.checkpoints = max(p.pass/120, 200*time.Millisecond)
	p.storm = length / 180
	p.sample = max(length/120, 200*time.Millisecond)
	return p
}

// TestSoak runs two jobs for as long as it is told, one of each method, whose tables come and go, while the service fails one
// call in twenty, uses its quotas up three times, loses a table of each job, and the rows of some tables get one more column.
// What the process holds must not grow, and every record must be accounted for.
func TestSoak(t *testing.T) {
	if *soakLength == 0 {
		return // it takes a while: make soak SOAK=1h
	}
	s := &soak{T: t, plan: newSoakPlan(*soakLength)}
	s.began = time.Now()
	s.service = startSoakService(t)
	s.service.fault(soakFaults...)
	before := takeFootprint()
	s.jobs = []*soakJob{s.job("default", "a", MethodDefault), s.job("exactly-once", "x", MethodExactlyOnce)}
	s.run()
	for _, j := range s.jobs {
		j.check(s)
	}
	s.service.fired()
	s.samples.check(t, s.plan)
	s.tidy(before)
}

type soak struct {
	*testing.T
	plan    soakPlan
	began   time.Time
	service *soakService
	jobs    []*soakJob
	samples footprints
}

// soakJob is one of the jobs.
type soakJob struct {
	name    string
	dataset string
	source  *soakSource
	sink    *Sink[[]byte]
	handle  engine.Handle
	rested  int   // checkpoints when the fallow table had got its last row
	dropped int64 // rows of the table that was deleted

	result engine.Result
	err    error
}

func (s *soak) job(name, dataset string, m Method) *soakJob {
	s.Helper()
	j := &soakJob{name: name, dataset: dataset, source: newSoakSource(s.plan, s.began.Add(s.plan.length))}
	rows := newSoakRows(s, j.source)
	o := SinkOptions{Method: m, Connection: s.service.connection, Failures: stream.LogAndDrop(), SchemaUpdate: SchemaUpdate{AllowNewFields: true}}
	o.Create.Datasets = true
	if m == MethodExactlyOnce {
		o.BufferedStream.DestinationIdleTimeout = s.plan.idle
	} else {
		o.DefaultStream.DestinationIdleTimeout = s.plan.idle
	}
	var err error
	if j.sink, err = NewSink(soakTemplate(s, dataset), row.Serializer[[]byte](rows), o); err != nil {
		s.Fatal(err)
	}
	// Half a minute for each change of a table would be most of a short run.
	j.sink.config.write.SchemaWait.Initial = max(s.plan.length/120, 10*time.Millisecond)
	j.sink.config.write.SchemaWait.Max = j.sink.config.write.SchemaWait.Initial
	return j
}

// run runs the jobs to their end, and what happens meanwhile.
func (s *soak) run() {
	ctx, cancel := context.WithTimeout(s.Context(), s.plan.length+s.plan.length/4+2*time.Minute)
	defer cancel()
	var running sync.WaitGroup
	for _, j := range s.jobs {
		running.Go(func() {
			j.result, j.err = engine.Run(ctx, engine.Job[[]byte, []byte]{Name: j.name, Source: j.source, Sink: j.sink}, engine.Options{
				Lanes: soakLanes, Handle: &j.handle,
				Checkpoint: engine.Checkpointing{Every: s.plan.checkpoints},
				Restart:    engine.Restart{Policy: engine.FixedDelay, Initial: max(s.plan.length/3600, 10*time.Millisecond), Attempts: 1000},
			})
		})
	}
	ended := make(chan struct{})
	go func() { // ends with the jobs
		defer close(ended)
		running.Wait()
	}()
	s.watch(ended)
}

// soakEvent is something that happens after a part of the time, once it reports that it has.
type soakEvent struct {
	at float64
	do func() bool
}

// watch takes samples until the jobs have ended, and lets happen what is to happen.
func (s *soak) watch(ended <-chan struct{}) {
	events := []soakEvent{
		{0.30, s.storm}, {0.40, func() bool { return s.drop(s.jobs[0]) }}, {0.40, func() bool { return s.drop(s.jobs[1]) }},
		{0.50, s.drift}, {0.55, s.storm}, {0.80, s.storm},
	}
	tick := time.NewTicker(s.plan.sample)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			if len(events) > 0 {
				s.Errorf("%d of what was to happen did not", len(events))
			}
			return
		case <-tick.C:
		}
		into := time.Since(s.began)
		events = slices.DeleteFunc(events, func(e soakEvent) bool {
			return into >= time.Duration(e.at*float64(s.plan.length)) && e.do()
		})
		f := takeFootprint()
		f.at = time.Since(s.began)
		s.samples = append(s.samples, f)
		line := f.String()
		for _, j := range s.jobs {
			status := j.handle.Status()
			line += fmt.Sprintf(" | %s: %d read, %d restarts", j.name, status.Tally.Read, status.Restarts)
			if status.LastFailure != nil && s.plan.sample < time.Since(status.LastFailureAt) {
				continue
			} else if status.LastFailure != nil {
				s.Logf("%s: attempt failed: %v", j.name, status.LastFailure)
			}
		}
		s.Log(line)
	}
}

func (s *soak) storm() bool {
	s.Log("quotas are used up")
	s.service.storm(s.plan.storm)
	return true
}

// drop deletes a table of a job once it may. Of the job that appends to default streams it is one that is written to all the
// time. Rows on their way to streams of its own would be gone with a table, which that method does not get over: there it is
// one whose rows are all visible.
func (s *soak) drop(j *soakJob) bool {
	name := j.dataset + "." + soakHot
	if j.sink.config.write.Buffered {
		checkpoints := j.handle.Status().Checkpoints
		if j.rested == 0 && j.source.fallow() {
			j.rested = checkpoints
		}
		if j.rested == 0 || checkpoints < j.rested+3 { // one may be under way, and the commit of another
			return false
		}
		name = j.dataset + "." + soakFallow
	}
	s.Logf("table %s is deleted", name)
	j.dropped = s.service.drop(name)
	j.source.dropped.Store(true)
	return true
}

// drift gives the rows of some tables one more column.
func (s *soak) drift() bool {
	s.Log("rows get another column")
	for _, j := range s.jobs {
		j.source.drifted.Store(true)
	}
	return true
}

// check accounts for the job's records.
func (j *soakJob) check(s *soak) {
	s.Helper()
	tally := j.result.Tally
	visible := j.dropped + s.service.rows(j.dataset, s.plan.destinations)
	created, widened := 0, 0
	for _, r := range j.sink.Report() {
		if r.Created {
			created++
		}
		if len(r.Changes) > 0 {
			widened++
		}
	}
	s.Logf("%s: %+v, %d rows in tables, %d tables created, %d widened, %d restarts, %d checkpoints", j.name, tally, visible, created, widened,
		j.result.Restarts, j.result.Checkpoints)
	if j.err != nil {
		s.Errorf("%s: %v", j.name, j.err)
		return
	}
	if tally.Lost() != 0 || tally.Failed != 0 || tally.Read != j.source.read() {
		s.Errorf("%s: %d of %d records are not accounted for, %d failed; the source gave %d", j.name, tally.Lost(), tally.Read, tally.Failed, j.source.read())
	}
	if tally.DeadLettered == 0 || tally.Skipped == 0 || created == 0 || widened == 0 {
		s.Errorf("%s: nothing was refused, skipped, created or widened: the input is no test", j.name)
	}
	if visible < tally.Written || j.sink.config.write.Buffered && visible != tally.Written {
		s.Errorf("%s: %d rows are visible, %d were written", j.name, visible, tally.Written)
	}
}

// tidy waits until everything that the jobs held is gone.
func (s *soak) tidy(before footprint) {
	s.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		after := takeFootprint()
		if after.goroutines <= before.goroutines && after.sockets <= before.sockets {
			return
		}
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			s.Errorf("left behind: %d goroutines and %d connections of %d and %d\n%s", after.goroutines, after.sockets,
				before.goroutines, before.sockets, stacks[:runtime.Stack(stacks, true)])
			return
		}
		runtime.Gosched()
	}
}

// footprints are what the process held at times.
type footprints []footprint

// check compares the beginning with the end of what follows the warm-up, which ends when every destination has been there
// once and a half: neither may what the process holds have grown by a tenth, nor by more than it varies by anyway.
func (f footprints) check(t *testing.T, p soakPlan) {
	t.Helper()
	for len(f) > 0 && f[0].at < p.pass*3/2 {
		f = f[1:]
	}
	if len(f) < 9 {
		t.Fatalf("%d samples after the warm-up: expected 9 or more", len(f))
	}
	third := len(f) / 3
	for _, what := range []struct {
		name  string
		of    func(footprint) int
		slack int
	}{
		{"heap", func(f footprint) int { return f.heap }, 4 << 20},
		{"memory", func(f footprint) int { return f.resident }, 24 << 20},
		{"goroutines", func(f footprint) int { return f.goroutines }, 100},
		{"connections", func(f footprint) int { return f.sockets }, 6},
	} {
		first, last, most := median(f[:third], what.of), median(f[len(f)-third:], what.of), 0
		for _, one := range f {
			most = max(most, what.of(one))
		}
		t.Logf("%s: median %d after the warm-up, %d at the end, at most %d", what.name, first, last, most)
		if last > first+first/10+what.slack {
			t.Errorf("%s grew from %d to %d", what.name, first, last)
		}
	}
}

func median(f footprints, of func(footprint) int) int {
	var all []int
	for _, one := range f {
		all = append(all, of(one))
	}
	slices.Sort(all)
	return all[len(all)/2]
}
