package store

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
)

// StreamKind says when the rows of a created write stream become visible.
type StreamKind uint8

// The kinds of created streams.
const (
	Committed StreamKind = 1 + iota // at once
	Pending                         // when the stream is committed
	Buffered                        // when they are flushed
)

var kindNames = [...]string{Committed: "committed", Pending: "pending", Buffered: "buffered"}

func (k StreamKind) String() string {
	if k == 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("StreamKind(%d)", uint8(k))
	}
	return kindNames[k]
}

// StreamLife is how long a created stream lives without an append or a flush (storage.proto documents that streams expire;
// the figure is from the client documentation).
const StreamLife = 7 * 24 * time.Hour

// Stream is a created write stream of one instance of a table. Safe for concurrent use.
type Stream struct {
	table *Table
	id    string
	kind  StreamKind
	key   int64 // the version that made it: unique in the store

	next int64 // guarded by Store.committing: the end, appends that are about to be published included

	// Table.mu guards the fields below.
	end       int64 // rows that it holds
	last      int64 // end before the last append
	cursor    int64 // of them, those that are visible
	touched   int64 // version of the last append or flush
	finalized bool
	committed int64    // version of the commit; 0 is none
	chunks    []*chunk // the rows that are not visible, by offset; the first may have visible ones at its front
}

// StreamState is a stream as it is.
type StreamState struct {
	End       int64 // rows that it holds: the offset of the next
	Last      int64 // end before the last append
	Visible   int64 // of them, those that are visible, from the front
	Finalized bool
	Committed time.Time // when a Pending stream was committed; zero before
}

// Table is the table that the stream belongs to.
func (s *Stream) Table() *Table { return s.table }

// ID tells the stream from all others there ever were in the store.
func (s *Stream) ID() string { return s.id }

// Kind says when its rows become visible.
func (s *Stream) Kind() StreamKind { return s.kind }

// Created is when it was made.
func (s *Stream) Created() time.Time { return TimeOf(s.key) }

// State is the stream as of the last commit.
func (s *Stream) State() StreamState {
	s.table.mu.RLock()
	defer s.table.mu.RUnlock()
	out := StreamState{End: s.end, Last: s.last, Visible: s.cursor, Finalized: s.finalized}
	if s.committed != 0 {
		out.Committed = TimeOf(s.committed)
	}
	return out
}

// Stream finds a created stream of the table that has not expired; nil is none.
func (t *Table) Stream(id string) *Stream {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.stream(id)
}

// stream is Stream; t.mu is held.
func (t *Table) stream(id string) *Stream {
	s := t.streams[id]
	if s == nil || s.expired() {
		return nil
	}
	return s
}

func (s *Stream) expired() bool {
	return !s.table.store.clock.Now().Before(TimeOf(s.touched).Add(StreamLife))
}

// alive reports whether the table still has the stream; Table.mu is held.
func (s *Stream) alive() bool { return s.table.stream(s.id) == s }

// streamID is opaque and URL-safe: the stream's key, which is in no other, and a random token.
func streamID(key int64, token [27]byte) string {
	return "Ci" + base64.URLEncoding.EncodeToString(append(binary.BigEndian.AppendUint64([]byte{1}, uint64(key)), token[:]...))
}

// StreamFault is why a stream refuses something.
type StreamFault uint8

// The faults of streams.
const (
	StreamNotFound     StreamFault = 1 + iota // it has expired, or its table instance is gone
	StreamFinalized                           // it takes nothing any more
	StreamWrongKind                           // its kind does not allow that
	StreamNotFinalized                        // it cannot be committed yet
	StreamCommitted                           // it has been committed
	OffsetTaken                               // there are rows at that offset, or they are visible
	OffsetBeyond                              // there are no rows before that offset, or at it
)

// StreamError is the refusal of one stream.
type StreamError struct {
	Fault StreamFault
	ID    string
	End   int64 // rows that it holds, for the faults of offsets
}

func (e *StreamError) Error() string {
	return fmt.Sprintf("write stream %s refuses: fault %d, %d rows", e.ID, e.Fault, e.End)
}

func (s *Stream) fault(f StreamFault) *StreamError {
	return &StreamError{Fault: f, ID: s.id, End: s.next}
}

// place decides at which offset an append goes. Store.committing is held, and Table.mu for reading.
func (s *Stream) place(offset *int64, count int64) (int64, error) {
	switch {
	case !s.alive():
		return 0, s.fault(StreamNotFound)
	case s.finalized:
		return 0, s.fault(StreamFinalized)
	case offset != nil && *offset < s.next:
		return 0, s.fault(OffsetTaken)
	case offset != nil && *offset > s.next:
		return 0, s.fault(OffsetBeyond)
	}
	at := s.next
	s.next += count
	return at, nil
}

// hold takes rows that are not visible yet; Table.mu is held.
func (s *Stream) hold(info *Info, batches []arrow.RecordBatch, at, version int64) {
	for _, b := range batches {
		addRows(&s.chunks, info, at, b, version, 0)
		at += b.NumRows()
	}
}

// show makes the rows below an offset visible, and reports which ids they got; Table.mu is held.
func (s *Stream) show(to, version int64) Shown {
	t := s.table
	shown := Shown{Stream: s.id, Offset: s.cursor, Count: to - s.cursor}
	for _, c := range s.chunks {
		at := c.first
		for _, p := range c.pieces {
			n := p.batch.NumRows()
			if from, until := max(at, s.cursor), min(at+n, to); from < until {
				t.attach(c.info, p.batch.NewSlice(from-at, until-at), t.rows+from-s.cursor, version, 0)
			}
			at += n
		}
	}
	if shown.Count > 0 {
		t.rows += shown.Count
		t.touched = version
	}
	s.cursor = to
	s.forget()
	return shown
}

// forget drops the chunks that are visible as a whole.
func (s *Stream) forget() {
	kept := s.chunks[:0:0]
	for _, c := range s.chunks {
		if c.first+c.rows > s.cursor {
			kept = append(kept, c)
		}
	}
	s.chunks = kept
}

// expire forgets the streams that have had their time; t.mu is held.
func (t *Table) expire() {
	for id, s := range t.streams {
		if s.expired() {
			delete(t.streams, id)
		}
	}
}

// PendingBytes are the logical bytes that Pending streams of a project's tables in a location hold back.
func (s *Store) PendingBytes(project, location string) int64 {
	total := int64(0)
	for _, d := range s.Datasets(project) {
		if d.Location != location {
			continue
		}
		tables, err := s.Tables(d.Ref)
		if err != nil { // the dataset has just been deleted
			continue
		}
		for _, t := range tables {
			total += t.pendingBytes()
		}
	}
	return total
}

func (t *Table) pendingBytes() int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	total := int64(0)
	for _, s := range t.streams {
		if s.kind != Pending || s.expired() {
			continue
		}
		for _, c := range s.chunks {
			for _, p := range c.pieces {
				total += logicalBytes(c.info.Schema, p.batch)
			}
		}
	}
	return total
}
