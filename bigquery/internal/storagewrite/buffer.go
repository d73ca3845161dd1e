package storagewrite

import (
	"math/bits"
	"slices"
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

// bufferCache keeps the buffers that are free, until trim finds that they were not needed for a while. The one used last is used
// next: its memory is likely to be in the processor's caches. Destinations that write little get small ones. Safe for concurrent
// use.
type bufferCache struct {
	bytes int // capacity of the buffers of the size of a request

	mu      sync.Mutex // guards what follows
	full    shelf
	smaller [smallerSizes]shelf // of at least smallestBytes<<index, and less than twice that
}

// shelf is free buffers of about one size.
type shelf struct {
	free []*rowBuffer
	idle int // so many have lain here since the last trim
}

const (
	smallestBytes = 4 << 10
	smallerSizes  = 12 // up to 8 MiB, where requests end
)

// get returns an empty buffer that n bytes fit into, at most twice as large, or of the size of a request.
func (c *bufferCache) get(n int) *rowBuffer {
	class := smallClass(n)
	size := smallestBytes << class
	if size > c.bytes/2 {
		class, size = -1, max(n, c.bytes)
	}
	c.mu.Lock()
	b := c.shelf(class).take(n)
	c.mu.Unlock()
	if b == nil {
		b = &rowBuffer{data: make([]byte, 0, size), home: c}
	}
	b.refs.Store(1)
	return b
}

// larger is a size for the rows of a buffer that has become too small, with room for n bytes more.
func (c *bufferCache) larger(b *rowBuffer, n int) int {
	size := 2 * cap(b.data)
	if cap(b.data) < c.bytes {
		size = min(size, c.bytes)
	}
	return max(size, len(b.data)+n)
}

// smallClass is the class of buffers that n bytes fit into.
func smallClass(n int) int { return bits.Len(uint(max(n, 1)-1) / smallestBytes) }

// shelf is that of a class, full for -1. Called with mu held.
func (c *bufferCache) shelf(class int) *shelf {
	if class < 0 || class >= smallerSizes {
		return &c.full
	}
	return &c.smaller[class]
}

func (s *shelf) take(n int) *rowBuffer {
	last := len(s.free) - 1
	if last < 0 || cap(s.free[last].data) < n {
		return nil
	}
	b := s.free[last]
	s.free[last], s.free = nil, s.free[:last]
	s.idle = min(s.idle, last)
	return b
}

func (c *bufferCache) put(b *rowBuffer) {
	n, class := cap(b.data), -1
	b.data = b.data[:0]
	switch {
	case n > 2*c.bytes || n < smallestBytes: // it grew far beyond the size, for one huge row
		return
	case n < c.bytes:
		class = smallClass(n+1) - 1
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shelf(class)
	s.free = append(s.free, b)
}

// trim lets go of the buffers that were not needed since the last time.
func (c *bufferCache) trim() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.full.trim()
	for i := range c.smaller {
		c.smaller[i].trim()
	}
}

func (s *shelf) trim() {
	clear(s.free[:s.idle]) // the oldest lie at the bottom
	s.free = slices.Delete(s.free, 0, s.idle)
	s.idle = len(s.free)
}
