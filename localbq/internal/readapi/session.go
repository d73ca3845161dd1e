package readapi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/ingestion"
	"github.com/millrace-dev/millrace/localbq/internal/projection"
	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// lifetime of a session (measured by another connector: exactly six hours, 2026-08).
const lifetime = 6 * time.Hour

// sessions are all sessions of a service. A session that has expired leaves its name behind, so that a late reader hears
// what happened.
type sessions struct {
	clock   clock.Clock
	mu      *sync.Mutex // guards the maps
	streams map[string]*stream
	expired map[string]string // stream to session
	living  map[string]*life  // by session
}

// life is what ends with a session.
type life struct {
	timer   clock.Timer
	streams []string
}

func newSessions(c clock.Clock) sessions {
	return sessions{c, new(sync.Mutex), map[string]*stream{}, map[string]string{}, map[string]*life{}}
}

// session is one snapshot of a table and how it is read. Nothing of it changes but its streams.
type session struct {
	name        string
	expires     time.Time
	table       *store.Table
	snapshot    *store.Snapshot
	projection  *projection.Projection
	restriction query.Restriction // nil where there is none
	format      format
}

// stream is a run of a session's rows.
type stream struct {
	name    string
	session *session

	mu       sync.Mutex // guards the fields below until resolved
	resolved bool
	runs     []run
	rows     int64
}

// run is consecutive rows of one batch, or some of them.
type run struct {
	first  int64             // id of the batch's first row
	batch  arrow.RecordBatch // the whole table's columns
	picked []int32           // the rows that match the restriction, ascending; nil for all
	rows   int64
}

// newID is 24 random hexadecimal digits.
func newID() string {
	var b [12]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// add publishes streams of a session, and lets them go when it expires. Of one that has expired meanwhile only the names are
// kept: its timer would fire here and now, on a clock that is moved by hand.
func (s *sessions) add(session *session, streams ...*stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, left := s.living[session.name], session.expires.Sub(s.clock.Now())
	if left <= 0 {
		for _, st := range streams {
			s.expired[st.name] = session.name
		}
		return
	}
	if l == nil {
		l = &life{timer: s.clock.AfterFunc(left, func() { s.expire(session.name) })}
		s.living[session.name] = l
	}
	for _, st := range streams {
		s.streams[st.name] = st
		l.streams = append(l.streams, st.name)
	}
}

func (s *sessions) expire(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.living[session]
	if l == nil {
		return
	}
	delete(s.living, session)
	for _, name := range l.streams {
		delete(s.streams, name)
		s.expired[name] = session
	}
}

// expireNow ends a session before its time, by its name or that of one of its streams.
func (s *sessions) expireNow(name string) bool {
	s.mu.Lock()
	if st := s.streams[name]; st != nil {
		name = st.session.name
	}
	l := s.living[name]
	s.mu.Unlock()
	if l == nil {
		return false
	}
	l.timer.Stop()
	s.expire(name)
	return true
}

func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.living {
		l.timer.Stop()
	}
	clear(s.living)
	clear(s.streams)
}

// find is the stream of that name.
func (s *sessions) find(name string) (*stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.streams[name]; st != nil && st.session.expires.After(s.clock.Now()) {
		return st, nil
	} else if st != nil {
		return nil, expired(st.session.name)
	}
	if session, ok := s.expired[name]; ok {
		return nil, expired(session)
	}
	return nil, status.Errorf(codes.NotFound, "Not found: read stream %s", name)
}

func expired(session string) error {
	return status.Errorf(codes.FailedPrecondition, "session expired: %s: a read session lives six hours", session)
}

// resolve applies the session's restriction to the stream's rows, once. Afterwards runs and rows do not change.
func (st *stream) resolve(ctx context.Context) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.resolved {
		return nil
	}
	var runs []run
	rows := int64(0)
	for _, r := range st.runs {
		if st.session.restriction != nil {
			whole := ingestion.Append(st.session.table, st.session.snapshot.Info.Definition, store.Part{First: r.first, Batch: r.batch})
			picked, err := st.session.restriction.Rows(ctx, whole)
			if err != nil {
				return statusOf(err)
			}
			r.rows = int64(len(picked))
			if r.rows < r.batch.NumRows() {
				r.picked = picked
			}
		}
		if r.rows > 0 {
			runs = append(runs, r)
			rows += r.rows
		}
	}
	st.runs, st.rows, st.resolved = runs, rows, true
	return nil
}
