//go:build zfs

package main

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// waits are how long requests took.
type waits struct {
	mu  sync.Mutex
	all []time.Duration
}

func (w *waits) add(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, d)
}

func (w *waits) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.all)
}

// quantile returns what a part q of the requests did not exceed.
func (w *waits) quantile(q float64) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.all) == 0 {
		return 0
	}
	slices.Sort(w.all)
	return w.all[int(q*float64(len(w.all)-1))]
}

func (w *waits) summary() string {
	ms := func(q float64) float64 { return float64(w.quantile(q).Microseconds()) / 1000 }
	return fmt.Sprintf("%d, p50 %.1f ms, p99 %.1f ms, longest %.1f ms", w.count(), ms(0.5), ms(0.99), ms(1))
}

// report prints what the snapshots took and what the writers noticed of them.
func (r *snapshotRun) report() {
	var own, others waits
	for _, s := range r.taken {
		if s.own {
			own.add(s.took)
		} else {
			others.add(s.took)
		}
	}
	r.t.Logf("tarn snapshot create: %s", own.summary())
	r.t.Logf("zfs snapshot alone:   %s", others.summary())
	r.t.Logf("writes without snapshots: %s", r.waits[0].summary())
	r.t.Logf("writes during snapshots:  %s; p99 is %.2f times as long", r.waits[1].summary(), float64(r.waits[1].quantile(0.99))/float64(max(1, r.waits[0].quantile(0.99))))
}
