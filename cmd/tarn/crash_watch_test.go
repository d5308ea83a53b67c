package main

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// crashWatch is a watch that resumes, on each server, after the last revision
// that it has seen.
type crashWatch struct {
	name, key, end string
	journal        func([]*mvccpb.Event) // if set: gets events before they count as seen

	mu      sync.Mutex
	seen    int64 // newest revision seen
	events  []*mvccpb.Event
	err     error
	changed chan struct{} // closed and made anew when something above changes
	ended   chan struct{} // closed when no stream is being read
}

func newCrashWatch(name, key, end string) *crashWatch {
	w := &crashWatch{name: name, key: key, end: end, seen: 1, changed: make(chan struct{}), ended: make(chan struct{})}
	close(w.ended)
	return w
}

// start resumes the watch, once the stream from the last server has ended.
func (w *crashWatch) start(ctx context.Context, conn *grpc.ClientConn) {
	<-w.ended
	w.ended = make(chan struct{})
	go func() {
		defer close(w.ended)
		stream, err := etcdserverpb.NewWatchClient(conn).Watch(ctx)
		if err == nil {
			err = stream.Send(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{
				CreateRequest: &etcdserverpb.WatchCreateRequest{
					Key: []byte(w.key), RangeEnd: []byte(w.end), StartRevision: w.revision() + 1, PrevKv: true}}})
		}
		for err == nil {
			var resp *etcdserverpb.WatchResponse
			if resp, err = stream.Recv(); err == nil {
				w.note(resp)
			}
		}
	}()
}

// note takes over one message: whole revisions, after those seen.
func (w *crashWatch) note(resp *etcdserverpb.WatchResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if resp.Canceled {
		w.fail("canceled at compact revision %d: %s", resp.CompactRevision, resp.CancelReason)
	}
	last := w.seen
	for i, e := range resp.Events {
		rev := e.Kv.ModRevision
		if rev < last || i == 0 && rev == last {
			w.fail("event of revision %d after revision %d", rev, last)
		}
		last = rev
	}
	if last > resp.Header.Revision {
		w.fail("event of revision %d, the header says %d", last, resp.Header.Revision)
	}
	if w.journal != nil {
		w.journal(resp.Events)
	}
	w.seen = last
	w.events = append(w.events, resp.Events...)
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *crashWatch) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("watch of %s: %s", w.name, fmt.Sprintf(format, args...))
	}
}

func (w *crashWatch) revision() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// waitFor waits until a revision, which has an event for the watch, was seen.
func (w *crashWatch) waitFor(ctx context.Context, rev int64) error {
	for {
		w.mu.Lock()
		seen, err, changed := w.seen, w.err, w.changed
		w.mu.Unlock()
		if err != nil || seen >= rev {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("watch of %s has seen revision %d and not %d: %w", w.name, seen, rev, ctx.Err())
		}
	}
}

// take returns the events up to a revision that were not taken yet.
func (w *crashWatch) take(rev int64) []*mvccpb.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := slices.IndexFunc(w.events, func(e *mvccpb.Event) bool { return e.Kv.ModRevision > rev })
	if n < 0 {
		n = len(w.events)
	}
	taken := slices.Clone(w.events[:n])
	w.events = slices.Clone(w.events[n:])
	return taken
}

func filterEvents(events []*mvccpb.Event, key, end string) (out []*mvccpb.Event) {
	for _, e := range events {
		if k := string(e.Kv.Key); k >= key && k < end {
			out = append(out, e)
		}
	}
	return out
}

func sameEvents(name string, got, want []*mvccpb.Event) error {
	for i := range max(len(got), len(want)) {
		switch {
		case i == len(got):
			return fmt.Errorf("watch of %s: event %d is missing: %v", name, i, describe(want[i]))
		case i == len(want) || !proto.Equal(got[i], want[i]):
			return fmt.Errorf("watch of %s: event %d of %d, wanted %d: %v differs from the watch of everything", name, i, len(got), len(want), describe(got[i]))
		}
	}
	return nil
}

func describe(e *mvccpb.Event) string {
	return fmt.Sprintf("%s of %s at revision %d", e.Type, e.Kv.Key, e.Kv.ModRevision)
}
