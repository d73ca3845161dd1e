package rest

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// The result cache: the same query over tables that have not changed answers the anonymous table of the first (BigQuery
// documentation, "Using cached query results"). It is in memory, and begins empty when the service starts.

// cacheKey is everything that two queries must share: the text and what decides about its meaning.
type cacheKey struct{ project, location, principal, sql, defaults, parameters string }

// cached is a result and the tables and views that it was made of.
type cached struct {
	result  *jobResult
	sources []cacheSource
	at      time.Time
}

// cacheSource is one table or view as a query found it.
type cacheSource struct {
	ref      query.Ref
	instance int64
	modified time.Time
}

// resultCache is safe for concurrent use; its zero value is ready.
type resultCache struct {
	mu      sync.Mutex // guards results
	results map[cacheKey]*cached
}

func (j *job) cacheKey() cacheKey {
	k := cacheKey{project: j.key.project, location: j.key.location, principal: j.principal, sql: j.config.Query, parameters: string(j.config.raw)}
	if d := j.config.DefaultDataset; d != nil {
		raw, err := json.Marshal([]string{d.ProjectId, d.DatasetId})
		if err != nil {
			panic(err) // strings always marshal
		}
		k.defaults = string(raw)
	}
	return k
}

// cacheable reports whether a job may take its result from the cache, and leave it there.
func (c *queryConfig) cacheable() bool {
	return c.DestinationTable == nil && (c.UseQueryCache == nil || *c.UseQueryCache)
}

// cached is a result of the same query that still holds; nil where there is none.
func (s *Server) cached(ctx context.Context, j *job, found *catalog) *jobResult {
	if !j.config.cacheable() {
		return nil
	}
	key := j.cacheKey()
	s.results.mu.Lock()
	kept := s.results.results[key]
	s.results.mu.Unlock()
	if kept == nil || !s.holds(ctx, kept, found) {
		return nil
	}
	hit := *kept.result
	hit.bytes, hit.cacheHit, hit.recorded = 0, true, false
	return &hit
}

// holds reports whether a result is still there and what it was made of is as it was. The principal may still read it, or the
// query itself will say that it may not.
func (s *Server) holds(ctx context.Context, c *cached, found *catalog) bool {
	t, err := s.Store.Table(c.result.table.Ref())
	if err != nil || t.Instance() != c.result.table.Instance() {
		return false
	}
	for _, source := range c.sources {
		if _, err := found.Table(ctx, source.ref, time.Time{}); err != nil {
			return false
		}
		if now, ok := s.cacheSource(source.ref); !ok || now != source {
			return false
		}
	}
	return true
}

// cacheSource is a table as it is now; false where it has rows that were streamed in the last minutes, or changes that have
// not been applied, which no result in the cache speaks of.
func (s *Server) cacheSource(ref query.Ref) (cacheSource, bool) {
	t, err := s.Store.Table(store.TableRef(ref))
	if err != nil {
		return cacheSource{}, false
	}
	if t.Waiting() { // what a query sees of them may change with the time alone
		return cacheSource{}, false
	}
	stats := t.Stats()
	if t.Info().View == nil {
		var figures bqapi.Table
		if s.addFigures(&figures, t, stats); figures.StreamingBuffer != nil {
			return cacheSource{}, false
		}
	}
	return cacheSource{ref, t.Instance(), stats.Modified}, true
}

// remember keeps a result for the same query, unless it may answer something else. sources are what the catalog was asked for,
// as it was before the query ran.
func (s *Server) remember(j *job, r *query.Result, out *jobResult, found *catalog) {
	if r.Volatile || !j.config.cacheable() || found.uncacheable {
		return
	}
	now := s.Clock.Now()
	s.results.mu.Lock()
	defer s.results.mu.Unlock()
	if s.results.results == nil {
		s.results.results = map[cacheKey]*cached{}
	}
	for key, c := range s.results.results {
		if now.Sub(c.at) >= anonymousLife {
			delete(s.results.results, key)
		}
	}
	s.results.results[j.cacheKey()] = &cached{result: out, sources: found.sources, at: now}
}
