package outcome

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// Ledger counts by destination what the writers of one sink have done in this process, over all lanes and attempts.
// Safe for concurrent use.
type Ledger struct {
	mu    sync.Mutex // guards pages
	pages map[table.Destination]*Page
}

// Page is one destination's counts. Safe for concurrent use.
type Page struct {
	rows, bytes, deadLettered   atomic.Int64
	appendErrors, appendRetries atomic.Int64
	created                     atomic.Bool
	changes                     atomic.Pointer[[]string]
	lastError                   atomic.Pointer[Failure]
}

// Failure is a failed append, of which rows that were refused by their number are one.
type Failure struct {
	At   time.Time
	Code string // canonical name of the status, UNCLASSIFIED without one
	Text string // what the service or the connection said; never what it said about single rows, which may quote them
}

// AppendFailed notes a failed append.
func (p *Page) AppendFailed(f Failure) {
	p.appendErrors.Add(1)
	p.lastError.Store(&f)
}

// AppendedAgain notes an append that was sent again.
func (p *Page) AppendedAgain() { p.appendRetries.Add(1) }

// Created notes that the table was made.
func (p *Page) Created() { p.created.Store(true) }

// Changed notes how the table was changed.
func (p *Page) Changed(by []string) {
	for {
		old := p.changes.Load()
		all := by
		if old != nil {
			all = append(slices.Clone(*old), by...)
		}
		if p.changes.CompareAndSwap(old, &all) {
			return
		}
	}
}

// Report is what was done to one destination.
type Report struct {
	Destination  table.Destination
	Rows         int64 // acknowledged by the service, or in staged files; rows written again after a restart count again
	Bytes        int64 // their encoded lengths
	DeadLettered int64 // taken by the failure handler
	Created      bool  // the table was made by this sink

	// Changes are what this sink changed about a table that existed, a phrase for each column: "column sku added".
	Changes []string

	AppendErrors  int64    // appends that failed, those included that were mended
	AppendRetries int64    // appends sent again to mend them
	LastError     *Failure // nil without one
}

// Page returns the counts of a destination.
func (l *Ledger) Page(dst table.Destination) *Page {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pages[dst]
	if p == nil {
		if l.pages == nil {
			l.pages = map[table.Destination]*Page{}
		}
		p = new(Page)
		l.pages[dst] = p
	}
	return p
}

// Reports lists all destinations, in the order of their names.
func (l *Ledger) Reports() []Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	reports := make([]Report, 0, len(l.pages))
	for dst, p := range l.pages {
		r := Report{Destination: dst, Rows: p.rows.Load(), Bytes: p.bytes.Load(), DeadLettered: p.deadLettered.Load(),
			Created: p.created.Load(), AppendErrors: p.appendErrors.Load(), AppendRetries: p.appendRetries.Load(), LastError: p.lastError.Load()}
		if c := p.changes.Load(); c != nil {
			r.Changes = slices.Clone(*c)
		}
		reports = append(reports, r)
	}
	slices.SortFunc(reports, func(a, b Report) int {
		return cmp.Compare(a.Destination.String(), b.Destination.String())
	})
	return reports
}
