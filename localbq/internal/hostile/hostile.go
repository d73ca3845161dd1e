// Package hostile holds tests to what any bytes may cost. Only tests use it.
package hostile

import (
	"runtime/metrics"
	"testing"
)

// allocated is how many bytes the program has allocated since it began, freed ones included.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// Allocates runs f and fails the test if the program has allocated more than limit bytes meanwhile, freed ones included.
// Whatever else runs counts as well, so the limit wants room.
func Allocates(t testing.TB, limit uint64, f func()) {
	t.Helper()
	before := allocated()
	f()
	if n := allocated() - before; n > limit {
		t.Fatalf("%d bytes were allocated, expected at most %d", n, limit)
	}
}

// noise is what the program allocates besides, in bytes, and what the runtime counts late.
const noise = 4 << 20

// Proportional is Allocates for a reader of size bytes of input: each of them may cost factor bytes, and reading at all fixed.
func Proportional(t testing.TB, size int, factor, fixed uint64, f func()) {
	t.Helper()
	Allocates(t, uint64(size)*factor+fixed+noise, f)
}
