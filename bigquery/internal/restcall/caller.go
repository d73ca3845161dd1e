package restcall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/millrace-dev/millrace/internal/retry"
)

// ErrAbsent is found in the error of a call about a table, or in a dataset, that does not exist.
var ErrAbsent = errors.New("does not exist")

// attemptTimeout bounds one attempt of a Caller that does not say. Calls about tables and jobs answer within seconds; a minute is the
// service's own limit for a request.
const attemptTimeout = time.Minute

// Caller makes calls. Safe for concurrent use.
type Caller struct {
	Schedule retry.Schedule
	Pacer    retry.Pacer
	// Each bounds one attempt; 0 is a minute.
	Each time.Duration
	// Within bounds a call with all its attempts; 0 leaves that to the schedule.
	Within time.Duration
	Log    *slog.Logger
}

// Do makes attempts until one does not fail in passing, the budget is spent or ctx ends. what is a verb phrase such as "read table
// p.d.t". The error wraps the last answer, and ErrAbsent where that says so.
func (c Caller) Do(ctx context.Context, what string, do func(context.Context) error) error {
	if c.Within > 0 {
		late := fmt.Errorf("no answer within %v: %w", c.Within, context.DeadlineExceeded)
		bounded, cancel := context.WithTimeoutCause(ctx, c.Within, late)
		defer cancel()
		ctx = bounded
	}
	for attempt := 1; ; attempt++ {
		err := c.once(ctx, do)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ended(ctx, what, err)
		}
		switch Classify(err) {
		case Absent:
			return fmt.Errorf("%s: %w: %w", what, ErrAbsent, err)
		case Passing, Limited:
		default:
			return fmt.Errorf("%s: %w", what, err)
		}
		if c.Schedule.Spent(attempt) {
			return fmt.Errorf("%s: %w after attempts=%d: %w", what, retry.ErrBudgetSpent, attempt, err)
		}
		delay := c.Pacer.Delay(c.Schedule, attempt)
		c.Log.InfoContext(ctx, what+" again", "attempt", attempt, "of", c.Schedule.Attempts, "backoff", delay, "cause", err)
		if paused := c.Pacer.Pause(ctx, delay, what); paused != nil {
			return ended(ctx, what, err)
		}
	}
}

// ended is the error of a call whose time is up: it names the last answer where there was one.
func ended(ctx context.Context, what string, last error) error {
	cause := context.Cause(ctx)
	if errors.Is(last, context.Canceled) || errors.Is(last, context.DeadlineExceeded) || errors.Is(last, cause) {
		return fmt.Errorf("%s: %w", what, cause)
	}
	return fmt.Errorf("%s: %w; the last answer: %w", what, cause, last)
}

func (c Caller) once(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Each, attemptTimeout))
	defer cancel()
	return do(ctx)
}
