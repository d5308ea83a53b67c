package etcdapi

import (
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// processors keeps Go's scheduler on one processor while little happens. Each hand-over
// between goroutines wakes a thread on another idle processor, which looks for work there and
// goes to sleep again: on a server that answers a few requests a second that is the larger
// part of what it costs. All processors are used as soon as requests meet.
//
// It has no timer: requests themselves are what it looks at.
type processors struct {
	all int // processors that the runtime uses by itself
	set func(n int) int
	now func() time.Time
	log *slog.Logger

	narrow   atomic.Bool
	requests atomic.Uint32

	mu    sync.Mutex // held for a change
	since time.Time  // when the current stretch of requests began
}

const (
	// meeting requests, at the same time, use all processors.
	meeting = 3
	// stretch is the number of requests whose duration tells how busy the server is. It is
	// short, so that an idle cluster, with 3 requests a second, is known in some seconds.
	stretch = 16
	// busy and quiet are durations of a stretch: 100 and 16 requests a second.
	busy  = stretch * time.Second / 100
	quiet = stretch * time.Second / 16
)

// newProcessors returns nil, which does nothing, if there is only one processor.
func newProcessors(log *slog.Logger) *processors {
	p := &processors{all: runtime.GOMAXPROCS(0), set: runtime.GOMAXPROCS, now: time.Now, log: log}
	if p.all == 1 {
		return nil
	}
	p.since = p.now()
	return p
}

// begin notes that a request has come, and how many there are now.
func (p *processors) begin(now int64) {
	if p == nil {
		return
	}
	if now >= meeting {
		p.widen()
	}
	if p.requests.Add(1)%stretch == 0 {
		p.look()
	}
}

// widen uses all processors. Who has much to do calls it.
func (p *processors) widen() {
	if p == nil || !p.narrow.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.use(false)
}

// look decides at the end of a stretch.
func (p *processors) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	took := now.Sub(p.since)
	p.since = now
	switch {
	case took < busy:
		p.use(false)
	case took > quiet:
		p.use(true)
	}
}

// use changes the number of processors, if it is not as wanted. p.mu is held.
func (p *processors) use(narrow bool) {
	if p.narrow.Load() == narrow {
		return
	}
	n := p.all
	if narrow {
		n = 1
	}
	p.set(n)
	p.narrow.Store(narrow)
	p.log.Debug("the number of processors in use has changed", "processors", n)
}
