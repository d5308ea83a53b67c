package systemd

import (
	"context"
	"sync/atomic"
	"time"
)

// reportEvery is the shortest time between two status lines that events cause.
const reportEvery = 10 * time.Second

// Reporter keeps the status line current while something happens, and does nothing else:
// no timer belongs to it.
type Reporter struct {
	notifier *Notifier
	text     func() string
	begin    time.Time
	last     atomic.Int64 // when an event was taken up, since begin; 0: none was
	events   chan struct{}
}

// NewReporter returns a reporter; text, called by Run, is the status line. With a nil
// Notifier it returns nil, and a nil Reporter reports nothing.
func NewReporter(n *Notifier, text func() string) *Reporter {
	if n == nil {
		return nil
	}
	return &Reporter{notifier: n, text: text, begin: time.Now(), events: make(chan struct{}, 1)}
}

// Event tells that the status may have changed. It never waits and costs next to nothing,
// so the writer can call it for each write. It may be called before Run and after it.
func (r *Reporter) Event() {
	if r == nil {
		return
	}
	now := int64(time.Since(r.begin)) + 1
	last := r.last.Load()
	if last != 0 && now-last < int64(reportEvery) || !r.last.CompareAndSwap(last, now) {
		return
	}
	select {
	case r.events <- struct{}{}:
	default:
	}
}

// Now reports without an event.
func (r *Reporter) Now() {
	if r != nil && !r.notifier.stopping() {
		r.notifier.Status(r.text())
	}
}

// Run reports until ctx ends.
func (r *Reporter) Run(ctx context.Context) {
	if r == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.events:
			r.Now()
		}
	}
}
