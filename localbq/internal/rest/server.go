package rest

import (
	"context"
	"net/http"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/objects"
	"github.com/millrace-dev/millrace/localbq/internal/profile"
	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/store"
	"github.com/millrace-dev/millrace/localbq/internal/storm"
)

// Deps are what the REST face stands on.
type Deps struct {
	Store *store.Store
	// Objects is the Cloud Storage that load jobs read.
	Objects *objects.Store
	Clock   clock.Clock
	// Queries runs statements; nil where the service has no engine, and NoQueries then says why.
	Queries   query.Engine
	NoQueries string
	// Profile has the window of tables' figures, which Seed draws.
	Profile profile.Profile
	Seed    uint64
	// Storms are windows held open and quotas used up by fault rules; nil is none.
	Storms *storm.Storms
	// Watch, if not nil, is told of every call in each of its phases, and may hold it, refuse it or cut it off.
	Watch Watcher
	// Reads, if not nil, is told of the objects that a job, as p:LOC.id, is going to read.
	Reads func(job string, found []objects.Object)
	// JobState, if not nil, is told of every state that a job gets into, and may hold it there. An error fails the job.
	JobState func(ctx context.Context, j JobState) error
	// Denied, if not nil, reports whether a principal lacks a permission on a resource, which is named as in
	// projects/p/datasets/d/tables/t.
	Denied func(principal, permission, resource string) bool
}

// Server is the REST face. Safe for concurrent use.
type Server struct {
	Deps
	mux     *http.ServeMux
	jobs    *jobs
	uploads uploads
	// inserted remembers the insertIds of tabledata.insertAll.
	inserted insertIDs
	results  resultCache
	limits   limits
}

// New makes a REST face. Whoever made it closes it.
func New(d Deps) *Server {
	if d.Clock == nil {
		d.Clock = clock.Real()
	}
	s := &Server{Deps: d, mux: http.NewServeMux(), limits: newLimits(d.Profile.Quotas, d.Clock, d.Storms)}
	s.jobs = newJobs(s)
	s.route()
	s.jobs.restore()
	return s
}

// StopJobs ends what jobs do, without a wait for them: Close waits. It may be called more than once.
func (s *Server) StopJobs() { s.jobs.stop(errClosed) }

// Close ends running jobs and waits for them. The clients' calls have to be over.
func (s *Server) Close() error {
	s.jobs.close()
	return nil
}

// prefixes are what clients put before a path. The Go client replaces its whole base path by the endpoint it is given, so a
// path without a prefix is as good.
var prefixes = []string{"/upload/bigquery/v2", "/resumable/upload/bigquery/v2", "/bigquery/v2"}

// ServeHTTP answers one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if method := r.Header.Get("X-HTTP-Method-Override"); method != "" && r.Method == http.MethodPost {
		r.Method = strings.ToUpper(method)
	}
	for _, prefix := range prefixes {
		if path, ok := strings.CutPrefix(r.URL.Path, prefix); ok && strings.HasPrefix(path, "/") {
			if prefix != "/bigquery/v2" {
				path = "/upload" + path
			}
			r.URL.Path, r.URL.RawPath = path, ""
			break
		}
	}
	s.mux.ServeHTTP(w, r)
}
