package restcall

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/api/googleapi"

	"github.com/millrace-dev/millrace/internal/retry"
)

func answer(code int, reason string) error {
	return &googleapi.Error{Code: code, Errors: []googleapi.ErrorItem{{Reason: reason}}}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want Answer
	}{
		"none":                       {nil, Done},
		"rate limit with 403":        {answer(403, "rateLimitExceeded"), Limited},
		"rate limit of jobs":         {answer(403, "jobRateLimitExceeded"), Limited},
		"429":                        {answer(429, ""), Limited},
		"quota of the day":           {answer(403, "quotaExceeded"), Terminal},
		"quota of the day, with 429": {answer(429, "quotaExceeded"), Terminal},
		"denied":                     {answer(403, "accessDenied"), Terminal},
		"conflict":                   {answer(409, "duplicate"), Exists},
		"not found":                  {answer(404, "notFound"), Absent},
		"changed":                    {answer(412, "conditionNotMet"), Stale},
		"bad moment":                 {answer(503, "backendError"), Passing},
		"out of time":                {context.DeadlineExceeded, Passing},
		"anything else":              {errors.New("x"), Terminal},
	} {
		if got := Classify(c.err); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestCaller(t *testing.T) {
	t.Parallel()
	busy := answer(503, "backendError")
	caller := Caller{Schedule: retry.Schedule{Initial: time.Second, Max: 10 * time.Second, Spread: retry.Exact}, Log: slog.New(slog.DiscardHandler)}
	t.Run("goes on until its time is up, and names the last answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := caller
			c.Within = time.Minute
			begun, calls := time.Now(), 0
			err := c.Do(t.Context(), "look", func(context.Context) error { calls++; return busy })
			if !errors.Is(err, busy) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "look: no answer within 1m0s") {
				t.Errorf("got %v", err)
			}
			if took := time.Since(begun); took != time.Minute || calls != 9 { // after 0, 1, 3, 7, 15, 25, 35, 45 and 55 s
				t.Errorf("%d calls in %v", calls, took)
			}
		})
	})
	t.Run("an attempt without an answer does not take all of it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := caller
			c.Within = 2 * time.Minute
			calls := 0
			err := c.Do(t.Context(), "look", func(ctx context.Context) error {
				if calls++; calls > 1 {
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			})
			if err != nil || calls != 2 {
				t.Errorf("%d calls, %v", calls, err)
			}
		})
	})
	t.Run("ends with the caller's context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := caller
			c.Within = time.Hour
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(2*time.Second, cancel)
			if err := c.Do(ctx, "look", func(context.Context) error { return busy }); !errors.Is(err, context.Canceled) || !errors.Is(err, busy) {
				t.Errorf("got %v", err)
			}
		})
	})
	t.Run("what is absent says so", func(t *testing.T) {
		gone := answer(404, "notFound")
		if err := caller.Do(t.Context(), "look", func(context.Context) error { return gone }); !errors.Is(err, ErrAbsent) || !errors.Is(err, gone) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("budget", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := caller
			c.Schedule.Attempts = 3
			calls := 0
			err := c.Do(t.Context(), "look", func(context.Context) error { calls++; return busy })
			if calls != 3 || !errors.Is(err, retry.ErrBudgetSpent) || !errors.Is(err, busy) {
				t.Errorf("%d calls, %v", calls, err)
			}
		})
	})
}
