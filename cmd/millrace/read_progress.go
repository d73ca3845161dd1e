package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/term"

	"github.com/millrace-dev/millrace/bigquery/export"
)

// readProgress tells on the console how far a read is: a line that is drawn anew on a terminal, a line every ten seconds elsewhere.
type readProgress struct {
	console *console
	quiet   bool
	export  *export.Export
	began   time.Time
	last    time.Time
	rows    int64 // at last
	rate    float64
}

func newReadProgress(c *console, quiet bool, x *export.Export) *readProgress {
	now := time.Now()
	return &readProgress{console: c, quiet: quiet, export: x, began: now, last: now}
}

// follow shows it until it is told to end.
func (p *readProgress) follow() (stop func()) {
	if p.quiet {
		return func() {}
	}
	every := plainEvery
	if p.console.tty {
		every = liveEvery
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() { // ends with stop
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.show(p.export.Progress(), time.Now())
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
		p.console.setStatus("")
	}
}

func (p *readProgress) show(s export.Progress, now time.Time) {
	line := p.line(s, now)
	if p.console.tty {
		p.console.setStatus(line)
		return
	}
	p.console.printf("%s\n", line)
}

func (p *readProgress) line(s export.Progress, now time.Time) string {
	if dt := now.Sub(p.last).Seconds(); dt > 0 {
		rate := float64(s.Rows-p.rows) / dt
		if p.rate == 0 {
			p.rate = rate
		}
		p.rate += (rate - p.rate) * min(1, dt/2) // over about two seconds
	}
	p.last, p.rows = now, s.Rows
	line := fmt.Sprintf("read: %s rows, %s rows/s, %s, %s", count(s.Rows), count(int64(p.rate)), size(s.Bytes), now.Sub(p.began).Round(time.Second))
	if s.Known {
		line += fmt.Sprintf(", %.0f %%", 100*s.Share)
	}
	if s.Left > 0 {
		line += fmt.Sprintf(", %s left", max(s.Left, time.Second).Round(time.Second))
	}
	return line
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// readMemory is what the collector aims at while files are written, unless GOMEMLIMIT says otherwise.
const readMemory = 128 << 20

func limitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(readMemory)
	}
}
