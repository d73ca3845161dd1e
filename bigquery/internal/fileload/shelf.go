package fileload

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
)

// shelf decides which files of a lane are open: at most so many at once, none for long without a row, and no more in all than one
// commit may be handed. It does no I/O and reads no clock; its owner does.
type shelf struct {
	maxOpen, maxPending int
	idle                time.Duration

	finished       []loadplan.Committable // since the last commit
	open           int
	oldest, newest *Target // with open files, in the order of their last rows
}

// ErrPendingFilesExceeded is found in the error of a writer that has more files than one commit may be handed.
var ErrPendingFilesExceeded = errors.New("too many staged files wait for a commit")

// admit says whether another file may be opened, and which one is to be finished before; nil is none.
func (s *shelf) admit() (evict *Target, err error) {
	if len(s.finished)+s.open+1 > s.maxPending {
		return nil, fmt.Errorf("%w: %d are finished and %d open, and MaxPendingFiles is %d: commit more often, raise MaxStagingFileBytes, "+
			"write to fewer tables at once, or raise MaxPendingFiles", ErrPendingFilesExceeded, len(s.finished), s.open, s.maxPending)
	}
	if s.open == s.maxOpen {
		return s.oldest, nil
	}
	return nil, nil
}

// opened adds a file without rows.
func (s *shelf) opened(t *Target, now time.Duration) {
	s.open++
	s.append(t, now)
}

// touched notes a row.
func (s *shelf) touched(t *Target, now time.Duration) {
	if s.newest == t {
		t.touched = now
		return
	}
	s.unlink(t)
	s.append(t, now)
}

// removed takes a file away, whatever becomes of it.
func (s *shelf) removed(t *Target) {
	s.unlink(t)
	s.open--
}

// staged adds a finished file.
func (s *shelf) staged(c loadplan.Committable) { s.finished = append(s.finished, c) }

// stale is a file without a row for too long; nil is none.
func (s *shelf) stale(now time.Duration) *Target {
	if t := s.oldest; t != nil && now-t.touched > s.idle {
		return t
	}
	return nil
}

// pending is how many files wait for a commit.
func (s *shelf) pending() int { return len(s.finished) + s.open }

func (s *shelf) append(t *Target, now time.Duration) {
	t.touched = now
	t.before, t.behind = s.newest, nil
	if s.newest == nil {
		s.oldest = t
	} else {
		s.newest.behind = t
	}
	s.newest = t
}

func (s *shelf) unlink(t *Target) {
	if t.before == nil {
		s.oldest = t.behind
	} else {
		t.before.behind = t.behind
	}
	if t.behind == nil {
		s.newest = t.before
	} else {
		t.behind.before = t.before
	}
	t.before, t.behind = nil, nil
}
