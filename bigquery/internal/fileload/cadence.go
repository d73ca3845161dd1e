package fileload

import "time"

// cadence notices commits that follow one another faster than a table bears: BigQuery allows 1,500 modifications of a table a day, and
// each commit is one.
type cadence struct {
	least        time.Duration // between two commits
	last, warned time.Time
}

// warnEvery is how often the log hears of it.
const warnEvery = 10 * time.Minute

// tooFast is told of a commit, and answers how long ago the one before was if the log is to hear of it. A clock that has been set back
// says nothing.
func (c *cadence) tooFast(now time.Time) (since time.Duration, warn bool) {
	last := c.last
	c.last = now
	since = now.Sub(last)
	if last.IsZero() || since < 0 || since >= c.least || !c.warned.IsZero() && now.Sub(c.warned) < warnEvery {
		return since, false
	}
	c.warned = now
	return since, true
}
