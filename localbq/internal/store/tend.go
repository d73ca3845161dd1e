package store

import (
	"fmt"
	"time"
)

// syncEvery is how long SyncInterval leaves what has been written to the system.
const syncEvery = time.Second

// tend forces the log to the disk now and then, and writes checkpoints when they are asked for. Its goroutine is owned by the
// store and ends in Close.
func (s *Store) tend() {
	ticker := time.NewTicker(syncEvery)
	defer ticker.Stop()
	if s.options.Sync != SyncInterval {
		ticker.Stop()
	}
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
			s.syncLog()
		case <-s.full:
			if err := s.checkpoint(); err != nil {
				s.options.Logger.Error("store checkpoint failed", "folder", s.options.Dir, "error", err)
			}
		}
	}
}

// syncLog forces the log to the disk. A failure is the end of writing: what has been acknowledged may not be there. Only the
// goroutine of tend changes the file, so that it stays open meanwhile.
func (s *Store) syncLog() {
	if !s.log.dirty.Swap(false) {
		return
	}
	if err := s.log.file.Sync(); err != nil {
		s.committing.Lock()
		defer s.committing.Unlock()
		s.broken = fmt.Errorf("store log: %w", err)
	}
}
