package rate

import (
	"sync"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
)

// Buckets are one for each key, full at first. Safe for concurrent use.
type Buckets[K comparable] struct {
	clock clock.Clock

	mu   sync.Mutex // guards kept
	kept map[K]*bucket
}

// bucket holds what may still be used.
type bucket struct {
	left float64
	at   time.Time
}

// NewBuckets makes them.
func NewBuckets[K comparable](c clock.Clock) *Buckets[K] {
	return &Buckets[K]{clock: c, kept: map[K]*bucket{}}
}

// Take uses up n of the limit in a span of time, and reports whether it could. A limit of 0 is none. With overdraw the last
// taker may take more than is left.
func (b *Buckets[K]) Take(key K, limit int64, per time.Duration, n int64, overdraw bool) bool {
	if limit == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.fill(key, limit, per)
	if at.left <= 0 || !overdraw && at.left < float64(n) {
		return false
	}
	at.left -= float64(n)
	return true
}

// Owe uses up one of the limit in a span of time, and answers how long whoever takes it has to wait for it. A limit of 0 is
// none.
func (b *Buckets[K]) Owe(key K, limit int64, per time.Duration) time.Duration {
	if limit == 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.fill(key, limit, per)
	at.left--
	return max(0, time.Duration(-at.left*float64(per)/float64(limit)))
}

// fill brings a key's bucket up to the present; mu is held.
func (b *Buckets[K]) fill(key K, limit int64, per time.Duration) *bucket {
	now := b.clock.Now()
	k := b.kept[key]
	if k == nil {
		k = &bucket{left: float64(limit), at: now}
		b.kept[key] = k
	}
	k.left = min(float64(limit), k.left+float64(limit)*float64(now.Sub(k.at))/float64(per))
	k.at = now
	return k
}
