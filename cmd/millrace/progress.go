package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/millrace-dev/millrace/engine"
)

// progress tells on the console how a job is going: a line that is drawn anew on a terminal, a line every ten seconds
// elsewhere.
type progress struct {
	console *console
	quiet   bool
	began   time.Time
	last    time.Time
	rows    int64 // at last
	rate    float64
}

const (
	liveEvery  = 200 * time.Millisecond
	plainEvery = 10 * time.Second
)

func newProgress(c *console, quiet bool) *progress {
	now := time.Now()
	return &progress{console: c, quiet: quiet, began: now, last: now}
}

// follow shows how a run is going until it is told to end.
func (p *progress) follow(h *engine.Handle) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() { // ends with stop
		defer close(ended)
		tick := time.NewTicker(p.every())
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.show(h.Status())
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
		p.done()
	}
}

// every is how often to call show.
func (p *progress) every() time.Duration {
	if p.console.tty {
		return liveEvery
	}
	return plainEvery
}

func (p *progress) show(s engine.Status) {
	if p.quiet {
		return
	}
	now := time.Now()
	if dt := now.Sub(p.last).Seconds(); dt > 0 {
		rate := float64(s.Tally.Read-p.rows) / dt
		if p.rate == 0 {
			p.rate = rate
		}
		p.rate += (rate - p.rate) * min(1, dt/2) // over about two seconds
	}
	p.last, p.rows = now, s.Tally.Read
	line := p.line(s, now)
	if p.console.tty {
		p.console.setStatus(line)
		return
	}
	p.console.printf("%s\n", line)
}

func (p *progress) line(s engine.Status, now time.Time) string {
	line := fmt.Sprintf("%s: %s rows, %s rows/s, %s, %d checkpoints, %s", s.Job, count(s.Tally.Read), count(int64(p.rate)),
		size(s.InputBytes), s.Checkpoints, now.Sub(p.began).Round(time.Second))
	if s.TotalBytes > 0 {
		line += fmt.Sprintf(", %.0f %%", min(100, 100*float64(s.InputBytes)/float64(s.TotalBytes)))
	}
	if s.Tally.DeadLettered > 0 {
		line += ", " + count(s.Tally.DeadLettered) + " dead letters"
	}
	if s.State != engine.Running {
		line += ", " + s.State.String()
	}
	return line
}

func (p *progress) done() { p.console.setStatus("") }

// count writes a number with its thousands apart.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// size writes a number of bytes to three digits.
func size(n int64) string {
	v, units := float64(n), []string{"B", "kB", "MB", "GB", "TB", "PB"}
	u := 0
	for ; v >= 999.5 && u < len(units)-1; u++ {
		v /= 1000
	}
	switch {
	case u == 0:
		return fmt.Sprintf("%d B", n)
	case v < 10:
		return fmt.Sprintf("%.2f %s", v, units[u])
	case v < 100:
		return fmt.Sprintf("%.1f %s", v, units[u])
	}
	return fmt.Sprintf("%.0f %s", v, units[u])
}
