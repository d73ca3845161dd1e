package storagewrite

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// pool is the connections to one place with one set of options, shared by all lanes. Default streams are unordered, so
// a table may use several connections, and a connection carries several tables. Rows are messages or Arrow batches, and a
// connection carries one of the two (storage.proto, AppendRowsRequest.rows): each has connections of its own. Safe for concurrent
// use.
type pool struct {
	open     openFunc
	options  connOptions
	min, max int

	ctx  context.Context // the life of the connections, not of any call
	stop context.CancelFunc

	mu    sync.Mutex // guards conns
	conns [2][]*conn // of messages, of Arrow batches
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
	clear(p.conns[:])
	p.mu.Unlock()
	for _, c := range slices.Concat(conns[:]...) {
		<-c.ended
	}
}

// pick answers which connection a handle should use that used was on until now, nil for a new one. A handle stays
// where it is until that connection is busy, then moves to the least loaded one, and when that is busy too, to a new
// one while there may be more.
func (p *pool) pick(used *conn, form int) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	conns := slices.DeleteFunc(p.conns[form], func(c *conn) bool { return !c.alive() })
	p.conns[form] = conns
	if used != nil && !used.busy() {
		return used
	}
	if used == nil && len(conns) < p.min {
		return p.grow(form)
	}
	if len(conns) == 0 {
		return p.grow(form)
	}
	least := slices.MinFunc(conns, func(a, b *conn) int {
		ar, ab := a.window.load()
		br, bb := b.window.load()
		return cmp.Or(cmp.Compare(ab, bb), cmp.Compare(ar, br))
	})
	switch {
	case !least.busy():
		return least
	case len(conns) < p.max:
		return p.grow(form)
	case used != nil:
		return used
	}
	return least
}

func (p *pool) grow(form int) *conn {
	c := newConn(p.ctx, p.open, p.options)
	p.conns[form] = append(p.conns[form], c)
	return c
}

// Forms of rows.
const (
	formMessages = iota
	formArrow
)

// handle is one lane's way to append to one stream. It belongs to the lane.
type handle struct {
	pool   *pool
	stream string
	conn   *conn
	arrow  *conn // nil before the first Arrow batch
}

func newHandle(p *pool, stream string) *handle {
	return &handle{pool: p, stream: stream, conn: p.pick(nil, formMessages)}
}

// append hands the call to a connection, waiting for room. A handle whose connection died keeps it: its appends fail
// until it is replaced by a new one, which gets a connection that lives.
func (h *handle) append(ctx context.Context, c *call) error {
	form, used := formMessages, &h.conn
	if c.batch.arrow() {
		form, used = formArrow, &h.arrow
	}
	if *used == nil || (*used).alive() {
		*used = h.pool.pick(*used, form)
	}
	c.stream, c.offset = h.stream, noOffset
	return (*used).append(ctx, c)
}
