package fault

import (
	"context"
	"fmt"
	"slices"
)

// Barrier is a call held at a phase.
type Barrier struct {
	ID    int64  `json:"id"`
	Rule  string `json:"rule"`
	Phase Phase  `json:"phase"`
	Call  Call   `json:"call"`

	rules    *Rules
	released chan struct{}
	cut      bool // guarded by Rules.mu
}

// barrier holds the calling goroutine until the barrier is released, and reports whether the call is to be cut.
func (r *Rules) barrier(a *armed, phase Phase, c Call) bool {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return false
	}
	r.nextID++
	b := &Barrier{ID: r.nextID, Rule: a.Name, Phase: phase, Call: c, rules: r, released: make(chan struct{})}
	r.barriers[b.ID] = b
	r.waiting = append(r.waiting, b)
	close(r.arrived)
	r.arrived = make(chan struct{})
	r.mu.Unlock()
	<-b.released
	r.mu.Lock()
	defer r.mu.Unlock()
	return b.cut
}

// release lets the call go on; Rules.mu is held.
func (b *Barrier) release() {
	if _, held := b.rules.barriers[b.ID]; !held {
		return
	}
	delete(b.rules.barriers, b.ID)
	b.rules.waiting = slices.DeleteFunc(b.rules.waiting, func(w *Barrier) bool { return w == b })
	close(b.released)
}

// Release lets the call go on. It may be called more than once.
func (b *Barrier) Release() {
	b.rules.mu.Lock()
	defer b.rules.mu.Unlock()
	b.release()
}

// Cut lets the call go on with its connection cut off, as a harness does once it has killed the caller: the service does not
// notice that by itself for as long as it has not read a request's body. A call held at phase receive is not carried out.
func (b *Barrier) Cut() {
	b.rules.mu.Lock()
	defer b.rules.mu.Unlock()
	b.cut = true
	b.release()
}

// HeldAt finds a barrier by its id.
func (r *Rules) HeldAt(id int64) (*Barrier, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.barriers[id]
	if b == nil {
		return nil, fmt.Errorf("no call is held at barrier %d", id)
	}
	return b, nil
}

// NextBarrier waits for a held call that nobody has been told of yet, the one held longest first.
func (r *Rules) NextBarrier(ctx context.Context) (*Barrier, error) {
	for {
		r.mu.Lock()
		if len(r.waiting) > 0 {
			b := r.waiting[0]
			r.waiting = r.waiting[1:]
			r.mu.Unlock()
			return b, nil
		}
		arrived := r.arrived
		r.mu.Unlock()
		select {
		case <-arrived:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
