package writeapi

import (
	"math/bits"
	"sync"

	"google.golang.org/grpc/mem"
)

// Memory is the pool of a server with this service (experimental.BufferPool). Unlike gRPC's own it does not clear what it hands
// out, whose bytes are all written before any is read: clearing took a tenth of the time of an append. Buffers are kept in sizes
// of powers of two, since requests of one client are about as long as each other.
func Memory() mem.BufferPool { return memory }

var memory = &memoryPool{}

// The kept sizes: below, gRPC does not pool; above, requests are refused.
const (
	leastKept = 10 // bits: 1 KiB
	mostKept  = 25 // 32 MiB
)

type memoryPool struct {
	bySize [mostKept + 1]sync.Pool // of *[]byte with a capacity of at least 1<<index
}

func (p *memoryPool) Get(n int) *[]byte {
	size := max(bits.Len(uint(max(n, 1)-1)), leastKept)
	if size > mostKept {
		return new(make([]byte, n))
	}
	b, _ := p.bySize[size].Get().(*[]byte)
	if b == nil {
		b = new(make([]byte, 1<<size))
	}
	*b = (*b)[:n]
	return b
}

func (p *memoryPool) Put(b *[]byte) {
	if size := bits.Len(uint(cap(*b))) - 1; leastKept <= size && size <= mostKept {
		p.bySize[size].Put(b)
	}
}
