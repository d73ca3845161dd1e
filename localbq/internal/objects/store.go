package objects

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
)

// Options say where a store keeps what it holds. The zero value is a store in memory on the machine's clock.
type Options struct {
	Clock clock.Clock
	// Dir is a folder that everything is kept in; "" keeps it in memory. One store at a time can have it, which whoever opens
	// it sees to.
	Dir string
	// Force forces everything to the disk before it is acknowledged. Without it, what has been acknowledged survives the end of
	// the process, and not that of the machine.
	Force bool
	// Logger hears of clearing away that fails; nil is silence.
	Logger *slog.Logger
}

// Store is buckets and what is in them. Safe for concurrent use.
type Store struct {
	clock  clock.Clock
	logger *slog.Logger
	medium medium
	alarm  alarm

	mu      sync.RWMutex // guards the fields below, and is held while a change is saved; an Upload's mu is taken before it
	buckets map[string]*bucket
	uploads map[string]*Upload
	hidden  map[string]time.Time // until when the object "bucket/name" looks as if it were not there
	last    int64                // the last generation given out
	floor   int64                // what the medium knows of it
}

// New makes a store, and reads back what its folder holds.
func New(o Options) (*Store, error) {
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{clock: o.Clock, logger: o.Logger, buckets: map[string]*bucket{}, uploads: map[string]*Upload{}, hidden: map[string]time.Time{}}
	if o.Dir == "" {
		s.medium = newMemory()
		return s, nil
	}
	f, err := openFolder(o.Dir, o.Force)
	if err == nil {
		s.medium = f
		err = s.recover(f)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("objects: %w", err), s.closeUploads())
	}
	s.wake(s.clock.Now())
	return s, nil
}

// Close ends the store. Nothing may be called afterwards, except on readers that are open.
func (s *Store) Close() error {
	s.alarm.silence()
	return s.closeUploads()
}

// closeUploads gives the files of uploads back, which go on when the folder is opened again.
func (s *Store) closeUploads() error {
	var errs []error
	for _, u := range s.uploads {
		if u.data != nil {
			errs = append(errs, u.data.Close())
		}
	}
	return errors.Join(errs...)
}

// now is the clock's time as attributes show it.
func (s *Store) now() time.Time { return s.clock.Now().UTC().Truncate(time.Millisecond) }

// generation is a number higher than all before; s.mu is held.
func (s *Store) generation() int64 {
	s.last = max(s.last+1, s.clock.Now().UnixMicro())
	return s.last
}

// drop forgets bytes that nothing names any more. Where that fails they are removed when the folder is opened again.
func (s *Store) drop(name string) {
	if err := s.medium.drop(name); err != nil {
		s.logger.Warn("bytes of an object that is gone not removed", "error", err)
	}
}
