package objects

import (
	"sync"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
)

// Options say where a store keeps what it holds. The zero value is a store in memory on the machine's clock.
type Options struct {
	Clock clock.Clock
}

// Store is buckets and what is in them. Safe for concurrent use.
type Store struct {
	clock  clock.Clock
	medium medium

	mu      sync.RWMutex // guards the fields below, and is held while a change is saved
	buckets map[string]*bucket
	last    int64 // the last generation given out
}

// New makes a store.
func New(o Options) (*Store, error) {
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	return &Store{clock: o.Clock, medium: newMemory(), buckets: map[string]*bucket{}}, nil
}

// Close ends the store. Nothing may be called afterwards, except on readers that are open.
func (s *Store) Close() error { return nil }

// now is the clock's time as attributes show it.
func (s *Store) now() time.Time { return s.clock.Now().UTC().Truncate(time.Millisecond) }

// generation is a number higher than all before; s.mu is held.
func (s *Store) generation() int64 {
	s.last = max(s.last+1, s.clock.Now().UnixMicro())
	return s.last
}
