package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// keptJob is what the store has of a job: of a query its name, of a job that moves rows all of it. It is written before the job is acknowledged, and again, in the
// commit of the job's rows where it has some, when the job is over: a service that is killed runs the job again or not at all.
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
	Deleted bool                `json:"deleted,omitempty"`
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

// outcome is a job's record once it has succeeded, for the commit of its rows.
func (j *job) outcome(now time.Time, r *jobResult) *store.Job {
	k := *j.kept
	j.mu.Lock()
	k.Started, k.Ended, k.Moved = j.started, now, r.moved
	j.mu.Unlock()
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
	k.Started, k.Ended = j.started, j.ended
	if failed != nil {
		k.Failed = errorProto(failed)
	} else {
		k.Moved = r.moved
	}
	// A store that is broken says so to everybody.
	_ = js.server.Store.PutJob(j.record(&k))
}

// restore takes up the jobs that the store remembers, and runs again those that were not over. Of a record that this version
// cannot read the id stays used up, which the store sees to.
func (js *jobs) restore() {
	for _, kept := range js.server.Store.Jobs() {
		k := &keptJob{}
		if json.Unmarshal(kept.Record, k) != nil {
			continue
		}
		key := jobKey{k.Project, k.Location, k.ID}
		js.ids[key] = true
		t, err := readTransfer(k.Configuration)
		if k.Deleted || err != nil {
			continue
		}
		j := &job{key: key, principal: k.Principal, task: t, created: k.Created, kept: k, done: make(chan struct{})}
		switch {
		case !k.Ended.IsZero():
			j.restored(kept.Version)
			js.byKey[key] = j
		case k.Upload:
			js.byKey[key] = j
			j.cancel = func(error) {}
			j.finish(js.server.Clock.Now(), nil, refusal.New(refusal.BackendError, "The service ended before the job did, and the job's file went with it. Retry the job with another id."))
			js.keepOutcome(j)
		default:
			js.begin(j)
		}
	}
}

// restored ends a job as it ended before.
func (j *job) restored(version int64) {
	j.cancel = func(error) {}
	j.started, j.ended = j.kept.Started, j.kept.Ended
	if e := j.kept.Failed; e != nil {
		j.failed = &refusal.Error{Reason: refusal.Reason(e.Reason), Message: e.Message, Location: e.Location}
	} else {
		j.result = &jobResult{moved: j.kept.Moved, version: version}
		if visible := store.TimeOf(version); j.ended.Before(visible) {
			j.ended = visible.Truncate(time.Millisecond).Add(time.Millisecond)
		}
		for _, e := range j.kept.Errors {
			j.result.errors = append(j.result.errors, &refusal.Error{Reason: refusal.Reason(e.Reason), Message: e.Message})
		}
	}
	close(j.done)
}
