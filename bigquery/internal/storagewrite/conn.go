package storagewrite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/internal/retry"
)

// watchdog is how long an append may stay unanswered before the connection is given up. There is no shorter limit for
// single appends: it would turn slow progress into duplicates.
const watchdog = 5 * time.Minute

// maxUnsent is how many bytes of appends wait to be sent before a lane waits for them: one request of the usual size, while
// another is being sent and the lane fills a third. A lane that runs further ahead gains nothing, and loses the processor's caches:
// its rows are out of them by the time they are sent (measured 2026-11-30, docs/reference/benchmarks.md).
const maxUnsent = 512 << 10

// slow is how long an append waits to be sent before another connection would be of use: this one takes less than 10 MB/s then.
const slow = 100 * time.Millisecond

// errReset ends a stream whose unanswered appends have to be sent again in order.
var errReset = errors.New("stream is opened again to keep appends in order")

// appendStream is an AppendRows stream: frames go in, answers come out. SendMsg and RecvMsg may be called at the same
// time.
type appendStream interface {
	SendMsg(frame any) error
	RecvMsg(answer any) error
}

// openFunc opens a stream, which ends when ctx does.
type openFunc func(ctx context.Context) (appendStream, error)

// conn carries appends over one AppendRows stream at a time, opens the next one when it is lost, and gives up when it
// cannot be mended. Its goroutine runs from newConn until close or death; each stream has a receiver goroutine beside
// it, joined before the next stream is opened.
type conn struct {
	open    openFunc
	traceID string
	log     *slog.Logger
	window  window
	ended   chan struct{} // closed when run has returned
	wake    chan struct{} // capacity 1: there may be something to send

	mu    sync.Mutex // guards what follows; never held while waiting for anything
	pipe  pipeline
	dead  error                   // why the connection takes no more appends
	reset context.CancelCauseFunc // ends the current stream, nil when there is none
	timer *time.Timer             // the watchdog, nil when nothing is unanswered
	was   elision                 // what the service knows on the current stream
}

// newConn makes a connection and starts its goroutine, which ends when ctx does.
func newConn(ctx context.Context, open openFunc, o connOptions) *conn {
	c := &conn{
		open: open, traceID: o.traceID, log: o.log,
		window: window{maxRequests: o.maxInflightRequests, maxBytes: o.maxInflightBytes, maxUnsent: maxUnsent},
		ended:  make(chan struct{}),
		wake:   make(chan struct{}, 1),
		pipe:   pipeline{resend: o.resend, maxRetryDuration: o.maxRetryDuration, rand: o.rand},
	}
	go c.run(ctx)
	return c
}

// append takes a call, or waits until the window has room for it, or ctx ends. What becomes of a call that was taken
// is told through its future, also when the connection is dead.
func (c *conn) append(ctx context.Context, call *call) error {
	call.since = time.Now()
	if err := c.window.acquire(ctx, call.size); err != nil {
		return err
	}
	call.load.Add(int64(call.size))
	c.mu.Lock()
	dead := c.dead
	if dead == nil {
		c.pipe.add(call)
	}
	c.mu.Unlock()
	if dead != nil {
		c.finish(call, nil, closedBy(dead))
		return nil
	}
	c.poke()
	return nil
}

func (c *conn) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// finish gives the call's permit back and makes its result known.
func (c *conn) finish(call *call, answer *storagepb.AppendRowsResponse, err error) {
	if call.sends == 0 {
		c.window.sent(call.size)
	}
	c.window.release(call.size)
	call.finish(answer, err)
}

// run opens streams for as long as there is something to send.
func (c *conn) run(ctx context.Context) {
	defer close(c.ended)
	for c.awaitWork(ctx) {
		err := c.session(ctx)
		if ctx.Err() != nil {
			break
		}
		wait, ok := c.afterSession(err)
		if !ok {
			c.die(err)
			return
		}
		if retry.Sleep(ctx, wait) != nil {
			break
		}
	}
	c.die(ErrConnClosed)
}

// awaitWork blocks until there is something to send; false is the end of ctx.
func (c *conn) awaitWork(ctx context.Context) bool {
	for {
		c.mu.Lock()
		idle := len(c.pipe.queue) == 0 && len(c.pipe.paused) == 0
		c.mu.Unlock()
		if !idle {
			return ctx.Err() == nil
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
			return false
		}
	}
}

// afterSession answers how long to wait before the next stream, and whether there is to be one.
func (c *conn) afterSession(err error) (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(err, errReset):
		return c.pipe.rewind(time.Now()), true
	case errors.Is(err, ErrResponseTimeout):
		return 0, false
	}
	wait, ok := c.pipe.lost(err, time.Now())
	c.log.Info("append connection lost", "cause", err, "reopen", ok, "backoff", wait, "unanswered", len(c.pipe.queue))
	return wait, ok
}

// session is the life of one stream: it returns why the stream ended, after the stream's receiver has ended.
func (c *conn) session(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil) // CloseSend alone would leak the stream
	s, err := c.open(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.reset, c.was = cancel, elision{traceID: c.traceID}
	c.mu.Unlock()
	defer c.disarm()

	received := make(chan struct{})
	go func() { // owned by session, ends with the stream, joined below
		defer close(received)
		cancel(c.receive(s))
	}()
	c.send(ctx, cancel, s)
	<-received
	return context.Cause(ctx)
}

// disarm ends the watchdog of a stream.
func (c *conn) disarm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reset = nil
	c.rearm(time.Now())
}

// send feeds the stream until it ends.
func (c *conn) send(ctx context.Context, cancel context.CancelCauseFunc, s appendStream) {
	for ctx.Err() == nil {
		f, wait := c.next()
		if f == nil {
			c.rest(ctx, wait)
			continue
		}
		err := s.SendMsg(f)
		f.rows.free()
		if errors.Is(err, io.EOF) { // the stream is over and the receiver knows why
			<-ctx.Done()
		} else if err != nil {
			cancel(err)
		}
	}
}

// next makes the next request and starts the watchdog over it. The request holds on to its rows: as soon as the call
// counts as sent, an answer may end it, be it a bogus one.
func (c *conn) next() (*frame, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	call, wait := c.pipe.next(now)
	if call == nil {
		return nil, wait
	}
	if c.timer == nil {
		c.rearm(now)
	}
	if call.sends == 1 {
		c.window.sent(call.size)
	}
	f := c.was.frame(call)
	f.rows.hold()
	return f, 0
}

// rest waits until there may be something to send, or the stream is over.
func (c *conn) rest(ctx context.Context, wait time.Duration) {
	var due <-chan time.Time
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-c.wake:
	case <-due:
	case <-ctx.Done():
	}
}

// receive matches answers with calls until the stream ends and returns why it did.
func (c *conn) receive(s appendStream) error {
	for {
		a := new(storagepb.AppendRowsResponse)
		if err := s.RecvMsg(a); err != nil {
			return err
		}
		if err := c.answered(a); err != nil {
			return err
		}
	}
}

func (c *conn) answered(a *storagepb.AppendRowsResponse) error {
	c.mu.Lock()
	now := time.Now()
	call, r := c.pipe.answered(a, now)
	if call != nil {
		c.was.answered(call, a.GetError() == nil && len(a.GetRowErrors()) == 0)
	}
	c.rearm(now)
	c.mu.Unlock()
	switch r {
	case replyDone:
		c.finish(call, a, nil)
	case replyAgain:
		c.poke()
	case replyReset:
		return errReset
	case replyUnexpected:
		return status.Error(codes.Internal, "an answer came without a request")
	}
	return nil
}

// rearm sets the watchdog to the oldest unanswered call of the current stream. Called with mu held.
func (c *conn) rearm(now time.Time) {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	sentAt, any := c.pipe.oldest()
	if !any || c.reset == nil {
		return
	}
	reset := c.reset
	c.timer = time.AfterFunc(sentAt.Add(watchdog).Sub(now), func() { reset(ErrResponseTimeout) })
}

// die fails everything unanswered, the oldest call with the reason and the others as its victims, and every call to
// come.
func (c *conn) die(err error) {
	c.mu.Lock()
	c.dead = err
	calls := c.pipe.drain()
	c.rearm(time.Now())
	c.mu.Unlock()
	for i, call := range calls {
		if i == 0 {
			c.finish(call, nil, err)
		} else {
			c.finish(call, nil, closedBy(err))
		}
	}
}

// closedBy is ErrConnClosed with what closed the connection, in words only: the status belongs to somebody else's
// append and must not be taken for one's own.
func closedBy(err error) error {
	if errors.Is(err, ErrConnClosed) {
		return err
	}
	return fmt.Errorf("%w by the failure of another append: %v", ErrConnClosed, err)
}

// alive reports whether the connection takes appends.
func (c *conn) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead == nil
}

// busy reports whether another connection would be of use: more than a fifth of the window is out, or an append waits to be
// sent because the ones before it take long, or the service has owed an answer for more than 3 s.
func (c *conn) busy() bool {
	requests, bytes := c.window.load()
	if 5*requests > c.window.maxRequests || 5*bytes > c.window.maxBytes {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	sentAt, any := c.pipe.oldest()
	return any && now.Sub(sentAt) > 3*time.Second || c.pipe.waits(now) > slow
}

// elision remembers what the service knows from the requests before on a stream. A schema counts as known only once a
// request that it came with was taken: one that was refused, for want of the table say, may have taught nothing.
type elision struct {
	traceID string // "" once it was sent

	// Of the request before.
	stream string
	schema *schema

	// Of the last request that was taken; nil after one that was not.
	takenStream string
	taken       *schema
}

// frame encodes a call's request: the stream always, since several tables share a connection; the schema when it or
// the stream is another than in the request before, or not known for certain; the trace id once.
func (e *elision) frame(c *call) *frame {
	h := header{stream: c.stream, offset: c.offset, traceID: e.traceID, arrow: c.batch.arrow()}
	e.traceID = ""
	s := c.batch.schema
	if e.stream != c.stream || !s.same(e.schema) || e.takenStream != c.stream || !s.same(e.taken) {
		h.schema = s
	}
	e.stream, e.schema = c.stream, s
	b := make([]byte, 0, h.maxBytes())
	return &frame{h.append(b, c.size), c.batch.rows}
}

func (e *elision) answered(c *call, taken bool) {
	e.takenStream, e.taken = c.stream, nil
	if taken {
		e.taken = c.batch.schema
	}
}
