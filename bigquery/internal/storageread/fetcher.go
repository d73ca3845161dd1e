package storageread

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/stream"
)

// fetcher receives the blocks of one stream into a queue, opening the call again as its resume says. Its goroutine is
// owned by the Reader and ends at the stream's end, when reading has failed for good, or at stop.
type fetcher struct {
	stream string
	open   openRows
	stall  time.Duration // 0 waits for ever
	resume resume
	queue  *blockQueue
	parts  bool // blocks stay where they were received
	log    *slog.Logger
	count  fetchCounters
	shown  *progress

	cancel context.CancelFunc
	done   chan struct{}
}

type fetchCounters struct{ rows, bytes, retries, throttled stream.Counter }

// start begins to fetch. ctx lends its values; it does not bound the fetcher's life.
func (f *fetcher) start(ctx context.Context) {
	ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	f.done = make(chan struct{})
	go func() {
		defer close(f.done)
		defer f.shown.closed()
		f.queue.finish(f.run(ctx))
	}()
}

// stop ends the call that is open and waits for the goroutine. What is queued can still be taken.
func (f *fetcher) stop() {
	f.cancel()
	<-f.done
}

// run makes attempts until the stream or ctx ends or resume gives up, and says which.
func (f *fetcher) run(ctx context.Context) error {
	for {
		err := f.attempt(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		wait, end := f.resume.failed(err)
		if end != nil {
			return end
		}
		f.shown.note(func(r *Reading) { r.LastError, r.LastErrorAt, r.Retries = err, time.Now(), r.Retries+1 })
		f.log.InfoContext(ctx, "reading on after an error", "stream", f.stream, "offset", f.resume.received,
			"wait", wait, "error", err)
		if err := retry.Sleep(ctx, wait); err != nil {
			return err
		}
		f.count.retries.Add(1)
	}
}

var errStalled = errors.New("no response within StallTimeout")

// attempt makes one call and receives until it ends. A call that is neither drained nor cancelled leaks, so every
// attempt has a context of its own.
func (f *fetcher) attempt(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := f.watch(cancel)
	defer watch.stop()

	watch.start()
	receive, err := f.open(ctx, f.stream, f.resume.opening())
	for err == nil {
		watch.stop()
		if err = f.queue.room(ctx); err != nil {
			break
		}
		watch.start()
		var resp *response
		if resp, err = receive(); err == nil {
			err = f.received(resp)
		}
	}
	if context.Cause(ctx) == errStalled {
		return status.Error(codes.Unavailable, errStalled.Error())
	}
	return err
}

func (f *fetcher) received(resp *response) error {
	b, err := f.block(resp)
	if err != nil {
		return err
	}
	switch {
	case b.rows < 0:
		return &row.Error{Kind: row.KindDecode, Offset: -1, Msg: fmt.Sprintf("a response of %d rows", b.rows)}
	case b.rows == 0 && (b.size == 0 || resp.arrow):
		return nil // says something else than rows; a batch of Arrow takes bytes without any
	}
	f.count.rows.Add(b.rows)
	f.count.bytes.Add(int64(b.size))
	f.resume.got(b.rows)
	f.note(resp)
	f.queue.put(b)
	return nil
}

func (f *fetcher) block(resp *response) (block, error) {
	b := block{rows: resp.RowCount, size: resp.rows.Len(), progress: resp.GetStats().GetProgress().GetAtResponseEnd()}
	size := resp.GetUncompressedByteSize()
	if f.parts && size <= 0 {
		b.parts = resp.rows
		return b, nil
	}
	var err error
	if b.data, err = expand(whole(resp.rows), size); err == nil {
		b.size = len(b.data)
	}
	return b, err
}

// note shows a response.
func (f *fetcher) note(resp *response) {
	throttled := int(resp.GetThrottleState().GetThrottlePercent())
	if throttled > 0 {
		f.count.throttled.Add(1)
	}
	f.shown.note(func(r *Reading) {
		r.Received, r.Throttled, r.Since = f.resume.received, throttled, time.Now()
		if p := resp.GetStats().GetProgress(); p != nil {
			r.Progress = p.AtResponseEnd
		}
	})
}

// watch cancels a call that stays silent for too long.
func (f *fetcher) watch(cancel context.CancelCauseFunc) stallWatch {
	if f.stall == 0 {
		return stallWatch{}
	}
	t := time.AfterFunc(f.stall, func() { cancel(errStalled) })
	return stallWatch{t, f.stall}
}

type stallWatch struct {
	timer *time.Timer // nil when nobody watches
	after time.Duration
}

func (w stallWatch) start() {
	if w.timer != nil {
		w.timer.Reset(w.after)
	}
}

func (w stallWatch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// openRows opens a ReadRows call, receiveRows reads from it. Cancelling the context that opened it closes it.
type (
	openRows    func(ctx context.Context, stream string, offset int64) (receiveRows, error)
	receiveRows func() (*response, error)
)
