package lineage

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/stream"
)

// transport brings one event where it belongs. send is called from one goroutine. An error that is final is not worth
// another try.
type transport interface {
	send(ctx context.Context, body []byte) error
	close() error
}

// final is an error that another try would meet again.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// item is an event as it travels.
type item struct {
	event EventType
	run   string
	body  []byte
}

// maxQueued is more than a run has on its way: a start, that it is under way, an end.
const maxQueued = 16

type outletConfig struct {
	schedule   retry.Schedule
	pacer      retry.Pacer
	log        *slog.Logger
	sent, lost stream.Counter
}

// outlet is the queue before one transport. Its goroutine is owned by the emitter and ends with close.
type outlet struct {
	outletConfig
	transport transport
	ctx       context.Context // the life of the goroutine
	cancel    context.CancelFunc
	wake      chan struct{} // capacity 1
	done      chan struct{}

	mu       sync.Mutex // guards what follows
	queue    []item
	finished bool // nothing is added any more
}

func newOutlet(t transport, c outletConfig) *outlet {
	o := &outlet{outletConfig: c, transport: t, wake: make(chan struct{}, 1), done: make(chan struct{})}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	go o.run()
	return o
}

// put adds an event. That a run is under way is told by the newest such event alone.
func (o *outlet) put(it item) {
	o.mu.Lock()
	n := len(o.queue)
	full := false
	switch {
	case n > 0 && it.event == Running && o.queue[n-1].event == Running && o.queue[n-1].run == it.run:
		o.queue[n-1] = it
	case n >= maxQueued || o.finished:
		full = true
	default:
		o.queue = append(o.queue, it)
	}
	o.mu.Unlock()
	if full {
		o.giveUp(it, errors.New("the queue is full or closed"))
	}
	o.poke()
}

func (o *outlet) poke() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outlet) run() {
	defer close(o.done)
	for {
		it, more := o.next()
		if !more {
			return
		}
		o.deliver(it)
	}
}

// next waits for an event; false is the end.
func (o *outlet) next() (item, bool) {
	for {
		o.mu.Lock()
		if len(o.queue) > 0 {
			it := o.queue[0]
			o.queue = o.queue[1:]
			o.mu.Unlock()
			return it, true
		}
		finished := o.finished
		o.mu.Unlock()
		if finished {
			return item{}, false
		}
		<-o.wake
	}
}

func (o *outlet) deliver(it item) {
	for attempt := 1; ; attempt++ {
		err := o.transport.send(o.ctx, it.body)
		if err == nil {
			o.sent.Add(1)
			return
		}
		if errors.As(err, new(final)) || o.schedule.Spent(attempt) || o.ctx.Err() != nil {
			o.giveUp(it, err)
			return
		}
		if it.event == Running && o.waiting() {
			return // what waits tells more
		}
		delay := o.pacer.Delay(o.schedule, attempt)
		o.log.Info("lineage event failed: trying again", "event", string(it.event), "run", it.run, "attempt", attempt,
			"of", o.schedule.Attempts, "backoff", delay, "cause", err)
		if err := o.pacer.Pause(o.ctx, delay, "send a lineage event again"); err != nil {
			o.giveUp(it, err)
			return
		}
	}
}

func (o *outlet) waiting() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue) > 0
}

func (o *outlet) giveUp(it item, err error) {
	o.lost.Add(1)
	o.log.Warn("lineage event given up", "event", string(it.event), "run", it.run, "error", err)
}

// finish says that nothing will be added.
func (o *outlet) finish() {
	o.mu.Lock()
	o.finished = true
	o.mu.Unlock()
	o.poke()
}

// close waits for what is on its way, for that long at most. A write that no context can end is left behind.
func (o *outlet) close(within time.Duration) error {
	late := time.AfterFunc(within, o.cancel)
	defer late.Stop()
	defer o.cancel()
	select {
	case <-o.done:
		return o.transport.close()
	case <-o.ctx.Done():
	}
	hung := time.NewTimer(time.Second)
	defer hung.Stop()
	select {
	case <-o.done:
		return o.transport.close()
	case <-hung.C:
		return errors.New("lineage: an event is still being written")
	}
}
