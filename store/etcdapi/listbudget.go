package etcdapi

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// smallRead is the size in bytes from which on a response must fit the list
// budget. Smaller ones never wait.
const smallRead = 256 << 10

// MinListBudget is the smallest useful Config.ListBudget in bytes: with less, large
// responses would still be sent, one at a time.
const MinListBudget = smallRead

// listBudget bounds the bytes of large responses that are in memory at once,
// from when they are built until gRPC has sent them. Who comes first is served
// first, so a large list can not be starved by smaller ones. Its methods may be
// called from any goroutine.
type listBudget struct {
	size int64
	log  *slog.Logger
	late func() // called by those that have waited for stallLimit, again and again; or nil

	mu      sync.Mutex
	inUse   int64
	waiting []*budgetWaiter // first come, first served
	waits   uint64
}

type budgetWaiter struct {
	n       int64
	granted chan struct{}
}

// BudgetStats is the state of the list budget. Bytes are those of responses.
type BudgetStats struct {
	Size    int64  // bytes that may be in use
	InUse   int64  // bytes being built or sent now
	Waiting int    // requests waiting now
	Waits   uint64 // requests that have waited since the start
}

// ListBudget returns the state of the list budget.
func (s *Server) ListBudget() BudgetStats { return s.budget.stats() }

func newListBudget(size int64, log *slog.Logger) *listBudget {
	return &listBudget{size: size, log: log}
}

func (b *listBudget) stats() BudgetStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return BudgetStats{Size: b.size, InUse: b.inUse, Waiting: len(b.waiting), Waits: b.waits}
}

// acquire waits until n bytes are free, and returns how many it took: all there
// are if n is more. It returns ctx's error if ctx ends before.
func (b *listBudget) acquire(ctx context.Context, n int64) (int64, error) {
	n = min(n, b.size)
	b.mu.Lock()
	if b.take(n) {
		b.mu.Unlock()
		return n, nil
	}
	w := &budgetWaiter{n: n, granted: make(chan struct{})}
	b.waiting = append(b.waiting, w)
	b.waits++
	inUse, waiting := b.inUse, len(b.waiting)
	b.mu.Unlock()
	b.log.Debug("large read waits for the list budget",
		"bytes", n, "bytes_in_use", inUse, "budget", b.size, "waiting", waiting)
	patience := time.NewTicker(stallLimit)
	defer patience.Stop()
	for {
		select {
		case <-w.granted:
			return n, nil
		case <-ctx.Done():
			b.leave(w)
			return 0, ctx.Err()
		case <-patience.C:
			if b.late != nil {
				b.late()
			}
		}
	}
}

// tryAcquire takes n bytes if they are free and nobody waits.
func (b *listBudget) tryAcquire(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.take(n)
}

func (b *listBudget) take(n int64) bool {
	if len(b.waiting) > 0 || b.inUse+n > b.size {
		return false
	}
	b.inUse += n
	return true
}

// leave gives up waiting, or gives back what was granted in the same moment.
func (b *listBudget) leave(w *budgetWaiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.waiting {
		if b.waiting[i] == w {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			b.grant() // those behind may fit now
			return
		}
	}
	b.inUse -= w.n
	b.grant()
}

// release gives n bytes back. It does not block.
func (b *listBudget) release(n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inUse -= n
	b.grant()
}

// grant lets those at the front go that fit. b.mu is held.
func (b *listBudget) grant() {
	for len(b.waiting) > 0 && b.inUse+b.waiting[0].n <= b.size {
		w := b.waiting[0]
		b.waiting[0] = nil
		b.waiting = b.waiting[1:]
		b.inUse += w.n
		close(w.granted)
	}
}
