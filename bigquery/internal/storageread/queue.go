package storageread

import (
	"context"
	"sync"

	"google.golang.org/grpc/mem"
)

// block is the rows of one response, in data or, where they stay as they were received, in parts.
type block struct {
	data  []byte
	parts mem.BufferSlice
	size  int // of either, in bytes
	rows  int64
	// progress is the share of the stream that ends with it, as the service tells.
	progress float64
}

// blockQueue stands between the fetcher, which fills it, and the reader, which empties it. Its bound is in bytes, because
// blocks may be anything between some bytes and 128 MiB: it has room as long as it holds fewer than maxBytes, so it
// holds less than maxBytes and one block more.
type blockQueue struct {
	maxBytes int

	mu     sync.Mutex // guards blocks, bytes, end
	blocks []block
	bytes  int
	end    error // what comes after the last block

	added, taken chan struct{} // each holds one signal for the one goroutine that may be waiting
}

func newBlockQueue(maxBytes int) *blockQueue {
	return &blockQueue{maxBytes: maxBytes, added: make(chan struct{}, 1), taken: make(chan struct{}, 1)}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// room waits until a block may be received, or until ctx ends.
func (q *blockQueue) room(ctx context.Context) error {
	for {
		q.mu.Lock()
		free := q.bytes < q.maxBytes
		q.mu.Unlock()
		if free {
			return nil
		}
		select {
		case <-q.taken:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (q *blockQueue) put(b block) {
	q.mu.Lock()
	q.blocks = append(q.blocks, b)
	q.bytes += b.size
	q.mu.Unlock()
	signal(q.added)
}

// finish says that no block follows, and why.
func (q *blockQueue) finish(end error) {
	q.mu.Lock()
	q.end = end
	q.mu.Unlock()
	signal(q.added)
}

// take removes the first block. It waits for one; at the end it answers what finish was told, and when ctx ends before
// there is anything, ctx's error.
func (q *blockQueue) take(ctx context.Context) (block, error) {
	for {
		b, end, ok := q.pop()
		if ok || end != nil {
			return b, end
		}
		select {
		case <-q.added:
		case <-ctx.Done():
			return block{}, ctx.Err()
		}
	}
}

func (q *blockQueue) pop() (b block, end error, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.blocks) == 0 {
		return block{}, q.end, false
	}
	b = q.blocks[0]
	q.blocks[0] = block{}
	q.blocks = q.blocks[1:]
	q.bytes -= b.size
	signal(q.taken)
	return b, nil, true
}
