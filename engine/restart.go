package engine

import (
	"errors"
	"fmt"
	"time"
)

// Restart says what follows a failed attempt. The zero value is exponential: after 1 s, 2 s, 4 s and so on up to 1
// minute, at most 10 times in a row. Budgets are finite: a job that keeps failing ends, with its last error.
//
// A panic, a record that failed under stream.FailJob, another run of the same job, and errors that have a method
// Permanent() bool answering true, are never tried again: they would come back.
type Restart struct {
	Policy RestartPolicy

	// Initial is the first delay, and with FixedDelay every delay. The default is 1 s.
	Initial time.Duration
	// Max is the longest delay. The default is 1 minute, or Initial where that is longer. Exponential only.
	Max time.Duration
	// Multiplier is how much longer each delay is than the one before. The default is 2. Exponential only.
	Multiplier float64
	// ResetAfter is how long an attempt must have run for all failures before it to be forgotten. The default is 10
	// minutes.
	ResetAfter time.Duration
	// Attempts is how many restarts in a row are allowed. The default is 10.
	Attempts int
}

// RestartPolicy is a way to space restarts.
type RestartPolicy uint8

const (
	Exponential RestartPolicy = iota // each delay longer than the last
	FixedDelay                       // always the same delay
	NoRestart                        // the first failure ends the job
)

func (r Restart) resolve() (Restart, error) {
	var faults []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("Options.Restart."+format, args...))
		}
	}
	refuse(r.Policy > NoRestart, "Policy is %d: want Exponential, FixedDelay or NoRestart", r.Policy)
	refuse(r.Initial < 0, "Initial is %v: want a positive time, or 0 for 1s", r.Initial)
	refuse(r.Max < 0, "Max is %v: want a positive time, or 0 for 1m", r.Max)
	refuse(r.ResetAfter < 0, "ResetAfter is %v: want a positive time, or 0 for 10m", r.ResetAfter)
	refuse(r.Multiplier != 0 && !(r.Multiplier >= 1), "Multiplier is %v: want 1 or more, or 0 for 2", r.Multiplier)
	refuse(r.Attempts < 0, "Attempts is %d: want 1 or more, 0 for 10, or Policy NoRestart", r.Attempts)
	r.Initial = orDefault(r.Initial, time.Second)
	r.Max = orDefault(r.Max, max(time.Minute, r.Initial))
	r.Multiplier = orDefault(r.Multiplier, 2)
	r.ResetAfter = orDefault(r.ResetAfter, 10*time.Minute)
	r.Attempts = orDefault(r.Attempts, 10)
	refuse(r.Policy == Exponential && len(faults) == 0 && r.Max < r.Initial, "Max is %v, less than Initial, %v", r.Max, r.Initial)
	return r, errors.Join(faults...)
}

// budget counts the restarts that a policy still allows.
type budget struct {
	policy Restart
	spent  int
	delay  time.Duration
}

// next says how long to wait before the next attempt, after one that ran for so long failed. ok is false when there is
// to be none.
func (b *budget) next(ran time.Duration) (delay time.Duration, ok bool) {
	p := b.policy
	if ran >= p.ResetAfter {
		b.spent, b.delay = 0, 0
	}
	if p.Policy == NoRestart || b.spent >= p.Attempts {
		return 0, false
	}
	b.spent++
	if b.delay == 0 || p.Policy == FixedDelay {
		b.delay = p.Initial
		return b.delay, true
	}
	// As a float: the product may be more than a Duration holds.
	b.delay = time.Duration(min(float64(b.delay)*p.Multiplier, float64(p.Max)))
	return b.delay, true
}
