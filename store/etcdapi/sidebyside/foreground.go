package main

import (
	"context"
	"time"
)

const (
	foregroundKeys = 64
	foregroundSize = 512
	foregroundRate = 100 // a second
)

// foreground is a steady load of updates beside something heavy: it tells whether
// clients notice that.
type foreground struct {
	load *steady
	from time.Time // when the heavy thing began
	to   time.Time // and ended
}

// startForeground begins the updates and returns after there are some to compare with.
func startForeground(ctx context.Context, t *turn) (*foreground, error) {
	keys := newKeyset("/registry/leases/", foregroundKeys)
	kvs := t.kv(1)
	if err := keys.fill(ctx, kvs, foregroundSize); err != nil {
		return nil, err
	}
	f := &foreground{load: startSteady(ctx, foregroundRate, keys.updates(kvs, steadyWorkers, foregroundSize))}
	if err := pause(ctx, pick(t, 1500*time.Millisecond, 750*time.Millisecond)); err != nil {
		return nil, err
	}
	return f, nil
}

// begin marks that the heavy thing begins, end that it is over.
func (f *foreground) begin() { f.from = time.Now() }
func (f *foreground) end()   { f.to = time.Now() }

// report stops the updates and sets what they saw. Those count as during that were due
// up to a second after the end: what was left behind may be cleared away then.
func (f *foreground) report(ctx context.Context, set setter) error {
	waited := pause(ctx, time.Second)
	l, err := f.load.stop()
	if err != nil {
		return err
	}
	if waited != nil {
		return waited
	}
	before := l.took(time.Time{}, f.from)
	during := l.took(f.from, f.to.Add(time.Second))
	set("update p99 ms before", quantile(before, 0.99))
	set("update p99 ms during", quantile(during, 0.99))
	set("update longest ms during", quantile(during, 1))
	return nil
}
