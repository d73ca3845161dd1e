package writeapi

import (
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/millrace-dev/millrace/localbq/internal/profile"
	"github.com/millrace-dev/millrace/localbq/internal/rate"
	"github.com/millrace-dev/millrace/localbq/internal/store"
	"github.com/millrace-dev/millrace/localbq/internal/storm"
)

// quotas is what projects have used of theirs.
type quotas struct {
	profile.Quotas
	store  *store.Store
	storms *storm.Storms

	used *rate.Buckets[bucketKey]

	mu    sync.Mutex // guards calls
	calls map[place]int64
}

// place is what a quota is counted for.
type place struct{ project, location string }

type bucketKey struct {
	place
	quota string
}

// Names of quotas as their refusals spell them. Clients look for the first (managedwriter retries on it and on no other).
const (
	throughputQuota = "AppendRows throughput"
	streamsQuota    = "CreateWriteStream requests"
	callsQuota      = "AppendRows concurrent connections"
	pendingQuota    = "Pending stream bytes"
)

func exceeded(quota, entity string) *failure {
	return &failure{code: codes.ResourceExhausted, entity: entity, message: "Exceeds '" + quota + "' quota. Entity: " + entity}
}

func (q *quotas) place(ref store.TableRef) place {
	p := place{project: ref.Project}
	if d, err := q.store.Dataset(ref.DatasetRef()); err == nil {
		p.location = d.Location
	}
	return p
}

// take uses up n of a quota that allows limit in a span of time, and reports whether it could. One of a second may be overdrawn:
// a request larger than what is left of the second is not refused for ever.
func (q *quotas) take(p place, quota string, limit int64, per time.Duration, n int64) bool {
	return q.used.Take(bucketKey{p, quota}, limit, per, n, per <= time.Second)
}

// createStream counts a call of CreateWriteStream.
func (q *quotas) createStream(ref store.TableRef) error {
	p := q.place(ref)
	if q.storms.UsedUp(storm.CreateStreams) || !q.take(p, streamsQuota, q.CreateStreams.In(p.location), time.Hour, 1) {
		return exceeded(streamsQuota, ref.Path())
	}
	return nil
}

// createStreamWait is how long a call of CreateWriteStream waits for its turn.
func (q *quotas) createStreamWait(ref store.TableRef) time.Duration {
	if q.CreateStreamRate == (profile.Quota{}) {
		return 0
	}
	p := q.place(ref)
	return q.used.Owe(bucketKey{p, "CreateWriteStream turns"}, q.CreateStreamRate.In(p.location), time.Second)
}

// append counts the bytes of a request, and those that its stream holds back.
func (q *quotas) append(ref store.TableRef, entity string, stream *store.Stream, size int64) error {
	pending := stream != nil && stream.Kind() == store.Pending
	switch {
	case q.storms.UsedUp(storm.AppendThroughput):
		return exceeded(throughputQuota, entity)
	case pending && q.storms.UsedUp(storm.PendingBytes):
		return exceeded(pendingQuota, entity)
	case q.Quotas == (profile.Quotas{}):
		return nil
	}
	p := q.place(ref)
	if !q.take(p, throughputQuota, q.AppendThroughput.In(p.location), time.Second, size) {
		return exceeded(throughputQuota, entity)
	}
	limit := q.PendingBytes.In(p.location)
	if limit == 0 || !pending {
		return nil
	}
	if q.store.PendingBytes(p.project, p.location) >= limit {
		return exceeded(pendingQuota, entity)
	}
	return nil
}

// enter counts the connection, once, for the project and location that it first writes to.
func (c *connection) enter(d *destination) error {
	q := &c.server.quotas
	if c.entered == nil && q.storms.UsedUp(storm.AppendCalls) {
		return exceeded(callsQuota, c.stream.full).ending()
	}
	if c.entered != nil || q.AppendCalls == (profile.Quota{}) {
		return nil
	}
	p := q.place(d.table.Ref())
	q.mu.Lock()
	defer q.mu.Unlock()
	if limit := q.AppendCalls.In(p.location); limit > 0 && q.calls[p] >= limit {
		return exceeded(callsQuota, c.stream.full).ending()
	}
	q.calls[p]++
	c.entered = &p
	return nil
}

// leave gives the connection's place free.
func (c *connection) leave() {
	if c.entered == nil {
		return
	}
	q := &c.server.quotas
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.calls[*c.entered]--; q.calls[*c.entered] == 0 {
		delete(q.calls, *c.entered)
	}
}
