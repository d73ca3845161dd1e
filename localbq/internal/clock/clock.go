package clock

import (
	"context"
	"time"
)

// Clock tells the time and wakes up. Safe for concurrent use.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f once d has passed, in a goroutine of its own, except on a Manual clock, which calls it inside
	// Advance. A d of zero or less is due at once.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a pending call.
type Timer interface {
	// Stop prevents the call and reports whether it was in time.
	Stop() bool
}

// Sleep waits until d has passed on c or ctx is done, whose cause it then returns.
func Sleep(ctx context.Context, c Clock, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	woken := make(chan struct{})
	timer := c.AfterFunc(d, func() { close(woken) })
	select {
	case <-woken:
		return nil
	case <-ctx.Done():
		timer.Stop()
		return context.Cause(ctx)
	}
}
