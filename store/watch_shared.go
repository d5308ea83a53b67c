package store

import (
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	// pooledFrom is the size of a message's events from which on their memory is used again.
	pooledFrom = 32 << 10
	// pooledSize is that memory: a message with all it can have, but for a last revision
	// that is large.
	pooledSize = catchUpBytes + 32<<10
	// pooledChunks is how many of them may be in use. One that a client does not read is
	// in use for long; who finds none left gets small messages, so that a thousand of those
	// take little memory and hold up nobody.
	pooledChunks = 64
)

// framedBuffers has memory for messages from the history. Without it those who catch up
// make garbage as fast as they read, and the heap grows by its own size.
type framedBuffers struct {
	pool  sync.Pool
	inUse atomic.Int64
}

// limit is the size from which on a message gets no further revision.
func (b *framedBuffers) limit() int {
	if b.inUse.Load() >= pooledChunks {
		return pooledFrom / 2
	}
	return catchUpBytes
}

// historyChunk is a stretch of history, encoded. It does not change once done is closed.
type historyChunk struct {
	from int64
	done chan struct{}

	next   int64 // first revision that was not looked at
	events int
	framed []byte
	err    error

	buffers *framedBuffers
	refs    atomic.Int32 // messages that have it, and its lane
	pooled  *[]byte      // the memory of framed, if it can be used again
	cleanup runtime.Cleanup
}

func newChunk(from int64, buffers *framedBuffers) *historyChunk {
	c := &historyChunk{from: from, done: make(chan struct{}), buffers: buffers}
	c.refs.Store(1) // the caller's
	return c
}

// endsBefore reports whether the chunk is filled and from is the revision after it.
func (c *historyChunk) endsBefore(from int64) bool {
	select {
	case <-c.done:
		return c.next == from
	default:
		return false
	}
}

// buffer returns memory of that many bytes for the chunk.
func (c *historyChunk) buffer(size int) []byte {
	if size < pooledFrom || size > pooledSize {
		return make([]byte, size)
	}
	b := c.buffers
	b.inUse.Add(1)
	var ok bool
	if c.pooled, ok = b.pool.Get().(*[]byte); !ok {
		made := make([]byte, pooledSize)
		c.pooled = &made
	}
	// Who hands the events on in another form keeps their memory and releases nothing.
	c.cleanup = runtime.AddCleanup(c, func(b *framedBuffers) { b.inUse.Add(-1) }, b)
	return (*c.pooled)[:size]
}

func (c *historyChunk) release() {
	if c.refs.Add(-1) == 0 && c.pooled != nil {
		c.cleanup.Stop()
		c.buffers.pool.Put(c.pooled)
		c.buffers.inUse.Add(-1)
		c.pooled, c.framed = nil, nil
	}
}

// fillChunk reads what a watcher wants from the chunk's beginning to last at most. It must be pinned.
func (s *Store) fillChunk(c *historyChunk, x *watcher, compacted, last int64) {
	defer close(c.done)
	past, next := s.scanChanges(x, c.from, last, compacted)
	c.next, c.events = next, len(past)
	if len(past) > 0 {
		c.err = s.encodePast(past, c)
	}
	if s.hub.history.hasRead(len(c.framed)) {
		s.tree.LetGo()
	}
}
