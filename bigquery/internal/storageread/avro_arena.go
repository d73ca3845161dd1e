package storageread

import "github.com/millrace-dev/millrace/bigquery/row"

// arena lends the values of nested lists. Everything it lent is void after reset.
type arena struct {
	chunk []row.Value
	used  int
	total int // values lent since reset
}

const (
	firstChunk = 64
	// A row that needs more leaves no memory behind: 64 Ki values of 64 B are 4 MiB.
	keptChunk = 1 << 16
	// Counts are believed up to here; longer lists grow with the elements that are really there.
	believed = 1024
)

func (a *arena) reset() {
	if a.total > len(a.chunk) && a.total <= keptChunk {
		a.chunk = make([]row.Value, max(firstChunk, 2*a.total))
	} else if len(a.chunk) > 2*keptChunk {
		a.chunk = nil
	}
	a.used, a.total = 0, 0
}

// take lends n zero values.
func (a *arena) take(n int) []row.Value {
	if n > len(a.chunk)-a.used {
		// What was lent from the old chunk stays valid; reset makes the next chunk large enough for all.
		a.chunk, a.used = make([]row.Value, max(n, firstChunk)), 0
	}
	out := a.chunk[a.used : a.used+n : a.used+n]
	a.used += n
	a.total += n
	clear(out)
	return out
}

// grow moves a full list to a place with room for up to want more.
func (a *arena) grow(list []row.Value, want int) []row.Value {
	room := max(min(want, believed), len(list))
	grown := a.take(len(list) + room)
	copy(grown, list)
	return grown[:len(list)]
}
