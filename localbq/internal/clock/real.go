package clock

import "time"

// Real is the machine's clock.
func Real() Clock { return machine{} }

type machine struct{}

func (machine) Now() time.Time                            { return time.Now() }
func (machine) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// Scaled runs factor times as fast as the machine's clock, from the present on. A factor of 60 makes an hour of a minute.
// It panics unless factor is positive.
func Scaled(factor float64) Clock {
	if !(factor > 0) {
		panic("clock: Scaled needs a positive factor")
	}
	return &scaled{start: time.Now(), factor: factor}
}

type scaled struct {
	start  time.Time
	factor float64
}

func (s *scaled) Now() time.Time {
	return s.start.Add(time.Duration(float64(time.Since(s.start)) * s.factor))
}

func (s *scaled) AfterFunc(d time.Duration, f func()) Timer {
	return time.AfterFunc(time.Duration(float64(d)/s.factor), f)
}
