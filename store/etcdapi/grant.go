package etcdapi

import (
	"context"
	"fmt"
	"math"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// grant is the part of the list budget that one response holds. It shrinks as
// the response's buffers are freed, and is gone with the last.
//
// The zero value and nil hold nothing and never wait.
type grant struct {
	budget *listBudget

	mu   sync.Mutex
	held int64
	left int64 // bytes of the response not freed yet
}

// reserve waits until a response of n bytes may be built. A small one gets nil
// at once, one that gRPC could not send the error that it would give, before the memory is spent.
func (s *Server) reserve(ctx context.Context, n int64) (*grant, error) {
	switch {
	case n < smallRead:
		return nil, nil
	case n > mostToSend:
		return nil, status.Error(codes.ResourceExhausted,
			fmt.Sprintf("trying to send message larger than max (%d vs. %d)", n, math.MaxInt32))
	}
	held, err := s.budget.acquire(ctx, n)
	if err != nil {
		return nil, err
	}
	return &grant{budget: s.budget, held: held, left: n}, nil
}

// mostToSend is how many bytes a response may have without what is around its items.
const mostToSend = math.MaxInt32 - tailRoom

// tryReserve is reserve without waiting: ok is false if there is something to wait for, or to refuse.
func (s *Server) tryReserve(n int64) (g *grant, ok bool) {
	if n < smallRead {
		return nil, true
	}
	if n > mostToSend || !s.budget.tryAcquire(n) {
		return nil, false
	}
	return &grant{budget: s.budget, held: n, left: n}, true
}

// settle says how many bytes the response has now that it is built; 0 if it
// could not be built.
func (g *grant) settle(n int64) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left = n
	g.shrink()
}

func (g *grant) freed(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left -= n
	g.shrink()
}

// abandon gives back all that is held: the response is sent, or can not be sent any more and its
// buffers may never be freed.
func (g *grant) abandon() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left = 0
	g.shrink()
}

// shrink gives back what is held beyond what is left. A response larger than the
// budget holds all of it until it has come down to that.
func (g *grant) shrink() {
	if keep := max(g.left, 0); g.held > keep {
		g.budget.release(g.held - keep)
		g.held = keep
	}
}

// buffer makes a Buffer of b that gives its bytes back to the grant, and its
// memory to pool, when it is freed.
func (g *grant) buffer(b *[]byte, pool mem.BufferPool) mem.Buffer {
	if g == nil {
		return mem.NewBuffer(b, pool)
	}
	return mem.NewBuffer(b, &grantedBuffer{pool: pool, grant: g, n: int64(len(*b))})
}

// allocate is allocate, for a buffer that goes to g.buffer.
func (g *grant) allocate(n int) (*[]byte, mem.BufferPool) {
	if g != nil {
		n = max(n, unpooledSize+1) // gRPC would never tell that a smaller one is free
	}
	return allocate(n)
}

// grantedBuffer is the pool of one buffer: gRPC's way to say that it is free.
type grantedBuffer struct {
	pool  mem.BufferPool
	grant *grant
	n     int64
}

func (p *grantedBuffer) Get(n int) *[]byte {
	b := make([]byte, n)
	return &b
}

func (p *grantedBuffer) Put(b *[]byte) {
	if p.pool != nil {
		p.pool.Put(b)
	}
	p.grant.freed(p.n)
}
