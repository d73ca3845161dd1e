package registry

import (
	"sync"
	"time"

	"github.com/millrace-dev/millrace/bigquery/row/avrorow"
)

// cache keeps schemas for ever, and for a while that there is none: somebody may register it yet, but records that carry a wrong id
// must not cost a request each.
type cache struct {
	mu     sync.Mutex // guards the maps
	found  map[uint32]avrorow.Registered
	absent map[uint32]absence
}

type absence struct {
	err   error
	until time.Time
}

const (
	absentFor = 30 * time.Second
	maxAbsent = 10_000 // ids are four bytes of anything where a message is damaged
)

func (c *cache) get(id uint32) (avrorow.Registered, error, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.found[id]; ok {
		return r, nil, true
	}
	a, ok := c.absent[id]
	return avrorow.Registered{}, a.err, ok && time.Now().Before(a.until)
}

func (c *cache) put(id uint32, r avrorow.Registered, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		if c.found == nil {
			c.found = map[uint32]avrorow.Registered{}
		}
		c.found[id] = r
		return
	}
	if c.absent == nil || len(c.absent) >= maxAbsent {
		c.absent = map[uint32]absence{}
	}
	c.absent[id] = absence{err, time.Now().Add(absentFor)}
}
