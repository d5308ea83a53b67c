package etcdapi

import (
	"sync"

	"google.golang.org/grpc/mem"
)

const (
	// chunkSize is the size of the pieces that big responses are built of.
	chunkSize = 256 << 10
	// unpooledSize and below, gRPC does not give buffers back to a pool.
	unpooledSize = 1 << 10
	// sharedPoolSize is the largest size taken from gRPC's pool: its next tier
	// is 1 MiB, which would waste most of the memory.
	sharedPoolSize = 32 << 10
)

// chunkPool keeps buffers of chunkSize. Unlike gRPC's it does not zero them:
// they are appended to from length 0.
var chunkPool = &chunks{pool: sync.Pool{New: func() any {
	b := make([]byte, 0, chunkSize)
	return &b
}}}

type chunks struct{ pool sync.Pool }

func (c *chunks) Get(n int) *[]byte {
	b := c.pool.Get().(*[]byte)
	*b = (*b)[:n]
	return b
}

func (c *chunks) Put(b *[]byte) {
	if cap(*b) >= chunkSize {
		c.pool.Put(b)
	}
}

// allocate returns an empty buffer with room for n bytes, and the pool that it
// goes back to, or nil if it is left to the garbage collector. No pool's buffer
// is much larger than n.
func allocate(n int) (*[]byte, mem.BufferPool) {
	switch {
	case n > unpooledSize && n <= sharedPoolSize:
		pool := mem.DefaultBufferPool()
		b := pool.Get(n)
		*b = (*b)[:0]
		return b, pool
	case n > chunkSize/4*3 && n <= chunkSize:
		return chunkPool.Get(0), chunkPool
	default:
		b := make([]byte, 0, n)
		return &b, nil
	}
}

// whenFreed is the pool of one buffer: gRPC's way to say that it is free.
type whenFreed func()

func (whenFreed) Get(n int) *[]byte {
	b := make([]byte, n)
	return &b
}

func (f whenFreed) Put(*[]byte) { f() }
