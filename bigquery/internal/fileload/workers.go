package fileload

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// drainTime is how long a panic waits for what runs beside it.
const drainTime = 30 * time.Second

// errPeerPanicked ends what runs beside a panic.
var errPeerPanicked = errors.New("another part of the commit panicked")

// inParallel calls do for 0 to n-1, at most limit at once, and returns when all have returned. One that is alone runs on the caller's
// goroutine. A panic ends the contexts of the others, waits for them, and goes on in the caller.
func inParallel(ctx context.Context, n, limit int, do func(ctx context.Context, i int)) {
	if n == 1 || limit == 1 {
		for i := range n {
			do(ctx, i)
		}
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var workers sync.WaitGroup
	panics := make(chan any, min(n, limit))
	for range min(n, limit) {
		// Owned by this call, which waits for them, for a while only after a panic.
		workers.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					next.Store(int64(n))
					panics <- v
					cancel(errPeerPanicked)
				}
			}()
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				do(ctx, i)
			}
		})
	}
	ended := make(chan struct{})
	go func() { // ends with the workers
		workers.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case v := <-panics:
		drain(ended)
		panic(v)
	}
	select {
	case v := <-panics:
		panic(v)
	default:
	}
}

func drain(ended <-chan struct{}) {
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}
