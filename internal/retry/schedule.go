package retry

import (
	"errors"
	"math"
	"math/rand/v2"
	"time"
)

// ErrBudgetSpent is found in the error of an operation that failed in passing, again and again, until its schedule
// allowed no further attempt.
var ErrBudgetSpent = errors.New("retry budget exhausted")

// Options where zero itself means something have a zero value that means the default, and these names for the zero.
const (
	NoDelay time.Duration = -1 // try again at once
	NoLimit time.Duration = -1 // never give up because of the time it took
)

// Spread is how a delay is randomised, so that many callers that failed together do not come back together.
type Spread uint8

const (
	// Around draws from 75 % to 125 % of the delay, at least 1 ms. The mean is the delay.
	Around Spread = iota
	// Below draws from 0 up to the delay.
	Below
	// Exact draws nothing.
	Exact
)

// Schedule is a budget of attempts and the delays between them. It is a value, safe for concurrent use.
type Schedule struct {
	Initial    time.Duration // delay after the first failed attempt; 0 is none
	Max        time.Duration // no delay grows beyond it, before randomisation
	Multiplier float64       // growth from delay to delay; 0 is 2
	Attempts   int           // attempts in all, 0 is without limit
	Spread     Spread
}

// SchemaWait paces rows that wait for a changed table schema to reach the write service. The service sets the pace:
// widened rows were accepted after about 35 s in six of seven measured runs (measured 2026-08).
var SchemaWait = Schedule{Initial: 30 * time.Second, Max: 30 * time.Second, Attempts: 30}

// SchemaRace spreads the writers that change one table at the same moment over the quota of about five metadata updates
// in 10 s for each table (BigQuery quotas page, "Standard tables").
var SchemaRace = Schedule{Initial: 500 * time.Millisecond, Max: 500 * time.Millisecond, Multiplier: 1, Attempts: 5, Spread: Below}

// Reconnect paces the opening of a lost connection. How long to go on is the caller's: lost connections are limited by
// time.
var Reconnect = Schedule{Initial: 50 * time.Millisecond, Max: 60 * time.Second, Spread: Exact}

// Spent reports whether a failure of that attempt, counted from 1, was the last one allowed.
func (s Schedule) Spent(attempt int) bool { return s.Attempts > 0 && attempt >= s.Attempts }

// Delay is how long to wait after the failure of that attempt, counted from 1. u is a random number in [0, 1).
func (s Schedule) Delay(attempt int, u float64) time.Duration {
	if s.Initial <= 0 {
		return 0
	}
	m := s.Multiplier
	if m == 0 {
		m = 2
	}
	d := min(float64(s.Initial)*math.Pow(m, float64(max(attempt, 1)-1)), float64(s.Max))
	switch s.Spread {
	case Below:
		d *= u
	case Around:
		d = max(d*(0.75+0.5*u), float64(time.Millisecond))
	}
	return time.Duration(d)
}

// Random is the source of randomness of a Pacer that has none of its own.
func Random() float64 { return rand.Float64() }
