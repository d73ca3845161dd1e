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

// findZone returns nil for what is no zone. "Local" is none: it would mean something else on every machine.
func findZone[S Text](c *zoneCache, name S) *time.Location {
	c.mu.RLock()
	loc := c.known[string(name)]
	c.mu.RUnlock()
	if loc != nil || len(name) > 64 {
		return loc
	}
	return c.load(string(name))
}

func (c *zoneCache) load(name string) *time.Location {
	if name == "Local" || name == "" {
		return nil
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
