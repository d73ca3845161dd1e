package streamtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/millrace-dev/millrace/stream"
)

// World is what lies outside of all processes: tables that rows become visible in, directly or through streams that are
// appended to at offsets and made visible up to one, and a place for dead letters.
type World struct {
	mu      sync.Mutex // guards the fields below
	rows    []Row      // inserted directly
	streams map[string]*appendStream
	dead    []Item
}

// Row is a row that can be seen.
type Row struct {
	Destination string
	Item        Item
}

type appendStream struct {
	destination string
	items       []Item
	visible     int
}

var (
	errOffsetTaken = errors.New("there is a row at this offset")
	errOffsetAhead = errors.New("the offset is beyond the end of the stream")
	errNoStream    = errors.New("there is no such stream")
)

// NewWorld is a world without rows.
func NewWorld() *World { return &World{streams: map[string]*appendStream{}} }

// Rows returns all visible rows in the order of their items.
func (w *World) Rows() []Row {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Clone(w.rows)
	for _, s := range w.streams {
		for _, i := range s.items[:s.visible] {
			all = append(all, Row{s.destination, i})
		}
	}
	slices.SortFunc(all, func(a, b Row) int { return compareItems(a.Item, b.Item) })
	return all
}

func compareItems(a, b Item) int {
	if a.Row != b.Row {
		return int(a.Row - b.Row)
	}
	return a.Part - b.Part
}

// Items returns the items of all visible rows, in order, duplicates included.
func (w *World) Items() (items []Item) {
	for _, r := range w.Rows() {
		items = append(items, r.Item)
	}
	return items
}

// Dead returns the dead letters, in order, duplicates included.
func (w *World) Dead() []Item {
	w.mu.Lock()
	defer w.mu.Unlock()
	dead := slices.Clone(w.dead)
	slices.SortFunc(dead, compareItems)
	return dead
}

func (w *World) insert(destination string, items []Item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range items {
		w.rows = append(w.rows, Row{destination, i})
	}
}

// create makes a stream that appends to a destination.
func (w *World) create(destination string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := fmt.Sprintf("%s/streams/%d", destination, len(w.streams))
	w.streams[name] = &appendStream{destination: destination}
	return name
}

// append adds items to a stream at an offset, which must be its end.
func (w *World) append(name string, offset int, items []Item) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.streams[name]
	switch {
	case s == nil:
		return fmt.Errorf("append to %s: %w", name, errNoStream)
	case offset < len(s.items):
		return fmt.Errorf("append to %s at %d: %w", name, offset, errOffsetTaken)
	case offset > len(s.items):
		return fmt.Errorf("append to %s at %d: %w", name, offset, errOffsetAhead)
	}
	s.items = append(s.items, items...)
	return nil
}

// flush makes the first rows of a stream visible. Rows that are visible stay so.
func (w *World) flush(name string, rows int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.streams[name]
	if s == nil {
		return fmt.Errorf("flush %s: %w", name, errNoStream)
	}
	if rows > len(s.items) {
		return fmt.Errorf("flush %s up to %d: %w", name, rows, errOffsetAhead)
	}
	s.visible = max(s.visible, rows)
	return nil
}

// DeadLetters is the failure policy whose handlers keep failed records in their buffers until they are flushed, and then
// in the world.
func (w *World) DeadLetters() stream.FailurePolicy { return deadLetters{w} }

type deadLetters struct{ w *World }

func (d deadLetters) NewHandler(context.Context, stream.HandlerContext) (stream.FailureHandler, error) {
	return &deadHandler{w: d.w}, nil
}

type deadHandler struct {
	w        *World
	buffered []Item
}

func (h *deadHandler) Handle(_ context.Context, f *stream.FailedRecord) error {
	item, err := ParseItem(string(f.Original))
	if err != nil {
		return err
	}
	h.buffered = append(h.buffered, item)
	return nil
}

func (h *deadHandler) Flush(context.Context) error {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	h.w.dead = append(h.w.dead, h.buffered...)
	h.buffered = nil
	return nil
}

func (h *deadHandler) Close() error { return nil }
