package row

import (
	"sync"
	"time"
	_ "time/tzdata" // timestamps with zone names mean the same on every machine
)

// zones are the time zones that records have named so far. There are some six hundred names in all; unknown ones are not
// kept, so hostile input does not make it grow.
var zones zoneCache

type zoneCache struct {
	mu    sync.RWMutex // guards known
	known map[string]*time.Location
}

// find returns nil for what is no zone. "Local" is none: it would mean something else on every machine.
func (c *zoneCache) find(name string) *time.Location {
	c.mu.RLock()
	loc := c.known[name]
	c.mu.RUnlock()
	if loc != nil || len(name) > 64 || name == "Local" || name == "" {
		return loc
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[string]*time.Location{}
	}
	c.known[name] = loc
	return loc
}
