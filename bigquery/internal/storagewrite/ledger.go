package storagewrite

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// Ledger counts by destination what the writers of one sink have done in this process, over all lanes and attempts.
// Safe for concurrent use.
type Ledger struct {
	mu    sync.Mutex // guards pages
	pages map[table.Destination]*page
}

// page is one destination's counts.
type page struct {
	rows, bytes, deadLettered atomic.Int64
	created                   atomic.Bool
}

// Report is what was done to one destination.
type Report struct {
	Destination  table.Destination
	Rows         int64 // acknowledged by the service; rows written again after a restart count again
	Bytes        int64 // their encoded lengths
	DeadLettered int64 // taken by the failure handler
	Created      bool  // the table was made by this sink
}

func (l *Ledger) page(dst table.Destination) *page {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pages[dst]
	if p == nil {
		if l.pages == nil {
			l.pages = map[table.Destination]*page{}
		}
		p = new(page)
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
		reports = append(reports, Report{dst, p.rows.Load(), p.bytes.Load(), p.deadLettered.Load(), p.created.Load()})
	}
	slices.SortFunc(reports, func(a, b Report) int {
		return cmp.Compare(a.Destination.String(), b.Destination.String())
	})
	return reports
}
