package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/tests/v3/robustness/client"
	"google.golang.org/grpc/metadata"
)

// observer watches from the first revision to the last. Whenever a watch ends, it
// goes on after what it has got, as clients do that rely on resuming. This is
// beside the watches of the traffic, which start anywhere and do not last.
type observer struct {
	key              string
	prefix, prevKV   bool
	progressNotify   bool
	breaks           bool // end watches early, to resume them
	requestsProgress bool
	shares           bool // its stream has other watches

	client *client.RecordingClient
	rand   *rand.Rand
	seen   int64 // all events up to this revision have come
}

// requestInterval is how often an observer asks for progress.
const requestInterval = 100 * time.Millisecond

// observers watch a scenario.
type observers struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
	target chan struct{} // closed when last is set
	last   int64

	mu   sync.Mutex
	lags []error
}

// startObservers begins watches of all kinds. Those of one client share a stream,
// and progress that one asks for goes to all of them.
func startObservers(ctx context.Context, p plan, endpoint string, set *client.ClientSet) (*observers, error) {
	t, err := trafficNamed(p.Traffic)
	if err != nil {
		return nil, err
	}
	groups := [][]observer{
		{{prefix: true, requestsProgress: true}},
		{
			{prefix: true, prevKV: true, requestsProgress: true},
			{key: t.prefix, prefix: true, breaks: true, requestsProgress: true},
			{key: t.prefix, prefix: true, prevKV: true, progressNotify: true, breaks: true, requestsProgress: true},
			{key: "compact_rev_key", prevKV: true, requestsProgress: true},
			{key: t.prefix + "3", requestsProgress: true, breaks: true},
		},
		// Nobody asks on these streams: only events and unasked progress come.
		{{prefix: true, prevKV: true, progressNotify: true, breaks: true}},
		{{prefix: true, breaks: true}},
	}
	ctx, cancel := context.WithCancel(ctx)
	o := &observers{cancel: cancel, target: make(chan struct{})}
	n := uint64(100)
	for _, group := range groups {
		c, err := set.NewClient([]string{endpoint})
		if err != nil {
			o.stop()
			return nil, fmt.Errorf("start the observers: %w", err)
		}
		for _, x := range group {
			x.client, x.rand, x.seen, x.shares = c, newRand(p.Seed, n), 1, len(group) > 1
			n++
			o.wg.Go(func() { x.run(ctx, o) })
		}
	}
	return o, nil
}

func (o *observers) stop() {
	o.cancel()
	o.wg.Wait()
}

// finish waits until each observer has all events up to the revision last. Its
// error tells which did not get them within limit.
func (o *observers) finish(last int64, limit time.Duration) []error {
	o.last = last
	close(o.target)
	timer := time.AfterFunc(limit, o.cancel)
	defer timer.Stop()
	o.wg.Wait()
	o.cancel()
	return o.lags
}

// done reports whether the observer needs nothing more.
func (x *observer) done(o *observers) bool { return o.ending() && x.seen >= o.last }

func (x *observer) run(ctx context.Context, o *observers) {
	for n := 0; !x.done(o); n++ {
		if ctx.Err() != nil {
			o.lag(x)
			return
		}
		if o.ending() && x.shares {
			// A stream of its own, made by metadata of its own. On a shared one another
			// watch that begins in the future would keep the server from answering,
			// even after it was given up, if that was before its creation was confirmed.
			x.watch(metadata.AppendToOutgoingContext(ctx, "stream", fmt.Sprintf("%p-%d", x, n)), o)
		} else {
			x.watch(ctx, o)
		}
	}
}

// ending reports whether the last revision is known.
func (o *observers) ending() bool {
	select {
	case <-o.target:
		return true
	default:
		return false
	}
}

func (o *observers) lag(x *observer) {
	if !o.ending() {
		return // the whole scenario was cancelled
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lags = append(o.lags, fmt.Errorf("stuck: a watch of client %d (key %q, prefix %v) has come to revision %d and no further, the last one is %d",
		x.client.ID, x.key, x.prefix, x.seen, o.last))
}

// watch runs one watch.
func (x *observer) watch(ctx context.Context, o *observers) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	life := make(<-chan time.Time)
	if x.breaks {
		life = time.After(between(x.rand, 100*time.Millisecond, 3*time.Second))
	}
	responses := x.client.Watch(ctx, x.key, x.seen+1, x.prefix, x.progressNotify, x.prevKV)
	ask := time.NewTicker(requestInterval)
	defer ask.Stop()
	target := o.target
	if o.ending() {
		target = nil
	}
	for {
		select {
		case r, ok := <-responses:
			if !ok {
				return
			}
			x.note(r)
			if x.done(o) {
				return
			}
		case <-ask.C:
			if x.requestsProgress {
				x.requestProgress(ctx)
			}
		case <-target:
			target = nil
			if x.shares || x.done(o) {
				return
			}
		case <-life:
			return
		}
	}
}

func (x *observer) requestProgress(ctx context.Context) {
	// It waits as long as the stream is down. An answer is not awaited here.
	ctx, cancel := context.WithTimeout(ctx, requestInterval)
	defer cancel()
	_ = x.client.RequestProgress(ctx)
}

// note takes in how far a response brings the observer.
func (x *observer) note(r clientv3.WatchResponse) {
	switch {
	case r.CompactRevision > 0:
		x.seen = max(x.seen, r.CompactRevision-1)
	case len(r.Events) > 0:
		x.seen = r.Events[len(r.Events)-1].Kv.ModRevision
	case r.IsProgressNotify():
		x.seen = max(x.seen, r.Header.Revision)
	}
}
