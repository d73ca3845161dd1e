package retry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// The recovery schedule of the stream writers, with its defaults.
var recovery = Schedule{Initial: 500 * time.Millisecond, Max: 10 * time.Second, Attempts: 10}

func sum(s Schedule, u float64) time.Duration {
	var d time.Duration
	for k := 1; !s.Spent(k); k++ {
		d += s.Delay(k, u)
	}
	return d
}

func TestSumsOfSleeps(t *testing.T) {
	t.Parallel()
	in := Schedule{Initial: 500 * time.Millisecond, Max: 30 * time.Second, Multiplier: 2, Attempts: 6, Spread: Below}
	for _, c := range []struct {
		name           string
		s              Schedule
		low, mid, high time.Duration
	}{
		{"recovery", recovery, 41625 * time.Millisecond, 55500 * time.Millisecond, 69375 * time.Millisecond},
		{"schema wait", SchemaWait, 652500 * time.Millisecond, 870 * time.Second, 1087500 * time.Millisecond},
		{"schema race", SchemaRace, 0, time.Second, 2 * time.Second},
		{"in-stream", in, 0, 7750 * time.Millisecond, 15500 * time.Millisecond},
	} {
		if low, mid, high := sum(c.s, 0), sum(c.s, 0.5), sum(c.s, 1); low != c.low || mid != c.mid || high != c.high {
			t.Errorf("%s: sleeps add up to %v, %v, %v, want %v, %v, %v", c.name, low, mid, high, c.low, c.mid, c.high)
		}
	}
}

func TestReconnectIsCapped(t *testing.T) {
	t.Parallel()
	for attempt, want := range map[int]time.Duration{1: 50 * time.Millisecond, 2: 100 * time.Millisecond,
		11: 51200 * time.Millisecond, 12: time.Minute, 5000: time.Minute} {
		if got := Reconnect.Delay(attempt, 0.9); got != want {
			t.Errorf("attempt %d: %v, want %v", attempt, got, want)
		}
	}
	if Reconnect.Spent(1 << 30) {
		t.Error("a schedule without a limit is spent")
	}
}

func TestDelayStaysInItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := Schedule{
			Initial:    time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "initial")),
			Multiplier: rapid.Float64Range(1, 10).Draw(t, "multiplier"),
			Spread:     rapid.SampledFrom([]Spread{Around, Below, Exact}).Draw(t, "spread"),
		}
		s.Max = s.Initial + time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "more"))
		u := rapid.Float64Range(0, 0.999999).Draw(t, "u")
		d := s.Delay(rapid.IntRange(1, 10000).Draw(t, "attempt"), u)
		if d < 0 || float64(d) > max(1.25*float64(s.Max), float64(time.Millisecond)) {
			t.Fatalf("%+v: delay %v", s, d)
		}
		if s.Spread == Around && s.Initial > 0 && d < time.Millisecond {
			t.Fatalf("%+v: delay %v is under 1ms", s, d)
		}
	})
}

func TestWait(t *testing.T) {
	t.Parallel()
	t.Run("takes the delay", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			p := Pacer{Rand: func() float64 { return 0.5 }}
			if err := p.Wait(t.Context(), recovery, 3, "append"); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(start); got != 2*time.Second {
				t.Errorf("waited %v", got)
			}
		})
	})
	t.Run("ends with the context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start, cause := time.Now(), errors.New("lane stopped")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(cause) })
			err := Pacer{}.Wait(ctx, SchemaWait, 1, "append to p.d.t again")
			if !errors.Is(err, cause) || !strings.Contains(err.Error(), "append to p.d.t again") {
				t.Errorf("got %v", err)
			}
			if got := time.Since(start); got != time.Second {
				t.Errorf("waited %v", got)
			}
		})
	})
	t.Run("ended context beats no delay", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := (Pacer{}).Pause(ctx, 0, "open"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("parts are replaced", func(t *testing.T) {
		var slept time.Duration
		p := Pacer{Rand: func() float64 { return 0 }, Sleep: func(_ context.Context, d time.Duration) error {
			slept = d
			return nil
		}}
		if err := p.Wait(t.Context(), recovery, 1, "x"); err != nil || slept != 375*time.Millisecond {
			t.Errorf("slept %v, %v", slept, err)
		}
	})
}
