package storageread

import (
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	rpccode "google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
)

// Board shows how a read is going, to whoever asks while it does. A nil Board takes notes of nothing.
type Board struct {
	mu      sync.Mutex // guards the fields below, and those of every stream
	session string
	expires time.Time
	streams int // of the session; 0 where a checkpoint gave those that were left
	waiting int
	reading map[string]*progress
}

// progress is how one stream that is open is going. It belongs to its fetcher, and to the board's lock.
type progress struct {
	board *Board
	state Reading
}

// Reading is a stream that a reader has open.
type Reading struct {
	Stream string
	// Received is the row of the stream behind those that were received.
	Received int64
	// Progress is the share of the stream that was received, as the service tells: 0 to 1, NaN where it has not told yet.
	Progress float64
	// Throttled is by how much the service slows the stream down, in per cent; 0 is not at all.
	Throttled int
	// Retries are the calls that were issued again, LastError why the last of them was, and when.
	Retries     int64
	LastError   error
	LastErrorAt time.Time
	// Since is when the last rows came.
	Since time.Time
}

// LastErrorCode is the canonical name of the last error's status, UNCLASSIFIED without one.
func (r *Reading) LastErrorCode() string {
	if c := codeOf(r.LastError); c != codes.OK {
		return rpccode.Code(c).String()
	}
	return "UNCLASSIFIED"
}

// Report is a read as it is now.
type Report struct {
	Session string // "" before it is planned
	Expires time.Time
	Streams int // that the service made; 0 where a checkpoint gave those that were left
	Waiting int // of them, for a reader
	Reading []Reading
}

// Report answers how the read is going; streams come in the order of their names.
func (b *Board) Report() Report {
	if b == nil {
		return Report{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := Report{Session: b.session, Expires: b.expires, Streams: b.streams, Waiting: b.waiting, Reading: []Reading{}}
	for _, p := range b.reading {
		r.Reading = append(r.Reading, p.state)
	}
	slices.SortFunc(r.Reading, func(a, b Reading) int { return strings.Compare(a.Stream, b.Stream) })
	return r
}

// planned takes note of a session.
func (b *Board) planned(s *state, streams int) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.session, b.expires, b.streams, b.waiting = s.session, s.expires, streams, len(s.pending)
}

func (b *Board) queued(n int) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = n
}

// opened begins to take note of a stream.
func (b *Board) opened(stream string, at int64) *progress {
	if b == nil {
		return nil
	}
	p := &progress{board: b, state: Reading{Stream: stream, Received: at, Progress: math.NaN(), Since: time.Now()}}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reading == nil {
		b.reading = map[string]*progress{}
	}
	b.reading[stream] = p
	return p
}

func (p *progress) note(change func(*Reading)) {
	if p == nil {
		return
	}
	p.board.mu.Lock()
	defer p.board.mu.Unlock()
	change(&p.state)
}

// closed: another attempt may have the stream open by now.
func (p *progress) closed() {
	if p == nil {
		return
	}
	p.board.mu.Lock()
	defer p.board.mu.Unlock()
	if p.board.reading[p.state.Stream] == p {
		delete(p.board.reading, p.state.Stream)
	}
}
