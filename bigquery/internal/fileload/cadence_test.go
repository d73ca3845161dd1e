package fileload

import (
	"testing"
	"time"
)

func TestCadence(t *testing.T) {
	t.Parallel()
	t.Run("FL-11 warns once in ten minutes", func(t *testing.T) {
		c, now := cadence{least: 2 * time.Minute}, time.Unix(0, 0)
		for _, step := range []struct {
			after time.Duration
			warn  bool
		}{{0, false}, {time.Minute, true}, {time.Minute, false}, {7*time.Minute + 59*time.Second, false}, {time.Minute, false},
			{time.Minute, true}, {2 * time.Minute, false}, {119_999 * time.Millisecond, false}} {
			now = now.Add(step.after)
			if since, warn := c.tooFast(now); warn != step.warn || warn && since != step.after {
				t.Errorf("%v later, at %v: warns %v of %v, want %v", step.after, now.Sub(time.Unix(0, 0)), warn, since, step.warn)
			}
		}
	})
	t.Run("not when it keeps to the interval", func(t *testing.T) {
		c, now := cadence{least: time.Minute}, time.Unix(0, 0)
		for range 5 {
			if _, warn := c.tooFast(now); warn {
				t.Error("warns")
			}
			now = now.Add(time.Minute)
		}
	})
	t.Run("a clock that is set back", func(t *testing.T) {
		c, now := cadence{least: 2 * time.Minute}, time.Unix(10_000, 0)
		for _, step := range []struct {
			after time.Duration
			warn  bool
		}{{0, false}, {-time.Hour, false}, {time.Minute, true}, {-time.Hour, false}, {2 * time.Minute, false}} {
			now = now.Add(step.after)
			if since, warn := c.tooFast(now); warn != step.warn {
				t.Errorf("%v later: warns %v of %v, want %v", step.after, warn, since, step.warn)
			}
		}
	})
}
