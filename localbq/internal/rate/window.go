package rate

import (
	"slices"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
)

// Windows remember when something happened for each key, as long as it counts. Safe for concurrent use.
type Windows[K comparable] struct {
	clock clock.Clock
	per   time.Duration

	mu    sync.Mutex // guards the fields below
	times map[K][]time.Time
	swept int // keys that the last sweep left
}

// NewWindows makes windows of a length.
func NewWindows[K comparable](c clock.Clock, per time.Duration) *Windows[K] {
	return &Windows[K]{clock: c, per: per, times: map[K][]time.Time{}}
}

// Take counts one more and reports true, unless as many as the limit happened in the time that ends now. A limit of 0 is none.
func (w *Windows[K]) Take(key K, limit int64) bool {
	if limit == 0 {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	since := w.clock.Now().Add(-w.per)
	if len(w.times) > 2*w.swept+16 { // keys that happen once would be kept for ever
		for k := range w.times {
			w.forget(k, since)
		}
		w.swept = len(w.times)
	}
	w.forget(key, since)
	if int64(len(w.times[key])) >= limit {
		return false
	}
	w.times[key] = append(w.times[key], w.clock.Now())
	return true
}

// forget drops what does not count any more; mu is held.
func (w *Windows[K]) forget(key K, since time.Time) {
	left := slices.DeleteFunc(w.times[key], func(t time.Time) bool { return !t.After(since) })
	if w.times[key] = left; len(left) == 0 {
		delete(w.times, key)
	}
}
