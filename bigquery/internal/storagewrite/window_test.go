package storagewrite

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestWindow(t *testing.T) {
	t.Parallel()
	t.Run("bounds requests and bytes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := &window{maxRequests: 2, maxBytes: 100}
			must := func(n int) {
				t.Helper()
				if err := w.acquire(t.Context(), n); err != nil {
					t.Fatal(err)
				}
			}
			must(60)
			var passed atomic.Int32
			go func() { must(50); passed.Add(1) }()
			synctest.Wait()
			go func() { must(1); passed.Add(1) }()
			synctest.Wait()
			if n := passed.Load(); n != 0 {
				t.Fatalf("%d passed a full window, or a waiter before it", n)
			}
			w.release(60)
			synctest.Wait()
			if n := passed.Load(); n != 2 {
				t.Fatalf("%d passed", n)
			}
			if r, b := w.load(); r != 2 || b != 51 {
				t.Errorf("%d requests, %d bytes", r, b)
			}
		})
	})
	t.Run("bounds what is not sent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := &window{maxRequests: 10, maxBytes: 1000, maxUnsent: 100}
			var passed atomic.Int32
			for _, n := range []int{200, 60, 60, 40} { // the first is a giant
				go func() {
					if w.acquire(t.Context(), n) == nil {
						passed.Add(1)
					}
				}()
				synctest.Wait()
			}
			for _, step := range []struct{ sent, want int }{{0, 1}, {200, 2}, {60, 4}} {
				if step.sent > 0 {
					w.sent(step.sent)
				}
				synctest.Wait()
				if n := int(passed.Load()); n != step.want {
					t.Errorf("%d passed after %d bytes were sent, want %d", n, step.sent, step.want)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := w.acquire(ctx, 1); err == nil {
				t.Error("passed a full window")
			}
			w.sent(60)
			w.sent(40)
			if w.unsent != 0 {
				t.Errorf("%d bytes are unsent", w.unsent)
			}
		})
	})
	t.Run("lets a giant pass alone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := &window{maxRequests: 10, maxBytes: 100}
			if err := w.acquire(t.Context(), 1000); err != nil {
				t.Fatal(err)
			}
			passed := false
			go func() { _ = w.acquire(t.Context(), 1); passed = true }()
			synctest.Wait()
			if passed {
				t.Error("something joined the giant")
			}
			w.release(1000)
			synctest.Wait()
			if !passed {
				t.Error("nothing passed after the giant")
			}
		})
	})
	t.Run("SW-144_ctx ends while waiting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := &window{maxRequests: 1, maxBytes: 100}
			if err := w.acquire(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			cause := errors.New("lane stopped")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(cause) })
			if err := w.acquire(ctx, 1); !errors.Is(err, cause) {
				t.Errorf("got %v", err)
			}
			if r, _ := w.load(); r != 1 || w.waiters.Len() != 0 {
				t.Errorf("%d requests, %d waiters", r, w.waiters.Len())
			}
		})
	})
	t.Run("a waiter that leaves lets smaller ones in", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := &window{maxRequests: 10, maxBytes: 100}
			if err := w.acquire(t.Context(), 60); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() { _ = w.acquire(ctx, 90) }()
			synctest.Wait()
			passed := false
			go func() { _ = w.acquire(t.Context(), 10); passed = true }()
			synctest.Wait()
			cancel()
			synctest.Wait()
			if !passed {
				t.Error("the small one waits for nobody")
			}
		})
	})
}
