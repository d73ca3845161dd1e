// Package storm is what fault rules hold for a time: windows of propagation that stay open, and quotas that are used up.
package storm

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
)

// The windows, named as the fields of the profile: they are held for one table.
const (
	CreateDefaultAppend = "createDefaultAppend"
	CreateOpenStream    = "createOpenStream"
	CreateFlush         = "createFlush"
	ReconnectOffset     = "reconnectOffset"
	NewConnection       = "newConnection"  // changes of columns, for connections opened behind them
	OpenConnection      = "openConnection" // for connections that were open already
	ReadSelectedFields  = "readSelectedFields"
	NumRows             = "numRows"
	CopyBuffer          = "copyBuffer"
	RecreateGhost       = "recreateGhost"
)

// The quotas, named as the fields of the profile: they are used up for everybody.
const (
	AppendCalls        = "appendCalls"
	AppendThroughput   = "appendThroughput"
	CreateStreams      = "createStreams"
	PendingBytes       = "pendingBytes"
	MetadataBurst      = "metadataBurst"
	TableModifications = "tableModifications"
	LoadJobs           = "loadJobs"
	CopyJobs           = "copyJobs"
	QueuedQueries      = "queuedQueries"
	PendingJobs        = "pendingJobs"
)

// Windows and Quotas are all of them.
var (
	Windows = []string{CreateDefaultAppend, CreateOpenStream, CreateFlush, ReconnectOffset, NewConnection, OpenConnection,
		ReadSelectedFields, NumRows, CopyBuffer, RecreateGhost}
	Quotas = []string{AppendCalls, AppendThroughput, CreateStreams, PendingBytes, MetadataBurst, TableModifications, LoadJobs,
		CopyJobs, QueuedQueries, PendingJobs}
)

// Storms are those that have begun. Safe for concurrent use; nil has none.
type Storms struct {
	clock clock.Clock
	begun atomic.Bool // none makes On cheap

	mu    sync.Mutex // guards spans
	spans map[key]span
}

// key is a window of one table, by its instance, or a quota, of instance 0.
type key struct {
	what     string
	instance int64
}

type span struct{ from, until time.Time }

// New has none.
func New(c clock.Clock) *Storms { return &Storms{clock: c, spans: map[key]span{}} }

// Begin begins one that lasts for a time, or stretches one that is on.
func (s *Storms) Begin(what string, instance int64, length time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, k := s.clock.Now(), key{what, instance}
	next := span{now, now.Add(length)}
	if old, on := s.spans[k]; on && old.until.After(now) {
		next.from = old.from
	}
	s.spans[k] = next
	s.begun.Store(true)
}

// On reports whether one is on, and since and until when.
func (s *Storms) On(what string, instance int64) (from, until time.Time, on bool) {
	if s == nil || !s.begun.Load() {
		return time.Time{}, time.Time{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	span := s.spans[key{what, instance}]
	return span.from, span.until, span.until.After(s.clock.Now())
}

// UsedUp reports whether a quota is.
func (s *Storms) UsedUp(quota string) bool {
	_, _, on := s.On(quota, 0)
	return on
}
