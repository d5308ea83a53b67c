package store

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"
)

// While etcd read the history for watchers that were behind, it held the lock that every
// write needs. Here a write goes on while a watcher's history is being read.
func TestEtcd18109SlowWatcherDoesNotDelayWrites(t *testing.T) {
	s := testStore(t)
	for range 10 {
		put(t, s, "a", "1")
	}
	w := watchStream(t, s)
	watch(t, w, WatchRequest{KeyRange: everything, Start: 2})
	next(t, w)
	s.pins.mu.Lock() // reading the history begins with a pin
	got := make(chan int, 1)
	go func() {
		m, _, err := w.Next()
		if err != nil {
			t.Error(err)
		}
		got <- len(whole(m).Events)
	}()
	stacks := make([]byte, 1<<20)
	for !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("(*Store).readChanges(")) {
		runtime.Gosched()
	}
	written := make(chan error, 1)
	go func() {
		_, err := do(s, putOp("a", "2"))
		written <- err
	}()
	select {
	case err := <-written:
		must(t, err)
	case <-time.After(20 * time.Second):
		t.Error("a write waits for a watcher that reads the history")
	}
	s.pins.mu.Unlock()
	if n := <-got; n != 10 {
		t.Errorf("%d events, want 10", n)
	}
	next(t, w)
	nothing(t, w)
}

// For one message of at most 1000 revisions etcd read everything that a watcher was behind by,
// again for each message. Here what lies behind the message is not looked at: it is not even there.
func TestEtcd22264CatchUpReadsNoMoreThanItSends(t *testing.T) {
	const behind = 2 * catchUpScan
	s := openStore(t, Options{Dir: crashDir(t)})
	ops := make([]Op, 0, 128)
	for s.mem.changes.len() < behind {
		ops = ops[:0]
		for i := range cap(ops) {
			ops = append(ops, putOp(fmt.Sprintf("other/%d", i), ""))
		}
		_, err := do(s, ops...)
		must(t, err)
	}
	first := s.Revision() + 1
	for range catchUpRevisions + 100 {
		put(t, s, "a", "")
	}
	last := s.Revision()
	// without runs f while the changes from a position on have no entry.
	without := func(from int, f func()) {
		changes := &s.mem.changes
		var taken []*entry
		s.mem.mu.Lock()
		for i := from; i < changes.len(); i++ {
			taken = append(taken, changes.at(i).entry)
			changes.at(i).entry = nil
		}
		s.mem.mu.Unlock()
		f()
		s.mem.mu.Lock()
		defer s.mem.mu.Unlock()
		for i, e := range taken {
			changes.at(from + i).entry = e
		}
	}
	x := &watcher{WatchRequest: WatchRequest{KeyRange: single("a")}}
	x.span = x.WatchRequest.span()
	t.Run("message", func(t *testing.T) {
		without(s.mem.changesFrom(first+catchUpRevisions), func() {
			c, _, err := s.readChanges(x, first, last)
			must(t, err)
			defer c.release()
			if c.events != catchUpRevisions || c.next != first+catchUpRevisions {
				t.Errorf("%d events, next %d, want those from %d", c.events, c.next, first)
			}
		})
	})
	t.Run("lock", func(t *testing.T) { // nothing for the watcher: the lock is let go in between
		without(catchUpScan, func() {
			scan := changeScan{watcher: x, last: last, compacted: -1}
			if next, more := scan.step(&s.mem, Revision{Main: 2}); len(scan.out) != 0 || !more || next.Main >= first {
				t.Errorf("%d events, next %v, more %v", len(scan.out), next, more)
			}
		})
	})
}
