package store

import "fmt"

// CreateStream makes a write stream of a table. The token is random: it makes the id hard to guess.
func (t *Table) CreateStream(kind StreamKind, token [27]byte) (*Stream, error) {
	c := &createStream{stream: &Stream{table: t, kind: kind}, token: token}
	if _, err := t.store.commit(c); err != nil {
		return nil, err
	}
	return c.stream, nil
}

// streamRecord is a stream in a catalogRecord. Which fields count depends on the op.
type streamRecord struct {
	Key   int64      `json:"key"`
	ID    string     `json:"id,omitempty"`
	Kind  StreamKind `json:"kind,omitempty"`
	Shown int64      `json:"shown,omitempty"` // flush: rows from the front that are visible from now on
}

type createStream struct {
	stream *Stream
	token  [27]byte
}

func (c *createStream) prepare(_ *Store, version int64) error {
	s := c.stream
	if s.table.Dropped() {
		return notFoundTable(s.table.ref)
	}
	s.key, s.touched, s.id = version, version, streamID(version, c.token)
	return nil
}

func (c *createStream) append(buf []byte, version int64) []byte {
	s := c.stream
	return catalogRecord{
		Op: opCreateStream, Version: version, Instance: s.table.instance,
		Streams: []streamRecord{{Key: s.key, ID: s.id, Kind: s.kind}},
	}.append(buf)
}

func (c *createStream) publish(*Store, int64) {
	t := c.stream.table
	t.mu.Lock()
	defer t.mu.Unlock()
	t.adopt(c.stream)
}

// adopt adds a stream; t.mu is held.
func (t *Table) adopt(s *Stream) {
	if t.streams == nil {
		t.streams = map[string]*Stream{}
	}
	t.streams[s.id] = s
}

// Flush makes the rows of a Buffered stream visible up to an offset, included. The note is kept in the log with it, and
// told, if not nil, is told.
func (s *Stream) Flush(offset int64, note []byte, told Account) (Written, error) {
	c := &flushStream{stream: s, offset: offset, note: note, shown: shown{told: told}}
	_, err := s.table.store.commit(c)
	return c.written, err
}

type flushStream struct {
	stream *Stream
	offset int64
	note   []byte
	shown
}

// shown is what became visible, and whom to tell of it.
type shown struct {
	told    Account
	written Written
}

func (s *shown) account() {
	if s.told != nil {
		s.told(s.written)
	}
}

func (c *flushStream) prepare(*Store, int64) error {
	s := c.stream
	t := s.table
	t.mu.RLock()
	defer t.mu.RUnlock()
	switch {
	case t.dropped:
		return notFoundTable(t.ref)
	case !s.alive():
		return s.fault(StreamNotFound)
	case s.kind != Buffered:
		return s.fault(StreamWrongKind)
	case s.finalized:
		return s.fault(StreamFinalized)
	case c.offset < s.cursor:
		return s.fault(OffsetTaken)
	case c.offset >= s.end:
		return s.fault(OffsetBeyond)
	}
	return nil
}

func (c *flushStream) append(buf []byte, version int64) []byte {
	return catalogRecord{
		Op: opFlushStream, Version: version, Instance: c.stream.table.instance, Note: c.note,
		Streams: []streamRecord{{Key: c.stream.key, Shown: c.offset + 1}},
	}.append(buf)
}

func (c *flushStream) publish(_ *Store, version int64) {
	t := c.stream.table
	t.mu.Lock()
	defer t.mu.Unlock()
	c.written = t.written(version)
	c.stream.touched = version
	c.written.show(c.stream.show(c.offset+1, version))
}

// Finalize ends a stream: it takes no rows any more. It answers how many it has got, and may be repeated.
func (s *Stream) Finalize() (int64, error) {
	c := &finalizeStream{stream: s}
	_, err := s.table.store.commit(c)
	return c.rows, err
}

type finalizeStream struct {
	stream *Stream
	rows   int64
}

func (c *finalizeStream) prepare(*Store, int64) error {
	t := c.stream.table
	t.mu.RLock()
	defer t.mu.RUnlock()
	c.rows = c.stream.end
	switch {
	case t.dropped:
		return notFoundTable(t.ref)
	case !c.stream.alive():
		return c.stream.fault(StreamNotFound)
	}
	return nil
}

func (c *finalizeStream) append(buf []byte, version int64) []byte {
	return catalogRecord{
		Op: opFinalizeStream, Version: version, Instance: c.stream.table.instance, Streams: []streamRecord{{Key: c.stream.key}},
	}.append(buf)
}

func (c *finalizeStream) publish(*Store, int64) {
	t := c.stream.table
	t.mu.Lock()
	defer t.mu.Unlock()
	c.stream.finalized = true
}

// CommitRefused is why streams were not committed: one error for each that could not be, in the order asked for.
type CommitRefused struct{ Streams []*StreamError }

func (e *CommitRefused) Error() string {
	return fmt.Sprintf("%d write streams cannot be committed", len(e.Streams))
}

// CommitStreams makes all rows of Pending streams visible at once, or none: then it fails with *CommitRefused. The ids differ.
// The note is kept in the log with it, and told, if not nil, is told.
func (t *Table) CommitStreams(ids []string, note []byte, told Account) (Written, error) {
	c := &commitStreams{table: t, ids: ids, note: note, shown: shown{told: told}}
	_, err := t.store.commit(c)
	return c.written, err
}

type commitStreams struct {
	table   *Table
	ids     []string
	streams []*Stream
	note    []byte
	shown
}

func (c *commitStreams) prepare(*Store, int64) error {
	t := c.table
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.dropped {
		return notFoundTable(t.ref)
	}
	refused := &CommitRefused{}
	for _, id := range c.ids {
		s := t.stream(id)
		if f := committable(s); f != 0 {
			refused.Streams = append(refused.Streams, &StreamError{Fault: f, ID: id})
		}
		c.streams = append(c.streams, s)
	}
	if len(refused.Streams) > 0 {
		return refused
	}
	return nil
}

// committable is why a stream cannot be committed; 0 is nothing.
func committable(s *Stream) StreamFault {
	switch {
	case s == nil:
		return StreamNotFound
	case s.kind != Pending:
		return StreamWrongKind
	case s.committed != 0:
		return StreamCommitted
	case !s.finalized:
		return StreamNotFinalized
	}
	return 0
}

func (c *commitStreams) append(buf []byte, version int64) []byte {
	r := catalogRecord{Op: opCommitStreams, Version: version, Instance: c.table.instance, Note: c.note}
	for _, s := range c.streams {
		r.Streams = append(r.Streams, streamRecord{Key: s.key})
	}
	return r.append(buf)
}

func (c *commitStreams) publish(_ *Store, version int64) {
	t := c.table
	t.mu.Lock()
	defer t.mu.Unlock()
	c.written = t.written(version)
	for _, s := range c.streams {
		s.committed = version
		c.written.show(s.show(s.end, version))
	}
}

// ExpireStream ends a stream's life before its time. It reports whether there was one.
func (t *Table) ExpireStream(id string) (bool, error) {
	s := t.Stream(id)
	if s == nil {
		return false, nil
	}
	_, err := t.store.commit(&expireStream{stream: s})
	return err == nil, err
}

type expireStream struct{ stream *Stream }

func (c *expireStream) prepare(*Store, int64) error {
	if c.stream.table.Dropped() {
		return notFoundTable(c.stream.table.ref)
	}
	return nil
}

func (c *expireStream) append(buf []byte, version int64) []byte {
	return catalogRecord{
		Op: opExpireStream, Version: version, Instance: c.stream.table.instance, Streams: []streamRecord{{Key: c.stream.key}},
	}.append(buf)
}

func (c *expireStream) publish(*Store, int64) {
	t := c.stream.table
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.streams, c.stream.id)
}
