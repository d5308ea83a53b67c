package store

import (
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

type atomicRevision = atomic.Int64

// follower is a client that lists and then watches, as kube-apiserver does.
type follower struct {
	c        *concurrent
	w        *WatchStream
	wake     chan struct{}
	slow     bool // keeps many messages in flight
	state    map[string]*mvccpb.KeyValue
	at       int64 // everything up to here has come
	progress int64 // newest promise
	unsent   []WatchMessage
	canceled bool
}

// watcher follows the key space until it has seen the writers' last change.
func (c *concurrent) watcher(slow bool) {
	for restarts := 0; ; restarts++ {
		f := &follower{c: c, slow: slow, wake: make(chan struct{}, 1)}
		f.w = c.s.NewWatchStream(func() {
			select {
			case f.wake <- struct{}{}:
			default:
			}
		})
		done := f.list() && f.follow()
		f.w.Close()
		if done || c.t.Failed() {
			return
		}
	}
}

func (f *follower) list() bool {
	res, kvs, err := read(f.c.s, &RangeRequest{KeyRange: everything})
	if err != nil {
		f.c.t.Errorf("list: %v", err)
		return false
	}
	f.state, f.at = map[string]*mvccpb.KeyValue{}, res.Revision
	for _, kv := range kvs {
		f.state[string(kv.Key)] = kv
	}
	_, err = f.w.Create(WatchRequest{KeyRange: everything, Start: f.at + 1, PrevKV: true})
	if err != nil {
		f.c.t.Errorf("watch: %v", err)
	}
	return err == nil
}

// follow returns true when all has come, false if a compaction came first.
func (f *follower) follow() bool {
	for n := 0; !f.c.t.Failed(); n++ {
		if end := f.c.end.Load(); end > 0 && f.at >= end {
			f.c.rules(f.state, f.at)
			return true
		}
		m, ok, err := f.w.Next()
		if err != nil {
			f.c.t.Errorf("next: %v", err)
			return false
		}
		if !ok {
			f.sent()
			f.w.RequestProgress()
			<-f.wake
			continue
		}
		if f.message(&m); f.canceled {
			return false
		}
		if f.unsent = append(f.unsent, m); !f.slow || n%50 == 0 {
			f.sent()
		}
	}
	return true
}

func (f *follower) sent() {
	for _, m := range f.unsent {
		f.w.Sent(m)
	}
	f.unsent = nil
}

func (f *follower) message(m *WatchMessage) {
	switch m.Kind {
	case WatchEvents:
		m.Events, m.Framed = m.List(), nil
		if last := m.Events[len(m.Events)-1].Revision(); m.Revision < last {
			f.c.t.Errorf("header has revision %d, the last event %d", m.Revision, last)
		}
		for len(m.Events) > 0 {
			n := countRevision(m.Events, m.Events[0].Revision())
			f.revision(m.Events[:n])
			m.Events = m.Events[n:]
		}
	case WatchProgress:
		if m.Revision < f.at {
			f.c.t.Errorf("progress %d after revision %d", m.Revision, f.at)
		}
		f.progress = max(f.progress, m.Revision)
		f.at = max(f.at, m.Revision)
	case WatchCanceled:
		if m.CompactRevision <= f.at+1 {
			f.c.t.Errorf("canceled by compaction %d at %d", m.CompactRevision, f.at)
		}
		f.canceled = true
	}
}

// revision applies the events of one revision.
func (f *follower) revision(events []*Event) {
	t, rev := f.c.t, events[0].Revision()
	if rev <= f.at {
		t.Errorf("events of revision %d after %d, progress %d", rev, f.at, f.progress)
	}
	f.at = rev
	for _, e := range events {
		ev := new(mvccpb.Event)
		if err := proto.Unmarshal(e.Encoded(true), ev); err != nil {
			t.Errorf("event: %v", err)
			return
		}
		key := string(ev.Kv.Key)
		if before := f.state[key]; !proto.Equal(ev.PrevKv, before) && (before != nil || ev.PrevKv != nil) {
			// Exactly at the compact revision the record before may be gone.
			if ev.PrevKv != nil || rev > f.c.s.Status().CompactRevision {
				t.Errorf("revision %d: previous record %v, want %v", rev, ev.PrevKv, before)
			}
		}
		if e.IsDelete() {
			delete(f.state, key)
		} else {
			f.state[key] = ev.Kv
		}
	}
	f.c.rules(f.state, rev)
}
