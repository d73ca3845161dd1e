package fileload

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestInParallel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ n, limit int }{{0, 8}, {1, 8}, {9, 8}, {100, 7}, {5, 64}, {5, 1}} {
		synctest.Test(t, func(t *testing.T) {
			var active, most atomic.Int64
			var mu sync.Mutex
			seen := map[int]int{}
			inParallel(t.Context(), c.n, c.limit, func(_ context.Context, i int) {
				if now := active.Add(1); now > most.Load() {
					most.Store(now)
				}
				<-time.After(time.Second)
				active.Add(-1)
				mu.Lock()
				defer mu.Unlock()
				seen[i]++
			})
			if len(seen) != c.n || most.Load() > int64(c.limit) || most.Load() < int64(min(c.n, c.limit)) {
				t.Errorf("%+v: %d were done, %d at once", c, len(seen), most.Load())
			}
		})
	}
}

func TestInParallelPanics(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, peers func(ctx context.Context)) (v any, took time.Duration, begun int64) {
		var n atomic.Int64
		defer func() { begun = n.Load() }()
		start := time.Now()
		defer func() { took = time.Since(start) }()
		defer func() { v = recover() }()
		inParallel(t.Context(), 100, 4, func(ctx context.Context, i int) {
			n.Add(1)
			if i == 1 {
				panic("boom")
			}
			peers(ctx)
		})
		return nil, 0, 0
	}
	t.Run("peers are ended and awaited", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			v, took, begun := run(t, func(ctx context.Context) {
				<-ctx.Done()
				<-time.After(time.Second)
			})
			if v != "boom" || took != time.Second || begun > 4 {
				t.Errorf("panic %v after %v, %d begun", v, took, begun)
			}
		})
	})
	t.Run("but not for ever", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			v, took, _ := run(t, func(context.Context) { <-time.After(time.Minute) })
			if v != "boom" || took != drainTime {
				t.Errorf("panic %v after %v", v, took)
			}
			<-time.After(time.Minute) // the peers end
		})
	})
}
