package store

import (
	"cmp"
	"slices"
)

// Ingested is a run of rows that became visible at one version.
type Ingested struct {
	First, Count int64 // by row id
	Version      int64
	// At is the instant that they count as ingested at, in microseconds since 1970: that of the version, unless the write said
	// another.
	At int64
}

// Ingested tells when the rows of some ids became visible, in order of ids. Rows whose history has been forgotten are left
// out.
func (t *Table) Ingested(first, count int64) []Ingested {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var out []Ingested
	last := first + count
	for _, c := range t.chunks {
		from := c.first
		for _, m := range c.marks {
			to := c.first + m.rows
			if low, high := max(from, first), min(to, last); low < high {
				out = append(out, Ingested{First: low, Count: high - low, Version: m.version, At: cmp.Or(m.ingested, m.version)})
			}
			from = to
		}
	}
	return slices.Clip(out)
}
