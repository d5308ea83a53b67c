package systemd

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// extendEvery is the shortest time between two requests for more time.
	extendEvery = 5 * time.Second
	// extendBy is how long one step of a recovery can take: one that takes longer is taken for
	// one that hangs, if the unit's TimeoutStartSec is over as well.
	extendBy = time.Minute
)

// Recovery asks systemd for more time to start, as long as a recovery makes progress.
type Recovery struct {
	notifier *Notifier
	log      *slog.Logger
	hanging  func() (string, time.Duration) // as Watched.Hanging

	mu       sync.Mutex
	extended time.Time // when time was asked for last
	records  int
	moved    time.Time // when records has changed last
}

// NewRecovery returns the Recovery that begins now; nil, which does nothing, for a nil Notifier.
// hanging tells what is waited for, as Watched.Hanging does.
func NewRecovery(n *Notifier, log *slog.Logger, hanging func() (string, time.Duration)) *Recovery {
	if n == nil {
		return nil
	}
	n.Status("recovering")
	now := time.Now()
	return &Recovery{notifier: n, log: log, hanging: hanging, extended: now, moved: now}
}

// Advance tells how many records have been read. It costs little.
func (r *Recovery) Advance(records int) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records, r.moved = records, time.Now()
	if r.moved.Sub(r.extended) >= extendEvery {
		r.extended = r.moved
		r.notifier.ExtendTimeout(extendBy, fmt.Sprintf("recovering: %d records read", records))
	}
}

// Run tells when the recovery does not go on, until ctx ends.
func (r *Recovery) Run(ctx context.Context) {
	if r == nil {
		return
	}
	tick := time.NewTicker(extendEvery)
	defer tick.Stop()
	told := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if text := r.still(); text != "" {
			r.notifier.Status(text)
			if !told {
				r.log.Warn("the recovery does not go on; systemd ends it when the time to start is over", "state", text)
			}
			told = true
		}
	}
}

// still is what to say about a recovery that has not gone on for a while.
func (r *Recovery) still() string {
	r.mu.Lock()
	quiet, records := time.Since(r.moved), r.records
	r.mu.Unlock()
	if quiet < 2*extendEvery {
		return ""
	}
	text := fmt.Sprintf("recovering: %d records read, and no progress for %v", records, quiet.Round(time.Second))
	if what, _ := r.hanging(); what != "" {
		text += "; " + what
	}
	return text
}
