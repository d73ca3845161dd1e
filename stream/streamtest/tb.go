package streamtest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TB is the part of testing.TB that checks use, so that the tests of the suites can watch a check fail.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	Context() context.Context
}

// check is one named thing that an implementation must do.
type check[H any] struct {
	name string
	run  func(t TB, h H)
}

// runAll runs the checks as subtests, in a bubble of virtual time unless the harness needs real time.
func runAll[H any](t *testing.T, checks []check[H], h H, realTime bool) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			if realTime {
				c.run(t, h)
				return
			}
			synctest.Test(t, func(t *testing.T) { c.run(t, h) })
		})
	}
}

// patience is how long a check waits for something that should happen at once. Nothing waits so long unless it fails.
const patience = 30 * time.Second

// within runs f, which must return before the patience ends.
func within(t TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	// Owned by this call; left behind only when it blocks for ever, and then the check fails.
	go func() {
		defer close(done)
		f()
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.Fatalf("%s blocks", what)
	}
}
