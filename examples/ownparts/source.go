// Package ownparts is a source and a sink of a program's own: entries of a service that is asked page by page, written to
// another one that takes them in batches. The suites of streamtest hold both to the contracts.
package ownparts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/millrace-dev/millrace/stream"
)

// Pages is the service that is read. Entries of a shard are numbered from 0 and never change.
type Pages interface {
	// Page gives entries of a shard from a number on; none is the end. It ends early, with ctx's error, when ctx does.
	Page(ctx context.Context, shard string, from int64) ([]string, error)
}

// Source reads every entry of the shards, and ends. A shard is a split, the number of an entry is its position.
type Source struct {
	Pages  Pages
	Shards []string
}

var _ stream.Source[string] = Source{}

// Bounded is true: entries that come later are not read.
func (s Source) Bounded() bool { return true }

// NewEnumerator hands out the shards, or what a checkpoint says is left of them.
func (s Source) NewEnumerator(_ context.Context, ec stream.EnumeratorContext) (stream.Enumerator, error) {
	e := &enumerator{}
	if ec.State != nil {
		return e, e.restore(ec.State)
	}
	for _, shard := range s.Shards {
		e.Queue = append(e.Queue, stream.Split{ID: shard, Data: []byte(splitKind + shard)})
	}
	return e, nil
}

// NewReader makes the reader of one lane.
func (s Source) NewReader(context.Context, stream.ReaderContext) (stream.Reader[string], error) {
	return &reader{pages: s.Pages}, nil
}

// Bytes that outlive the process say what they are, and which version.
const (
	splitKind = "ownparts.split/1 "
	stateKind = "ownparts.enumerator/1"
)

// enumerator is also its own snapshot.
type enumerator struct {
	Kind  string
	Queue []stream.Split
}

func (e *enumerator) restore(state []byte) error {
	if err := json.Unmarshal(state, e); err != nil {
		return fmt.Errorf("enumerator state: %w", err)
	}
	if e.Kind != stateKind {
		return fmt.Errorf("enumerator state is %q, expected %q", e.Kind, stateKind)
	}
	return nil
}

func (e *enumerator) Next(int) (stream.Split, error) {
	if len(e.Queue) == 0 {
		return stream.Split{}, io.EOF
	}
	s := e.Queue[0]
	e.Queue = e.Queue[1:]
	return s, nil
}

func (e *enumerator) Return(_ int, splits []stream.Split) { e.Queue = append(e.Queue, splits...) }

func (e *enumerator) Snapshot() ([]byte, error) {
	e.Kind = stateKind
	return json.Marshal(e)
}

func (e *enumerator) Close() error { return nil }

// reader reads one shard at a time.
type reader struct {
	pages Pages
	shard string
	next  int64
	open  bool
}

func (r *reader) Open(_ context.Context, s stream.Split) error {
	shard, ok := cutKind(s.Data)
	if !ok {
		return fmt.Errorf("split %s is of another kind or version", s.ID)
	}
	r.shard, r.next, r.open = shard, s.Position, true
	return nil
}

func cutKind(data []byte) (shard string, ok bool) {
	if len(data) < len(splitKind) || string(data[:len(splitKind)]) != splitKind {
		return "", false
	}
	return string(data[len(splitKind):]), true
}

// Fetch hands over one page. The end of a shard is io.EOF itself, wrapped in nothing.
func (r *reader) Fetch(ctx context.Context, b *stream.Batch[string]) error {
	b.Reset()
	if !r.open {
		return errors.New("no split is open")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := r.pages.Page(ctx, r.shard, r.next)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		r.open = false
		return io.EOF
	}
	for _, entry := range entries {
		b.Row(r.next, r.next+1)
		b.Emit(stream.Record[string]{Value: entry, At: stream.Position{Split: r.shard, Row: r.next}})
		r.next++
	}
	return nil
}

func (r *reader) Close() error {
	r.open = false
	return nil
}
