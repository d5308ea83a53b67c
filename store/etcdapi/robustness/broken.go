package main

import (
	"fmt"
	"sync/atomic"
	"time"
)

// broken is a server that breaks one promise on purpose: the proof that the
// suite can fail.
type broken struct {
	name string
	// caught is part of the violation that the check must find. It is empty for the
	// server that is not broken at all, and only has a proxy like the others.
	caught string

	tamper    func() tamperer // what a proxy before the server does, if set
	settings  []string        // of a faultserver, if set
	failpoint string          // what must happen for it to show
}

// brokenServers are all of them. Each proxy tampers with one event in a few dozen.
var brokenServers = []broken{
	{name: "none", tamper: noTamper},
	{name: "drop-event", caught: "broke Reliable", tamper: onEvents(dropEvent)},
	{name: "duplicate-event", caught: "broke Unique", tamper: onEvents(duplicateEvent)},
	{name: "early-progress", caught: "broke Bookmarkable", tamper: onEvents(earlyProgress)},
	{name: "reorder-events", caught: "broke Ordered", tamper: onEvents(reorderEvents)},
	{name: "split-revision", caught: "broke Atomic", tamper: onEvents(splitRevision)},
	{name: "wrong-prev-kv", caught: "incorrect event prevValue", tamper: onEvents(wrongPrevKV)},
	{name: "missing-prev-kv", caught: "prev_kv is missing", tamper: onEvents(missingPrevKV)},
	{name: "silent-watch", caught: "stuck", tamper: onWatches(func() tamper { return &silentTamper{} })},
	{name: "skip-on-resume", caught: "broke Resumable", tamper: onWatches(func() tamper { return resumeTamper{} })},
	{name: "stale-read", caught: "linearization", tamper: staleReads},
	{name: "ack-before-sync", caught: "linearization", settings: []string{"--ack-before-sync=400ms"}, failpoint: "kill"},
	{name: "reuse-revision", caught: "linearization", failpoint: "cut-log"},
}

func noTamper() tamperer { return func(string) tamper { return nil } }

func brokenNamed(name string) (broken, error) {
	if name == "" {
		return broken{}, nil
	}
	for _, b := range brokenServers {
		if b.name == name {
			return b, nil
		}
	}
	return broken{}, fmt.Errorf("there is no broken server named %q", name)
}

// plan is a short scenario for the broken server.
func (b broken) plan(seed uint64) plan {
	p := plan{
		Seed: seed, Broken: b.name, Faulty: b.settings != nil, Traffic: "put-delete-lease", QPS: 200,
		Settings: append([]string{"--watch-progress-notify-interval=1s"}, b.settings...),
		After:    4 * time.Second,
	}
	if b.failpoint != "" {
		p.Failpoints = []step{{Wait: 2 * time.Second, Name: b.failpoint}}
		p.After = 2 * time.Second
	}
	return p
}

// every is true on each n-th call, of all goroutines together.
type every struct {
	n     int64
	calls atomic.Int64
}

func (e *every) now() bool { return e.calls.Add(1)%e.n == 0 }
