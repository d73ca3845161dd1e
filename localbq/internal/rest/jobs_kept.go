package rest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// keptJob is what the store has of a job. It is written before the job is acknowledged, and again, in the commit of the job's
// rows where it has some, when the job is over: after a kill a job that moves rows runs again or not at all, and a query that
// was not over has failed.
type keptJob struct {
	Project       string                     `json:"project"`
	Location      string                     `json:"location"`
	ID            string                     `json:"id"`
	Principal     string                     `json:"principal,omitempty"`
	Created       time.Time                  `json:"created,omitzero"`
	Configuration map[string]json.RawMessage `json:"configuration,omitempty"`
	// Upload says that the job's file came with the job, and went with the process.
	Upload  bool                `json:"upload,omitempty"`
	Started time.Time           `json:"started,omitzero"`
	Ended   time.Time           `json:"ended,omitzero"` // zero while it runs
	Failed  *bqapi.ErrorProto   `json:"failed,omitempty"`
	Errors  []*bqapi.ErrorProto `json:"errors,omitempty"`
	Moved   moved               `json:"moved,omitzero"`
	Query   *keptQuery          `json:"query,omitempty"` // of a query that succeeded
	// Apart says that the outcome was not written with rows: the record's version is not theirs.
	Apart   bool `json:"apart,omitempty"`
	Deleted bool `json:"deleted,omitempty"`
}

// keptQuery is what a query left behind.
type keptQuery struct {
	Rows     int64              `json:"rows,omitempty"`
	Bytes    int64              `json:"bytes,omitempty"` // processed
	Tables   []query.Ref        `json:"tables,omitempty"`
	CacheHit bool               `json:"cacheHit,omitempty"`
	Schema   *bqapi.TableSchema `json:"schema,omitempty"`
	// Into is the table that the result is in, Instance the one of that name, Partition the part of it, Version when.
	Into      *store.TableRef `json:"into,omitempty"`
	Instance  int64           `json:"instance,omitempty"`
	Partition string          `json:"partition,omitempty"`
	Version   int64           `json:"version,omitempty"` // 0 is that of the record
	// The rest is of statements that are no queries.
	Kind     string     `json:"kind,omitempty"`
	Target   *query.Ref `json:"target,omitempty"`
	Done     string     `json:"done,omitempty"`
	Inserted int64      `json:"inserted,omitempty"`
	Updated  int64      `json:"updated,omitempty"`
	Deleted  int64      `json:"deleted,omitempty"`
}

// keptQuery is what a query's result is known by later.
func (r *jobResult) keptQuery() *keptQuery {
	k := &keptQuery{Rows: r.rows, Bytes: r.bytes, Tables: r.tables, CacheHit: r.cacheHit, Schema: r.schema, Partition: r.partition, Version: r.version}
	if r.into.Table != "" {
		k.Into = new(r.into)
	}
	if r.table != nil {
		k.Instance = r.table.Instance()
	}
	if c := r.change; c != nil {
		k.Kind, k.Target, k.Done = c.Kind, new(c.Target), c.done
		k.Inserted, k.Updated, k.Deleted = c.inserted, c.updated, c.deleted
	}
	return k
}

// result is the result that was kept, with its table if that is still there.
func (k *keptQuery) result(s *store.Store, version int64) *jobResult {
	r := &jobResult{rows: k.Rows, bytes: k.Bytes, tables: k.Tables, cacheHit: k.CacheHit, schema: k.Schema, partition: k.Partition, version: cmp.Or(k.Version, version)}
	if k.Into != nil {
		r.into = *k.Into
		// A table that the job made has the version of the record.
		if t, err := s.Table(r.into); err == nil && t.Instance() == cmp.Or(k.Instance, version) {
			r.table = t
		}
	}
	if k.Target != nil {
		r.change = &change{Change: &query.Change{Kind: k.Kind, Target: *k.Target}, done: k.Done, inserted: k.Inserted, updated: k.Updated, deleted: k.Deleted}
	}
	return r
}

// moved are the figures of a job that moves rows.
type moved struct {
	Files      int64   `json:"files,omitempty"`
	FileBytes  int64   `json:"fileBytes,omitempty"`
	Rows       int64   `json:"rows,omitempty"`
	Bytes      int64   `json:"bytes,omitempty"` // logical
	BadRecords int64   `json:"badRecords,omitempty"`
	Counts     []int64 `json:"counts,omitempty"` // of files written, by URI
}

// record is a job as the store keeps it.
func (j *job) record(k *keptJob) store.Job {
	k.Project, k.Location, k.ID = j.key.project, j.key.location, j.key.id
	raw, err := json.Marshal(k)
	if err != nil {
		panic(fmt.Sprintf("rest: job %s: %v", j.key, err)) // every field marshals
	}
	return store.Job{Name: j.key.String(), Record: raw}
}

// claim has the store remember a job before anybody is told of it.
func (js *jobs) claim(j *job) error {
	if j.kept == nil {
		return nil
	}
	j.kept.Principal, j.kept.Created = j.principal, j.created
	return js.server.Store.ClaimJob(j.record(j.kept))
}

// succeeded keeps what a job left behind.
func (k *keptJob) succeeded(j *job, r *jobResult) {
	if j.config != nil {
		k.Query = r.keptQuery()
		return
	}
	k.Moved = r.moved
}

// outcome is a job's record once it has succeeded, for the commit of its rows; nil for a job that nothing is kept of.
func (j *job) outcome(now time.Time, r *jobResult) *store.Job {
	if j.kept == nil {
		return nil
	}
	k := *j.kept
	j.mu.Lock()
	k.Started, k.Ended = j.started, now
	j.mu.Unlock()
	k.succeeded(j, r)
	for _, e := range r.errors {
		k.Errors = append(k.Errors, errorProto(e))
	}
	out := j.record(&k)
	r.recorded = true
	return &out
}

// keepOutcome has the store remember how a job ended where that is not with its rows. A service that closes leaves the job to
// the next one.
func (js *jobs) keepOutcome(j *job) {
	r, failed, _ := j.over()
	if j.kept == nil || j.kept.Configuration == nil || r != nil && r.recorded || errors.Is(failed, errClosed) {
		return
	}
	k := *j.kept
	k.Started, k.Ended, k.Apart = j.started, j.ended, true
	if failed != nil {
		k.Failed = errorProto(failed)
	} else {
		k.succeeded(j, r)
	}
	// A store that is broken says so to everybody.
	_ = js.server.Store.PutJob(j.record(&k))
}

// restore takes up the jobs that the store remembers, and runs again those that were not over, but for queries, which fail. Of a record that this version
// cannot read the id stays used up, which the store sees to.
func (js *jobs) restore() {
	for _, kept := range js.server.Store.Jobs() {
		k := &keptJob{}
		if json.Unmarshal(kept.Record, k) != nil {
			continue
		}
		key := jobKey{k.Project, k.Location, k.ID}
		js.ids[key] = true
		t, err := readTask(k.Configuration)
		if k.Deleted || err != nil {
			continue
		}
		j := &job{key: key, principal: k.Principal, task: t, created: k.Created, kept: k, done: make(chan struct{})}
		j.config, _ = t.(*queryConfig)
		switch {
		case !k.Ended.IsZero():
			if k.Apart {
				kept.Version = 0
			}
			j.restored(js.server.Store, kept.Version)
			js.byKey[key] = j
		case k.Upload:
			js.lost(j, "The service ended before the job did, and the job's file went with it. Retry the job with another id.")
		case j.config != nil:
			js.lost(j, "The service ended before the job did. Retry the job with another id.")
		default:
			js.begin(j)
		}
	}
}

// readTask reads a configuration that was kept.
func readTask(object map[string]json.RawMessage) (task, error) {
	if object["query"] != nil {
		return readConfiguration(object)
	}
	return readTransfer(object)
}

// lost fails a job that the end of the service has ended.
func (js *jobs) lost(j *job, message string) {
	js.byKey[j.key] = j
	j.cancel = func(error) {}
	j.finish(js.server.Clock.Now(), nil, refusal.New(refusal.BackendError, "%s", message), nil)
	js.keepOutcome(j)
}

// restored ends a job as it ended before.
func (j *job) restored(s *store.Store, version int64) {
	j.cancel = func(error) {}
	j.started, j.ended = j.kept.Started, j.kept.Ended
	if e := j.kept.Failed; e != nil {
		j.failed = &refusal.Error{Reason: refusal.Reason(e.Reason), Message: e.Message, Location: e.Location}
	} else {
		j.result = &jobResult{moved: j.kept.Moved, version: version}
		if j.kept.Query != nil {
			j.result = j.kept.Query.result(s, version)
		}
		if visible := store.TimeOf(version); j.ended.Before(visible) {
			j.ended = visible.Truncate(time.Millisecond).Add(time.Millisecond)
		}
		for _, e := range j.kept.Errors {
			j.result.errors = append(j.result.errors, &refusal.Error{Reason: refusal.Reason(e.Reason), Message: e.Message})
		}
	}
	close(j.done)
}
