package rest

import (
	"sync"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/profile"
	"github.com/millrace-dev/millrace/localbq/internal/rate"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/store"
	"github.com/millrace-dev/millrace/localbq/internal/storm"
)

// limits are what tables and projects have used of their quotas.
type limits struct {
	profile.Quotas
	storms   *storm.Storms
	updates  *rate.Windows[store.TableRef]
	modified *rate.Buckets[store.TableRef]
	ran      *rate.Buckets[projectJobs]
	waiting  *waiting
}

// projectJobs are the jobs of one type of one project.
type projectJobs struct{ project, kind string }

// waiting counts jobs that are PENDING.
type waiting struct {
	mu      sync.Mutex       // guards the fields below
	queries map[string]int64 // interactive ones, by project
	all     map[string]int64
}

// day is the span of daily quotas, and burst that of changes of a table's metadata.
const (
	day   = 24 * time.Hour
	burst = 10 * time.Second
)

func newLimits(q profile.Quotas, c clock.Clock, storms *storm.Storms) limits {
	return limits{
		Quotas: q, storms: storms, updates: rate.NewWindows[store.TableRef](c, burst), modified: rate.NewBuckets[store.TableRef](c),
		ran: rate.NewBuckets[projectJobs](c), waiting: &waiting{queries: map[string]int64{}, all: map[string]int64{}},
	}
}

// updateTable counts an attempt to create a table or to change its metadata, whatever becomes of it.
func (l *limits) updateTable(ref store.TableRef) error {
	if !l.storms.UsedUp(storm.MetadataBurst) && l.updates.Take(ref, l.MetadataBurst) {
		return nil
	}
	return refusal.New(refusal.RateLimitExceeded, "Exceeded rate limits: too many table update operations for this table.")
}

// modify counts a job that writes a table.
func (l *limits) modify(ref store.TableRef) error {
	if !l.storms.UsedUp(storm.TableModifications) && l.modified.Take(ref, l.TableModifications, day, 1, false) {
		return nil
	}
	return refusal.New(refusal.QuotaExceeded, "Quota exceeded: Your table exceeded quota for imports or query appends per table.")
}

// start counts a job that begins to run.
func (l *limits) start(j *job) error {
	kind, table := j.writes()
	switch {
	case kind == "load" && (l.storms.UsedUp(storm.LoadJobs) || !l.ran.Take(projectJobs{j.key.project, kind}, l.LoadJobs, day, 1, false)):
		return refusal.New(refusal.QuotaExceeded, "Quota exceeded: Your project exceeded quota for imports per project.")
	case kind == "copy" && (l.storms.UsedUp(storm.CopyJobs) || !l.ran.Take(projectJobs{j.key.project, kind}, l.CopyJobs, day, 1, false)):
		return refusal.New(refusal.QuotaExceeded, "Quota exceeded: Your project exceeded quota for copies per project.")
	case table.Table == "":
		return nil
	}
	return l.modify(table)
}

// statement counts what a statement that is no query does to a table. DML is not limited (BigQuery documentation, "Quotas and
// limits", "Data manipulation language").
func (l *limits) statement(ref store.TableRef, c *change) error {
	switch c.Kind {
	case "CREATE_TABLE_AS_SELECT":
		if err := l.modify(ref); err != nil {
			return err
		}
	case "CREATE_TABLE", "CREATE_VIEW", "CREATE_MATERIALIZED_VIEW", "ALTER_TABLE":
	default:
		return nil
	}
	return l.updateTable(ref)
}

// queue counts a job that waits, until leave is called.
func (l *limits) queue(j *job) (leave func(), err error) {
	w, project := l.waiting, j.key.project
	query := int64(0)
	if j.config != nil && j.config.Priority != "BATCH" {
		query = 1
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	full := func(quota string, limit, has int64) bool { return limit > 0 && has >= limit || l.storms.UsedUp(quota) }
	if full(storm.PendingJobs, l.PendingJobs, w.all[project]) || query > 0 && full(storm.QueuedQueries, l.QueuedQueries, w.queries[project]) {
		return nil, refusal.New(refusal.QuotaExceeded, "Quota exceeded: Your project exceeded quota for total number of jobs that can be queued per project.")
	}
	w.add(project, query, 1)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.add(project, -query, -1)
	}, nil
}

// add changes both counts; mu is held.
func (w *waiting) add(project string, queries, all int64) {
	if w.queries[project] += queries; w.queries[project] == 0 {
		delete(w.queries, project)
	}
	if w.all[project] += all; w.all[project] == 0 {
		delete(w.all, project)
	}
}
