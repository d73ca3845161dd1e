package storagewrite

import (
	"container/list"
	"context"
	"sync"
)

// window bounds the unanswered appends of a connection, by number and by bytes, and those of them that were not sent yet by
// bytes. Callers that find it full wait in order. Safe for concurrent use.
type window struct {
	maxRequests, maxBytes int
	maxUnsent             int // 0 is no bound

	mu       sync.Mutex // guards what follows
	requests int
	bytes    int
	unsent   int       // bytes
	waiters  list.List // of *waiter
}

type waiter struct {
	bytes int
	ready chan struct{} // closed once the permit is the waiter's
}

// fits: something larger than the whole window passes when it is alone.
func (w *window) fits(n int) bool {
	return w.requests == 0 || w.requests < w.maxRequests && w.bytes+n <= w.maxBytes &&
		(w.unsent == 0 || w.maxUnsent == 0 || w.unsent+n <= w.maxUnsent)
}

func (w *window) take(n int) {
	w.requests++
	w.bytes += n
	w.unsent += n
}

// acquire waits for a permit over n bytes, or for the end of ctx, and then holds none.
func (w *window) acquire(ctx context.Context, n int) error {
	w.mu.Lock()
	if w.waiters.Len() == 0 && w.fits(n) {
		w.take(n)
		w.mu.Unlock()
		return nil
	}
	me := &waiter{n, make(chan struct{})}
	at := w.waiters.PushBack(me)
	w.mu.Unlock()

	select {
	case <-me.ready:
		return nil
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-me.ready: // given at the same moment: pass it on
		w.unsent -= n
		w.give(n)
	default:
		w.waiters.Remove(at)
		w.admit()
	}
	return context.Cause(ctx)
}

// sent says that n bytes of a permit are no longer unsent. It comes once for each permit, before release.
func (w *window) sent(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unsent -= n
	w.admit()
}

// release gives a permit over n bytes back.
func (w *window) release(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.give(n)
}

func (w *window) give(n int) {
	w.requests--
	w.bytes -= n
	w.admit()
}

func (w *window) admit() {
	for e := w.waiters.Front(); e != nil && w.fits(e.Value.(*waiter).bytes); e = w.waiters.Front() {
		w.take(e.Value.(*waiter).bytes)
		close(e.Value.(*waiter).ready)
		w.waiters.Remove(e)
	}
}

// load is how many requests and bytes are out.
func (w *window) load() (requests, bytes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.requests, w.bytes
}
