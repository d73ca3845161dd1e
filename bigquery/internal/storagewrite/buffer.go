package storagewrite

import (
	"math/bits"
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

// bufferCache keeps buffers that are free, those of the size of a request for as long as it lives, up to a number, and others
// until the next collection of garbage. The one used last is used next: its memory is likely to be in the processor's caches.
// Destinations that write little get small ones. Safe for concurrent use.
type bufferCache struct {
	bytes int // capacity of the buffers of the size of a request

	mu   sync.Mutex // guards full
	full []*rowBuffer

	more  sync.Pool               // of that size, beyond what full holds
	small [largestSmall]sync.Pool // of at least smallestBytes<<index, and less
}

const (
	// mostFull is how many buffers of the size of a request are kept. A connection that is not short of anything has about as
	// many under way.
	mostFull = 8

	smallestBytes = 4 << 10
	largestSmall  = 12 // smaller than 16 MiB, and thus than any request
)

// get returns an empty buffer that n bytes fit into, at most twice as large, or of the size of a request.
func (c *bufferCache) get(n int) *rowBuffer {
	b, size := c.kept(n)
	if b == nil {
		b = &rowBuffer{data: make([]byte, 0, size), home: c}
	}
	b.refs.Store(1)
	return b
}

// kept looks for a buffer and answers the size to make when there is none.
func (c *bufferCache) kept(n int) (*rowBuffer, int) {
	if class := smallClass(n); n <= c.bytes/2 && class < largestSmall {
		b, _ := c.small[class].Get().(*rowBuffer)
		return b, smallestBytes << class
	}
	if n > c.bytes {
		return nil, n
	}
	c.mu.Lock()
	if last := len(c.full) - 1; last >= 0 {
		b := c.full[last]
		c.full[last], c.full = nil, c.full[:last]
		c.mu.Unlock()
		return b, c.bytes
	}
	c.mu.Unlock()
	b, _ := c.more.Get().(*rowBuffer)
	return b, c.bytes
}

// smallClass is the class of buffers that n bytes fit into.
func smallClass(n int) int { return bits.Len(uint(max(n, 1)-1) / smallestBytes) }

func (c *bufferCache) put(b *rowBuffer) {
	n := cap(b.data)
	b.data = b.data[:0]
	switch {
	case n > 2*c.bytes || n < smallestBytes: // it grew far beyond the size, for one huge row
	case n < c.bytes:
		c.small[min(smallClass(n+1), largestSmall)-1].Put(b)
	default:
		c.mu.Lock()
		if len(c.full) < mostFull {
			c.full = append(c.full, b)
			b = nil
		}
		c.mu.Unlock()
		if b != nil {
			c.more.Put(b)
		}
	}
}
