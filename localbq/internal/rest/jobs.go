package rest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// jobs are all jobs of a service. An id is used up for good (BigQuery keeps ids for six months).
type jobs struct {
	server  *Server
	ctx     context.Context // of running jobs
	stop    context.CancelCauseFunc
	running sync.WaitGroup
	slots   chan struct{} // a job that runs holds one

	mu       sync.Mutex // guards the fields below
	byKey    map[jobKey]*job
	ids      map[jobKey]bool          // used up, deleted jobs included
	claiming map[jobKey]chan struct{} // those whose job is not there yet; closed once it is, or is not going to be
	requests map[requestKey]*request  // by requestId of jobs.query
	swept    time.Time                // when the old ones of them were forgotten
	expiring map[store.TableRef]clock.Timer
}

// requestKey is one client's retries of one call.
type requestKey struct{ project, principal, id string }

type request struct {
	at        time.Time
	submitted chan struct{} // closed once the next two are there
	job       *job
	err       error
}

// maxRunning is how many queries run at once; others are PENDING.
const maxRunning = 8

var errClosed = errors.New("the service is closing")

func newJobs(s *Server) *jobs {
	ctx, stop := context.WithCancelCause(context.Background())
	return &jobs{
		server: s, ctx: ctx, stop: stop, slots: make(chan struct{}, maxRunning),
		byKey: map[jobKey]*job{}, ids: map[jobKey]bool{}, claiming: map[jobKey]chan struct{}{}, requests: map[requestKey]*request{}, expiring: map[store.TableRef]clock.Timer{},
	}
}

func (js *jobs) close() {
	js.stop(errClosed)
	js.running.Wait()
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, t := range js.expiring {
		t.Stop()
	}
}

// deleteLater deletes a result when its time has come.
func (js *jobs) deleteLater(ref store.TableRef) {
	js.mu.Lock()
	defer js.mu.Unlock()
	js.expiring[ref] = js.server.Clock.AfterFunc(anonymousLife, func() {
		js.mu.Lock()
		delete(js.expiring, ref)
		js.mu.Unlock()
		// A client may have deleted it, and a store that is broken says so to everybody else.
		_ = js.server.Store.DeleteTable(ref)
	})
}

var jobID = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// submit makes a job and starts it. An id that has been used is refused, whatever became of the first. What kept describes is
// remembered for good.
func (js *jobs) submit(key jobKey, principal string, t task, kept *keptJob) (*job, error) {
	if key.id == "" {
		key.id = newJobID()
	} else if len(key.id) > 1024 || !jobID.MatchString(key.id) {
		return nil, refusal.New(refusal.Invalid, "Invalid job ID %q. Job IDs must be alphanumeric (plus underscores and dashes) and at most 1024 characters long.", key.id)
	}
	key.location = normalLocation(key.location)
	if err := js.reserve(key); err != nil {
		return nil, err
	}
	j := &job{key: key, principal: principal, task: t, kept: kept, created: js.server.Clock.Now(), done: make(chan struct{})}
	j.config, _ = t.(*queryConfig)
	if err := js.claim(j); err != nil {
		js.release(key)
		return nil, err
	}
	js.begin(j)
	return j, nil
}

// reserve uses an id up. Nobody is told that there is such a job before everybody can see it.
func (js *jobs) reserve(key jobKey) error {
	for {
		js.mu.Lock()
		used, claimed := js.ids[key], js.claiming[key]
		if !used {
			js.ids[key], js.claiming[key] = true, make(chan struct{})
		}
		js.mu.Unlock()
		switch {
		case !used:
			return nil
		case claimed == nil:
			return refusal.New(refusal.Duplicate, "Already Exists: Job %s", key)
		}
		<-claimed
	}
}

func (js *jobs) release(key jobKey) {
	js.mu.Lock()
	defer js.mu.Unlock()
	delete(js.ids, key)
	js.claimed(key)
}

// claimed says that an id's job is there, or is not going to be; js.mu is held.
func (js *jobs) claimed(key jobKey) {
	if claiming := js.claiming[key]; claiming != nil {
		close(claiming)
		delete(js.claiming, key)
	}
}

// begin starts a job whose id is its own.
func (js *jobs) begin(j *job) {
	ctx, cancel := context.WithCancelCause(js.ctx)
	j.cancel = cancel
	js.mu.Lock()
	defer js.mu.Unlock()
	js.byKey[j.key] = j
	js.claimed(j.key)
	leave, refused := js.server.limits.queue(j)
	js.running.Go(func() { js.run(ctx, j, leave, refused) })
}

func newJobID() string {
	var b [16]byte
	rand.Read(b[:])
	return "job_" + hex.EncodeToString(b[:])
}

// String is the spelling of messages, p:LOC.id.
func (k jobKey) String() string {
	if k.location == "" {
		return k.project + ":" + k.id
	}
	return k.project + ":" + k.location + "." + k.id
}

// normalLocation is a location as jobs are kept by it: multi-regions in upper case, regions in lower case.
func normalLocation(l string) string {
	if strings.EqualFold(l, "US") || strings.EqualFold(l, "EU") {
		return strings.ToUpper(l)
	}
	return strings.ToLower(l)
}

// find is the job of that name. Without a location it is looked for in the multi-regions only (BigQuery documentation,
// jobs.get).
func (js *jobs) find(project, location, id string) (*job, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	locations := []string{"US", "EU"}
	if location != "" {
		locations = []string{normalLocation(location)}
	}
	for _, l := range locations {
		if j := js.byKey[jobKey{project, l, id}]; j != nil {
			return j, nil
		}
	}
	return nil, refusal.New(refusal.NotFound, "Not found: Job %s", jobKey{project, normalLocation(location), id})
}

// remove forgets a job, but not that its id was used.
func (js *jobs) remove(j *job) error {
	js.mu.Lock()
	delete(js.byKey, j.key)
	js.mu.Unlock()
	if j.kept == nil {
		return nil
	}
	return js.server.Store.PutJob(j.record(&keptJob{Deleted: true}))
}

// of are the jobs of a project, the newest first.
func (js *jobs) of(project string) []*job {
	js.mu.Lock()
	defer js.mu.Unlock()
	var out []*job
	for _, j := range js.byKey {
		if j.key.project == project {
			out = append(out, j)
		}
	}
	slices.SortFunc(out, func(a, b *job) int {
		return cmp.Or(b.created.Compare(a.created), strings.Compare(a.key.id, b.key.id))
	})
	return out
}

// requestLife is how long a retry of jobs.query with the same requestId gets the first answer (BigQuery documentation,
// QueryRequest.requestId).
const requestLife = 15 * time.Minute

// once makes one job of all calls of jobs.query with one requestId, also of those that come at once.
func (js *jobs) once(ctx context.Context, key requestKey, submit func() (*job, error)) (*job, error) {
	if key.id == "" {
		return submit()
	}
	r, first := js.request(key)
	if !first {
		select {
		case <-r.submitted:
			return r.job, r.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	r.job, r.err = submit()
	close(r.submitted)
	if r.err != nil { // nothing was done: a retry may fare better
		js.mu.Lock()
		defer js.mu.Unlock()
		delete(js.requests, key)
	}
	return r.job, r.err
}

// request is the request of a key, and whether the caller is the first to ask. Those whose time is over are forgotten.
func (js *jobs) request(key requestKey) (r *request, first bool) {
	js.mu.Lock()
	defer js.mu.Unlock()
	now := js.server.Clock.Now()
	if r = js.requests[key]; r != nil && now.Before(r.at.Add(requestLife)) {
		return r, false
	}
	if now.Sub(js.swept) >= requestLife {
		maps.DeleteFunc(js.requests, func(_ requestKey, r *request) bool { return !now.Before(r.at.Add(requestLife)) })
		js.swept = now
	}
	r = &request{at: now, submitted: make(chan struct{})}
	js.requests[key] = r
	return r, true
}

// wait waits until a job is over, the time given has passed on the service's clock, or the client has gone.
func (js *jobs) wait(ctx context.Context, j *job, most time.Duration) error {
	late := make(chan struct{})
	timer := js.server.Clock.AfterFunc(most, func() { close(late) })
	defer timer.Stop()
	select {
	case <-j.done:
	case <-late:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
