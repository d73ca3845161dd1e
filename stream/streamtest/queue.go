package streamtest

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/stream"
)

// Queue is a message queue that lives outside of any process. It delivers every message until somebody acknowledges it,
// and delivers again, to new readers, what was delivered and not acknowledged. Reading it is at least once by nature.
type Queue struct {
	// Pace is how long a fetch takes.
	Pace time.Duration

	mu    sync.Mutex // guards acked and taken
	items []Item
	acked map[int]bool
	taken map[int]*queueReader // who has it
}

// NewQueue is a queue of n messages.
func NewQueue(n int) *Queue {
	q := &Queue{acked: map[int]bool{}, taken: map[int]*queueReader{}}
	for i := range n {
		q.items = append(q.items, Item{Row: int64(i)})
	}
	return q
}

// Left is how many messages nobody has acknowledged.
func (q *Queue) Left() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) - len(q.acked)
}

// Bounded implements stream.Source: a queue that is read until it is empty ends there.
func (q *Queue) Bounded() bool { return true }

// queueSplits is how many readers share a queue.
const queueSplits = 3

// NewEnumerator implements stream.Source. Every split reads the whole queue.
func (q *Queue) NewEnumerator(ctx context.Context, ec stream.EnumeratorContext) (stream.Enumerator, error) {
	return Ranges{Splits: queueSplits}.NewEnumerator(ctx, ec)
}

// NewReader implements stream.Source.
func (q *Queue) NewReader(context.Context, stream.ReaderContext) (stream.Reader[Item], error) {
	return &queueReader{q: q, due: map[int64][]int{}}, nil
}

type queueReader struct {
	q        *Queue
	split    string // "" when none is open
	position int64
	fetched  []int // messages not yet in a barrier
	done     int   // fetched[:done] are of finished splits, fetched[done] is at position first of the open one
	first    int64
	due      map[int64][]int // messages by checkpoint
	order    []int64
	pace     pacer
}

func (r *queueReader) Open(_ context.Context, s stream.Split) error {
	r.split, r.position, r.first, r.done = s.ID, s.Position, s.Position, len(r.fetched)
	return nil
}

func (r *queueReader) Fetch(ctx context.Context, b *stream.Batch[Item]) error {
	b.Reset()
	if r.split == "" {
		return errors.New("no split is open")
	}
	if err := r.pace.wait(ctx, r.q.Pace); err != nil {
		return err
	}
	for range 2 {
		n, ok := r.q.take(r)
		if !ok {
			break
		}
		b.Row(r.position, r.position+1)
		b.Emit(stream.Record[Item]{Value: r.q.items[n], At: stream.Position{Split: r.split, Row: r.position}})
		r.fetched = append(r.fetched, n)
		r.position++
	}
	if b.Len() == 0 {
		r.split = ""
		return io.EOF
	}
	return nil
}

func (q *Queue) take(by *queueReader) (int, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for n := range q.items {
		if !q.acked[n] && q.taken[n] == nil {
			q.taken[n] = by
			return n, true
		}
	}
	return 0, false
}

// Barrier implements stream.Acknowledger.
func (r *queueReader) Barrier(checkpoint, consumed int64) {
	n := len(r.fetched)
	if r.split != "" {
		n = r.done + int(consumed-r.first)
	}
	r.due[checkpoint] = r.fetched[:n:n]
	r.fetched = r.fetched[n:]
	r.first, r.done = consumed, 0
	r.order = append(r.order, checkpoint)
}

// Acknowledge implements stream.Acknowledger.
func (r *queueReader) Acknowledge(_ context.Context, checkpoint int64) error {
	for len(r.order) > 0 && r.order[0] <= checkpoint {
		r.q.ack(r.due[r.order[0]])
		delete(r.due, r.order[0])
		r.order = r.order[1:]
	}
	return nil
}

func (q *Queue) ack(messages []int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, n := range messages {
		q.acked[n] = true
	}
}

// Close gives back what was not acknowledged.
func (r *queueReader) Close() error {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	for n, by := range r.q.taken {
		if by == r {
			delete(r.q.taken, n)
		}
	}
	return nil
}

// Disconnect gives back what dead processes had been given, as a queue does after a while.
func (q *Queue) Disconnect() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.taken)
}
