package store

import "time"

// change is one thing that happens to the store. Its methods run while Store.committing is held, in the order of versions.
type change interface {
	// prepare decides whether the change happens and settles everything about it; an error is the refusal, and the change
	// is then forgotten.
	prepare(s *Store, version int64) error
	// append adds to buf what the log keeps of it.
	append(buf []byte, version int64) []byte
	// publish makes it visible. It cannot fail.
	publish(s *Store, version int64)
}

// accountable is a change that somebody writes down.
type accountable interface {
	// account is called behind publish, with Store.committing held.
	account()
}

// ticket is a change waiting in the queue.
type ticket struct {
	change  change
	alone   bool // nothing may be prepared between its prepare and its publish
	version int64
	err     error
	done    bool // guarded by Store.committing
}

// commit carries out one change of the catalog: it sees everything committed before, and whatever is committed after
// sees it.
func (s *Store) commit(c change) (int64, error) { return s.enqueue(&ticket{change: c, alone: true}) }

// commitRows carries out a change of rows, which may share a write to the log with its neighbours.
func (s *Store) commitRows(c change) (int64, error) { return s.enqueue(&ticket{change: c}) }

func (s *Store) enqueue(t *ticket) (int64, error) {
	s.queueing.Lock()
	s.queue = append(s.queue, t)
	s.queueing.Unlock()

	s.committing.Lock()
	defer s.committing.Unlock()
	if !t.done { // whoever held the lock before us may have committed t with its own change
		s.drain()
	}
	return t.version, t.err
}

// drain commits everything in the queue.
func (s *Store) drain() {
	s.queueing.Lock()
	queue := s.queue
	s.queue = nil
	s.queueing.Unlock()
	for len(queue) > 0 {
		n := 1
		for !queue[0].alone && n < len(queue) && !queue[n].alone {
			n++
		}
		s.commitGroup(queue[:n])
		queue = queue[n:]
	}
}

func (s *Store) commitGroup(group []*ticket) {
	for _, t := range group {
		t.done = true
		if t.err = s.broken; t.err == nil {
			t.version = s.nextVersion()
			t.err = t.change.prepare(s, t.version)
		}
	}
	s.write(group)
	for _, t := range group {
		if t.err == nil {
			t.change.publish(s, t.version)
			s.version.Store(t.version)
			if a, ok := t.change.(accountable); ok {
				a.account()
			}
		}
	}
}

// write puts the changes that are to happen into the log, in one write. If that fails none of them happens, and nothing
// will from now on.
func (s *Store) write(group []*ticket) {
	if s.log == nil || s.broken != nil {
		return
	}
	s.frames = s.frames[:0]
	for _, t := range group {
		if t.err == nil {
			var start int
			s.frames, start = beginFrame(s.frames)
			s.frames = endFrame(t.change.append(s.frames, t.version), start)
		}
	}
	if len(s.frames) == 0 {
		return
	}
	if s.broken = s.log.write(s.frames); s.broken != nil {
		for _, t := range group {
			if t.err == nil {
				t.err = s.broken
			}
		}
		return
	}
	if s.log.size >= s.options.CheckpointBytes {
		select {
		case s.full <- struct{}{}:
		default: // asked for already
		}
	}
	if cap(s.frames) > maxIdleFrames {
		s.frames = nil
	}
}

// maxIdleFrames is the memory that is kept between commits, in bytes.
const maxIdleFrames = 4 << 20

// nextVersion is the clock's microseconds, or one more than the last version where the clock has not moved on.
func (s *Store) nextVersion() int64 {
	s.assigned = max(s.assigned+1, s.clock.Now().UnixMicro())
	return s.assigned
}

// versionAt turns an instant into a version to read at. No later commit can get a version at or below it, so reading at
// it twice gives the same rows.
func (s *Store) versionAt(at time.Time) int64 {
	s.committing.Lock()
	defer s.committing.Unlock()
	v := at.UnixMicro()
	s.assigned = max(s.assigned, v)
	return v
}

// Settle closes the past up to an instant: no later commit is in a snapshot at it. A job settles its end, so that the rows of
// a job behind it are not in a snapshot at that time.
func (s *Store) Settle(at time.Time) { s.versionAt(at) }

// TimeOf is the instant a version stands for.
func TimeOf(version int64) time.Time { return time.UnixMicro(version).UTC() }
