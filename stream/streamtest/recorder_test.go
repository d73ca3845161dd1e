package streamtest

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a TB that takes note of failures.
type recorder struct {
	ctx context.Context

	mu     sync.Mutex
	failed bool
	said   string
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.ctx }

func (r *recorder) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said += fmt.Sprintf(format, args...) + "\n"
}

func (r *recorder) Errorf(format string, args ...any) {
	r.Logf(format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// pass lets virtual time pass.
func pass(d time.Duration) { time.Sleep(d) }

// watch runs a check and says whether it failed, and what it said. A panic is a failure.
func watch(ctx context.Context, f func(TB)) (failed bool, said string) {
	r := &recorder{ctx: ctx}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				r.Errorf("panic: %v\n%s", v, debug.Stack())
			}
		}()
		f(r)
	}()
	<-done
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed, r.said
}

// broken is an implementation with one thing wrong.
type broken[H any] struct {
	name  string
	make  func(t *testing.T) H
	fails []string                   // the checks that must fail; all others must pass
	tune  func(h H, mustFail bool) H // may make the others cheaper; may be nil
}

// proveChecks runs every check against every broken implementation, and requires each check to be proved by one that
// fails it alone.
func proveChecks[H any](t *testing.T, checks []check[H], all []broken[H]) {
	proved := map[string]bool{}
	for _, b := range all {
		t.Run(b.name, func(t *testing.T) {
			for _, name := range b.fails {
				if len(b.fails) == 1 {
					proved[name] = true
				}
				if !slices.ContainsFunc(checks, func(c check[H]) bool { return c.name == name }) {
					t.Errorf("there is no check %s", name)
				}
			}
			for _, c := range checks {
				synctest.Test(t, func(t *testing.T) {
					want := slices.Contains(b.fails, c.name)
					h := b.make(t)
					if b.tune != nil {
						h = b.tune(h, want)
					}
					failed, said := watch(t.Context(), func(tb TB) { c.run(tb, h) })
					if failed != want {
						t.Errorf("check %s: failed %v, want %v\n%s", c.name, failed, want, said)
					}
					time.Sleep(24 * time.Hour) // for what the broken left sleeping
				})
			}
		})
	}
	for _, c := range checks {
		if !proved[c.name] {
			t.Errorf("no broken implementation proves that check %s can fail", c.name)
		}
	}
}
