package main

import (
	"context"
	"fmt"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// watch is one watch of a load, with all that it was told.
type watch struct {
	prefix string
	from   int64 // first revision

	mu     sync.Mutex
	events []event
	err    error
}

// start begins the watch and returns when the server has confirmed it. clientv3 resumes it
// where it was after each break.
func (w *watch) start(ctx context.Context, client *clientv3.Client) error {
	answers := client.Watch(ctx, w.prefix, clientv3.WithPrefix(), clientv3.WithRev(w.from), clientv3.WithCreatedNotify())
	if first, ok := <-answers; !ok || !first.Created {
		return fmt.Errorf("a watch of %s was not created: %v", w.prefix, first.Err())
	}
	go func() {
		for answer := range answers {
			w.take(answer)
		}
	}()
	return nil
}

func (w *watch) take(answer clientv3.WatchResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := answer.Err(); err != nil {
		w.err = err
	}
	for _, e := range answer.Events {
		w.events = append(w.events, event{e.Kv.ModRevision, string(e.Kv.Key), string(e.Kv.Value)})
	}
}

// newest is the revision of the last event.
func (w *watch) newest() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.events) == 0 {
		return 0
	}
	return w.events[len(w.events)-1].revision
}

// check compares what the watch was told with what is in its range, up to the end.
func (w *watch) check(history []event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return fmt.Errorf("the watch of %s has ended: %w", w.prefix, w.err)
	}
	want := below(history, w.prefix, w.from)
	if slices.Equal(w.events, want) {
		return nil
	}
	n := 0
	for n < min(len(w.events), len(want)) && w.events[n] == want[n] {
		n++
	}
	switch {
	case n == len(want):
		return fmt.Errorf("the watch of %s got %d events instead of %d; the first too many is of revision %d", w.prefix, len(w.events), n, w.events[n].revision)
	case n == len(w.events):
		return fmt.Errorf("the watch of %s got %d events instead of %d; the first that is missing is of revision %d", w.prefix, n, len(want), want[n].revision)
	default:
		return fmt.Errorf("event %d of the watch of %s is of revision %d instead of %d", n, w.prefix, w.events[n].revision, want[n].revision)
	}
}
