package retry

import (
	"context"
	"fmt"
	"time"
)

// Pacer waits between attempts. The zero value waits for real; tests replace its parts. Safe for concurrent use if they
// are.
type Pacer struct {
	// Rand answers random numbers in [0, 1).
	Rand func() float64
	// Sleep returns nil after d, or ctx's error as soon as ctx ends.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Wait waits as s says after the failure of that attempt, counted from 1. When ctx ends first it returns at once, with
// ctx's cause and what was awaited, given as a verb phrase such as "append to p.d.t again".
func (p Pacer) Wait(ctx context.Context, s Schedule, attempt int, what string) error {
	return p.Pause(ctx, p.Delay(s, attempt), what)
}

// Delay draws the delay that Wait would wait for.
func (p Pacer) Delay(s Schedule, attempt int) time.Duration {
	if p.Rand == nil {
		return s.Delay(attempt, Random())
	}
	return s.Delay(attempt, p.Rand())
}

// Pause waits for d, as Wait does.
func (p Pacer) Pause(ctx context.Context, d time.Duration, what string) error {
	sleep := p.Sleep
	if sleep == nil {
		sleep = Sleep
	}
	if err := sleep(ctx, d); err != nil {
		return fmt.Errorf("stopped while waiting %v to %s: %w", d.Round(time.Millisecond), what, err)
	}
	return nil
}

// Sleep waits for d or until ctx ends, whichever comes first, and returns ctx's cause in the latter case. A context
// that has ended wins over a delay of 0.
func Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
