package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Handle watches and steers a run from other goroutines. The zero value is ready: give it to Run in Options.Handle. It
// serves one run.
type Handle struct {
	mu       sync.Mutex // guards all fields; the channels are made at first use and never change
	run      *run       // nil before Run
	stop     chan struct{}
	stopOnce sync.Once
	requests chan chan<- savepointAnswer
	ended    chan struct{}
}

type savepointAnswer struct {
	id  int64
	err error
}

// ErrEnded is what a Handle answers when its run is over.
var ErrEnded = errors.New("the run has ended")

// ready makes the channels. Callers hold mu.
func (h *Handle) ready() {
	if h.stop == nil {
		h.stop, h.ended = make(chan struct{}), make(chan struct{})
		h.requests = make(chan chan<- savepointAnswer)
	}
}

func (h *Handle) bind(r *run) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready()
	if h.run != nil {
		return fmt.Errorf("Options.Handle is that of another run, of job %q: a Handle serves one run", h.run.name)
	}
	h.run = r
	return nil
}

// Status says how the run is doing. It may be called at any time, before and after the run too.
func (h *Handle) Status() Status {
	h.mu.Lock()
	r := h.run
	h.mu.Unlock()
	if r == nil {
		return Status{}
	}
	return r.status()
}

// Stop asks for a graceful stop and returns at once. A run that has not begun stops as soon as it has.
func (h *Handle) Stop() {
	stop := h.stopped()
	h.stopOnce.Do(func() { close(stop) })
}

// Savepoint takes a checkpoint that is kept until somebody deletes it, and returns its id once it is stored. Between two
// attempts it waits for the next.
func (h *Handle) Savepoint(ctx context.Context) (int64, error) {
	reply := make(chan savepointAnswer, 1)
	select {
	case h.savepointRequests() <- reply:
	case <-h.over():
		return 0, ErrEnded
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	select {
	case a := <-reply: // every request taken is answered
		return a.id, a.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

func (h *Handle) stopped() chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready()
	return h.stop
}

func (h *Handle) savepointRequests() chan chan<- savepointAnswer {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready()
	return h.requests
}

func (h *Handle) over() chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready()
	return h.ended
}
