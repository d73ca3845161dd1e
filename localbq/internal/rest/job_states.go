package rest

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/profile"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// JobState is a state that a job has got into.
type JobState struct {
	// Method is job.pending, job.running or job.done: done is behind the job's work and before anybody is told of it.
	Method    string
	Name, ID  string // p:LOC.id and id
	Type      string // load, copy, extract, query
	Principal string
	Table     store.TableRef // that the job writes, if it names one
}

// reach tells of a state, and holds the job there for a time drawn from the window.
func (js *jobs) reach(ctx context.Context, j *job, method string, w profile.Window) error {
	if s := js.server; s.JobState != nil {
		kind, table := j.writes()
		err := s.JobState(ctx, JobState{Method: method, Name: j.key.String(), ID: j.key.id, Type: kind, Principal: j.principal, Table: table})
		if err != nil {
			return err
		}
	}
	if w == (profile.Window{}) {
		return context.Cause(ctx)
	}
	random := rand.New(rand.NewPCG(js.server.Seed, uint64(j.created.UnixNano())))
	return clock.Sleep(ctx, js.server.Clock, w.Draw(random))
}

// pending keeps a job waiting until it may run. Without an error the caller gives the slot back.
func (js *jobs) pending(ctx context.Context, j *job) error {
	if err := js.reach(ctx, j, "job.pending", js.server.Profile.Windows.JobPending); err != nil {
		return err
	}
	select {
	case js.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// perform does a job's work.
func (js *jobs) perform(ctx context.Context, j *job) (*jobResult, error) {
	if err := js.server.limits.start(j); err != nil {
		return nil, err
	}
	if err := js.reach(ctx, j, "job.running", js.server.Profile.Windows.JobRunning); err != nil {
		return nil, err
	}
	result, err := j.task.run(ctx, js.server, j)
	if err == nil {
		_ = js.reach(ctx, j, "job.done", profile.Window{}) // the rows are there: nothing undoes that
	}
	return result, err
}

// writes is a job's type and the table that it writes; no table of a query that names none, and of an extract job.
func (j *job) writes() (kind string, table store.TableRef) {
	switch t := j.task.(type) {
	case *loadConfig:
		return "load", tableRef(t.DestinationTable, j.key.project)
	case *copyConfig:
		return "copy", tableRef(t.DestinationTable, j.key.project)
	case *queryConfig:
		return "query", tableRef(t.DestinationTable, j.key.project)
	}
	return "extract", store.TableRef{}
}

// DropResult deletes the anonymous table of a query's result before its time.
func (s *Server) DropResult(id string) error {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	for key, j := range s.jobs.byKey {
		r, _, over := j.over()
		if key.id != id || !over || r == nil || r.table == nil || j.config == nil || j.config.DestinationTable != nil {
			continue
		}
		return s.Store.DeleteTable(r.table.Ref())
	}
	return fmt.Errorf("job %q: there is no query of this id whose result is in an anonymous table", id)
}
