package clock

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestManual(t *testing.T) {
	t.Run("timers fire in order of due time, ties by age, inside Advance", func(t *testing.T) {
		m := NewManual(Start)
		start := m.Now()
		var fired []string
		note := func(name string) func() {
			return func() { fired = append(fired, name+"@"+m.Now().Sub(start).String()) }
		}
		m.AfterFunc(3*time.Second, note("c"))
		m.AfterFunc(time.Second, note("a"))
		m.AfterFunc(time.Second, note("b"))
		m.AfterFunc(9*time.Second, note("late"))
		m.Advance(5 * time.Second)
		if want := []string{"a@1s", "b@1s", "c@3s"}; !slices.Equal(fired, want) {
			t.Errorf("fired %v, want %v", fired, want)
		}
		if got := m.Now().Sub(start); got != 5*time.Second {
			t.Errorf("clock moved by %v, want 5s", got)
		}
	})
	t.Run("a timer made by a timer fires in the same Advance when due", func(t *testing.T) {
		m := NewManual(Start)
		ticks := 0
		var tick func()
		tick = func() { ticks++; m.AfterFunc(time.Second, tick) }
		m.AfterFunc(time.Second, tick)
		m.Advance(10 * time.Second)
		if ticks != 10 {
			t.Errorf("%d ticks in 10s, want 10", ticks)
		}
	})
	t.Run("a stopped timer does not fire, and says whether it was in time", func(t *testing.T) {
		m := NewManual(Start)
		timer := m.AfterFunc(time.Second, func() { t.Error("stopped timer fired") })
		if !timer.Stop() {
			t.Error("first Stop reports it was late")
		}
		m.Advance(time.Minute)
		if timer.Stop() {
			t.Error("second Stop reports it was in time")
		}
	})
	t.Run("Stop after firing is late", func(t *testing.T) {
		m := NewManual(Start)
		timer := m.AfterFunc(time.Second, func() {})
		m.Advance(time.Second)
		if timer.Stop() {
			t.Error("Stop of a fired timer reports it was in time")
		}
	})
}

func TestSleep(t *testing.T) {
	t.Run("wakes on the clock", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := NewManual(Start)
			done := make(chan error, 1)
			go func() { done <- Sleep(t.Context(), m, time.Hour) }()
			synctest.Wait()
			m.Advance(time.Hour)
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("ends with the context's cause", func(t *testing.T) {
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if err := Sleep(ctx, NewManual(Start), time.Hour); !errors.Is(err, why) {
			t.Errorf("got %v, want %v", err, why)
		}
	})
}

func TestScaled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Scaled(60)
		start := c.Now()
		begun := time.Now()
		if err := Sleep(t.Context(), c, time.Hour); err != nil {
			t.Fatal(err)
		}
		if real := time.Since(begun); real != time.Minute {
			t.Errorf("an hour took %v of the machine's time, want 1m", real)
		}
		if got := c.Now().Sub(start); got != time.Hour {
			t.Errorf("clock shows %v passed, want 1h", got)
		}
	})
}
