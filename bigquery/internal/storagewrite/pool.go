package storagewrite

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// pool is the connections to one place with one set of options, shared by all lanes. Default streams are unordered, so
// a table may use several connections, and a connection carries several tables. Safe for concurrent use.
type pool struct {
	open     openFunc
	options  connOptions
	min, max int

	ctx  context.Context // the life of the connections, not of any call
	stop context.CancelFunc

	mu    sync.Mutex // guards conns
	conns []*conn
}

func newPool(open openFunc, o connOptions, minConns, maxConns int) *pool {
	p := &pool{open: open, options: o, min: minConns, max: maxConns}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// close ends all connections and waits for their goroutines.
func (p *pool) close() {
	p.stop()
	p.mu.Lock()
	conns := p.conns
	p.conns = nil
	p.mu.Unlock()
	for _, c := range conns {
		<-c.ended
	}
}

// pick answers which connection a handle should use that used was on until now, nil for a new one. A handle stays
// where it is until that connection is busy, then moves to the least loaded one, and when that is busy too, to a new
// one while there may be more.
func (p *pool) pick(used *conn) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = slices.DeleteFunc(p.conns, func(c *conn) bool { return !c.alive() })
	if used != nil && !used.busy() {
		return used
	}
	if used == nil && len(p.conns) < p.min {
		return p.grow()
	}
	if len(p.conns) == 0 {
		return p.grow()
	}
	least := slices.MinFunc(p.conns, func(a, b *conn) int {
		ar, ab := a.window.load()
		br, bb := b.window.load()
		return cmp.Or(cmp.Compare(ab, bb), cmp.Compare(ar, br))
	})
	switch {
	case !least.busy():
		return least
	case len(p.conns) < p.max:
		return p.grow()
	case used != nil:
		return used
	}
	return least
}

func (p *pool) grow() *conn {
	c := newConn(p.ctx, p.open, p.options)
	p.conns = append(p.conns, c)
	return c
}

// handle is one lane's way to append to one stream. It belongs to the lane.
type handle struct {
	pool   *pool
	stream string
	conn   *conn
}

func newHandle(p *pool, stream string) *handle { return &handle{p, stream, p.pick(nil)} }

// append hands the call to a connection, waiting for room. A handle whose connection died keeps it: its appends fail
// until it is replaced by a new one, which gets a connection that lives.
func (h *handle) append(ctx context.Context, c *call) error {
	if h.conn.alive() {
		h.conn = h.pool.pick(h.conn)
	}
	c.stream, c.offset = h.stream, noOffset
	return h.conn.append(ctx, c)
}
