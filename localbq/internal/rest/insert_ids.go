package rest

import (
	"sync"
	"time"
)

// insertIDs remembers rows by their insertId, so that one sent again is not written again. The zero value is ready.
type insertIDs struct {
	mu     sync.Mutex // guards the fields below
	seen   map[insertID]time.Time
	oldest []insertID // in the order in which they were claimed
}

type insertID struct {
	table int64 // store.Table.Instance
	id    string
}

// insertIDLife is how long an insertId is remembered (BigQuery documentation, "Best effort de-duplication": at least one
// minute).
const insertIDLife = time.Minute

// claim reports whether the row is to be written, and remembers it then. A row without an id always is.
func (s *insertIDs) claim(table int64, id string, now time.Time) bool {
	if id == "" {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.oldest) > 0 {
		at, there := s.seen[s.oldest[0]]
		if there && now.Sub(at) < insertIDLife {
			break
		}
		delete(s.seen, s.oldest[0])
		s.oldest = s.oldest[1:]
	}
	key := insertID{table, id}
	if _, there := s.seen[key]; there {
		return false
	}
	if s.seen == nil {
		s.seen = map[insertID]time.Time{}
	}
	s.seen[key] = now
	s.oldest = append(s.oldest, key)
	return true
}

// release forgets a row that was not written after all.
func (s *insertIDs) release(table int64, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, insertID{table, id})
}
