package storagewrite

import (
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/mem"
)

// rowBuffer is the memory that rows are encoded into and sent from, without a copy in between. The batch holds one
// reference, and so does the transport for as long as it may still read: a connection that was lost can be reading
// long after its appends have failed. With the last reference gone the memory is used again.
type rowBuffer struct {
	data []byte
	refs atomic.Int32
	home *bufferCache // nil where the memory is somebody else's
}

// borrowed is memory that belongs to whoever handed it over, and is not used again.
func borrowed(data []byte) *rowBuffer {
	b := &rowBuffer{data: data}
	b.refs.Store(1)
	return b
}

func (b *rowBuffer) hold() { b.refs.Add(1) }

func (b *rowBuffer) free() {
	if b.refs.Add(-1) == 0 && b.home != nil {
		b.home.put(b)
	}
}

// shared returns the rows as the transport takes them, with a reference of the transport's own.
func (b *rowBuffer) shared() mem.Buffer {
	if mem.IsBelowBufferPoolingThreshold(cap(b.data)) {
		// The transport keeps no count of references to something so small, and neither is it worth using again.
		return mem.SliceBuffer(b.data)
	}
	b.hold()
	return mem.NewBuffer(&b.data, lease{b})
}

// lease gives the transport's reference back.
type lease struct{ *rowBuffer }

func (l lease) Get(n int) *[]byte { return new(make([]byte, n)) }
func (l lease) Put(*[]byte)       { l.free() }

// bufferCache keeps the buffers of one size that are free. Destinations that write little never fill one, so they get
// small buffers, which are not kept. Safe for concurrent use.
type bufferCache struct {
	bytes int // capacity of the buffers that are kept
	pool  sync.Pool
}

// get returns an empty buffer that n bytes fit into, a kept one if n is at least a quarter of one.
func (c *bufferCache) get(n int) *rowBuffer {
	b, _ := c.pool.Get().(*rowBuffer)
	switch {
	case n >= c.bytes/4 && b != nil:
	case n >= c.bytes/4:
		b = &rowBuffer{data: make([]byte, 0, max(n, c.bytes)), home: c}
	default:
		if b != nil {
			c.pool.Put(b)
		}
		b = &rowBuffer{data: make([]byte, 0, n), home: c}
	}
	b.refs.Store(1)
	return b
}

func (c *bufferCache) put(b *rowBuffer) {
	// A buffer that grew far beyond the size, for one huge row, is not kept.
	if cap(b.data) >= c.bytes && cap(b.data) <= 2*c.bytes {
		b.data = b.data[:0]
		c.pool.Put(b)
	}
}
