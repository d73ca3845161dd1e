package filequeue

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strconv"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/stream"
)

// Durable forms are JSON objects that say what they are and which version.
const (
	splitKind = "deadletter.filequeue.split"
	stateKind = "deadletter.filequeue.replay"
	version   = 1
)

type head struct {
	Kind    string `json:"kind"`
	Version int    `json:"version"`
}

func (h head) check(kind string) error {
	if h.Kind != kind || h.Version != version {
		return fmt.Errorf("expected %s version %d, got %q version %d: it was written by something else or a newer release", kind, version, h.Kind, h.Version)
	}
	return nil
}

// mark is how far a file has been handed out: all bytes before End, whose hash is Sum.
type mark struct {
	End int64  `json:"end"`
	Sum string `json:"sum"`
}

// state is how far each file has been handed out, and which splits of that are with no lane.
type state struct {
	head
	Files map[string]mark `json:"files"` // by print
	Queue []stream.Split  `json:"queue"`
}

func parseState(data []byte) (state, error) {
	s := state{Files: map[string]mark{}}
	if data == nil {
		return s, nil
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("%s: not readable: %w", stateKind, err)
	}
	if s.Files == nil {
		s.Files = map[string]mark{}
	}
	return s, s.check(stateKind)
}

// part is what a split says: the lines of a file between two places.
type part struct {
	head
	Print string `json:"print"`
	Start int64  `json:"start"`
	End   int64  `json:"end"`
	Line  int64  `json:"line"` // number of the line before
}

func parsePart(data []byte) (part, error) {
	var p part
	if err := json.Unmarshal(data, &p); err != nil {
		return p, fmt.Errorf("%s: not readable: %w", splitKind, err)
	}
	return p, p.check(splitKind)
}

// enumerator hands out the parts of the files.
type enumerator struct {
	files map[string]mark
	queue []stream.Split
	size  int64
}

func (r *Replay) newEnumerator(data []byte) (*enumerator, error) {
	s, err := parseState(data)
	if err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	e := &enumerator{files: maps.Clone(s.Files), queue: s.Queue}
	for _, s := range e.queue {
		p, err := parsePart(s.Data)
		if err != nil {
			return nil, fmt.Errorf("dead letters: %w", err)
		}
		if r.plans[p.Print] == nil {
			return nil, fmt.Errorf("dead letters: a replay that did not end was reading %s, which is not among the files that were named: name it too, or put it back", s.ID)
		}
		e.size += p.End - s.Position
	}
	for _, print := range r.order {
		if err := e.add(r.plans[print]); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// add hands out what was not handed out before.
func (e *enumerator) add(p *plan) error {
	done := e.files[p.print].End
	for i, end := range p.cuts[1:] {
		start := p.cuts[i]
		if end.at <= done {
			continue
		}
		if start.at < done {
			return lasting(fmt.Errorf("dead letters: %w", changed(p.path)))
		}
		data, err := json.Marshal(part{head{splitKind, version}, p.print, start.at, end.at, start.line})
		if err != nil {
			return err
		}
		e.queue = append(e.queue, stream.Split{ID: fmt.Sprintf("%s[%d:%d]", readable(p.path), start.at, end.at), Data: data, Position: start.at})
		e.size += end.at - start.at
	}
	e.files[p.print] = mark{p.end().at, p.end().sum}
	return nil
}

// readable is a path as text: ids are text, and two of them are never the same.
func readable(path string) string {
	if !utf8.ValidString(path) {
		return strconv.Quote(path)
	}
	return path
}

// Next hands out the head of the queue.
func (e *enumerator) Next(int) (stream.Split, error) {
	if len(e.queue) == 0 {
		return stream.Split{}, io.EOF
	}
	s := e.queue[0]
	e.queue = e.queue[1:]
	return s, nil
}

// Return puts splits back behind the queue.
func (e *enumerator) Return(_ int, splits []stream.Split) { e.queue = append(e.queue, splits...) }

// Snapshot is how far each file has been handed out, and what is in the queue.
func (e *enumerator) Snapshot() ([]byte, error) {
	return json.Marshal(state{head{stateKind, version}, e.files, e.queue})
}

// Size is what there is to read.
func (e *enumerator) Size() (int64, bool) { return e.size, true }

// Close has nothing to free.
func (e *enumerator) Close() error { return nil }

// lastingError is one that the next attempt would meet again.
type lastingError struct{ error }

func lasting(err error) error { return lastingError{err} }

func (e lastingError) Unwrap() error { return e.error }

// Permanent is true: see engine.Restart.
func (lastingError) Permanent() bool { return true }
