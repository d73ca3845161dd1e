package rate_test

import (
	"testing"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/rate"
)

func TestBuckets(t *testing.T) {
	c := clock.NewManual(clock.Start)
	b := rate.NewBuckets[string](c)
	take := func(key string, n int64, overdraw, want bool) {
		t.Helper()
		if got := b.Take(key, 10, time.Minute, n, overdraw); got != want {
			t.Errorf("%s, %d: %v", key, n, got)
		}
	}
	take("a", 8, false, true)
	take("a", 3, false, false)
	take("a", 3, true, true) // overdrawn by one
	take("a", 1, true, false)
	take("b", 10, false, true) // keys have nothing to do with one another
	c.Advance(12 * time.Second)
	take("a", 1, false, true)
	take("a", 1, false, false)
	c.Advance(time.Hour)
	take("a", 10, false, true)
	take("a", 1, false, false)
	for i, want := range []time.Duration{0, 0, 500 * time.Millisecond, time.Second} {
		if wait := b.Owe("owed", 2, time.Second); wait != want {
			t.Errorf("wait %d is %v, want %v", i, wait, want)
		}
	}
	c.Advance(time.Second)
	if wait := b.Owe("owed", 2, time.Second); wait != 500*time.Millisecond || b.Owe("owed", 0, time.Second) != 0 {
		t.Errorf("a second later it is %v", wait)
	}
	if !b.Take("a", 0, time.Minute, 1<<40, false) {
		t.Error("0 is a limit")
	}
}

func TestWindows(t *testing.T) {
	c := clock.NewManual(clock.Start)
	w := rate.NewWindows[int](c, 10*time.Second)
	for i := range 3 {
		if !w.Take(1, 3) {
			t.Fatalf("take %d is refused", i)
		}
		c.Advance(time.Second)
	}
	if w.Take(1, 3) || !w.Take(2, 3) || !w.Take(1, 0) {
		t.Error("the fourth passes, or another key does not, or 0 is a limit")
	}
	c.Advance(7*time.Second - time.Nanosecond)
	if w.Take(1, 3) {
		t.Error("the fourth passes before ten seconds are over")
	}
	c.Advance(time.Nanosecond)
	if !w.Take(1, 3) || w.Take(1, 3) {
		t.Error("one place, and no more, is free once the first is ten seconds old")
	}
	for key := range 10_000 {
		w.Take(10+key, 3)
		c.Advance(11 * time.Second)
	}
	if n := w.Len(); n > 64 {
		t.Errorf("%d keys are kept", n)
	}
}
