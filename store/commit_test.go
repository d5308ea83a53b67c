package store

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// gathered waits until n changes wait for the batch that is being synced.
func gathered(s *Store, n int) {
	for {
		s.mu.Lock()
		got := 0
		if s.gather != nil {
			got = len(s.gather.changes)
		}
		s.mu.Unlock()
		if got >= n {
			return
		}
		runtime.Gosched()
	}
}

// All writes that come during a sync share the next one, and nothing is seen before it.
func TestGroupCommit(t *testing.T) {
	const writers = 50
	var syncs atomic.Int64
	fs := newFaultFS()
	s := openStore(t, Options{Dir: t.TempDir(), FS: fs, ObserveSync: func(time.Duration) { syncs.Add(1) }})
	put(t, s, "a", "0")
	syncs.Store(0)
	g := newGate(nil)
	fs.set(func(f *faultFS) { f.sync = g.wait })
	var wg sync.WaitGroup
	write := func(key string) {
		wg.Go(func() {
			if _, err := do(s, putOp(key, "1")); err != nil {
				t.Errorf("put: %v", err)
			}
		})
	}
	write("a")
	<-g.arrived
	for i := range writers {
		write(fmt.Sprint("w", i))
	}
	gathered(s, writers)
	if res, kvs, err := read(s, &RangeRequest{KeyRange: everything}); err != nil || res.Revision != 2 || show(kvs) != "a=0(1,2,2)" {
		t.Errorf("a read sees %s at %d before the sync, %v", show(kvs), res.Revision, err)
	}
	close(g.open)
	wg.Wait()
	if n := syncs.Load(); n != 2 {
		t.Errorf("%d syncs for %d writes that came during one", n, writers)
	}
	if s.Revision() != 3+writers {
		t.Errorf("revision %d", s.Revision())
	}
}

// After a failed sync nobody gets an OK any more, and the next start finds what was promised.
func TestFailedSyncStopsStore(t *testing.T) {
	const writers = 10
	fs := newFaultFS()
	s := openStore(t, Options{Dir: t.TempDir(), FS: fs})
	rev := put(t, s, "a", "1")
	w := watchStream(t, s)
	watch(t, w, WatchRequest{KeyRange: everything})
	next(t, w)
	g := newGate(errDisk)
	fs.set(func(f *faultFS) { f.sync = g.wait })
	var wg sync.WaitGroup
	var refused atomic.Int64
	write := func() {
		wg.Go(func() {
			if _, err := do(s, putOp("a", "2")); errorsIs(err, ErrStopped) {
				refused.Add(1)
			}
		})
	}
	write()
	<-g.arrived
	for range writers {
		write()
	}
	gathered(s, writers)
	close(g.open)
	wg.Wait()
	<-s.Failed()
	if n := refused.Load(); n != writers+1 {
		t.Errorf("%d of %d writes got ErrStopped", n, writers+1)
	}
	wantErr(t, s.Err(), errDisk)
	if s.Revision() != rev {
		t.Errorf("revision %d was published", s.Revision())
	}
	_, err := s.Range(bg, &RangeRequest{KeyRange: everything})
	wantErr(t, err, ErrStopped)
	_, err = do(s, putOp("b", ""))
	wantErr(t, err, ErrStopped)
	if m, ok, _ := w.Next(); ok {
		t.Errorf("a watcher got %+v", m)
	}
	_ = s.Close()
	s = openStore(t, Options{Dir: s.opts.Dir})
	_, kvs, err := read(s, &RangeRequest{KeyRange: single("a")})
	if must(t, err); len(kvs) != 1 {
		t.Errorf("a is %v", kvs)
	}
}

// stateOf is everything that a refused write could have left a trace in.
func stateOf(t *testing.T, s *Store) string {
	t.Helper()
	res, kvs, err := read(s, &RangeRequest{KeyRange: everything})
	must(t, err)
	text := fmt.Sprint(res.Revision, " ", show(kvs), s.head, s.Leases())
	for id := range int64(5) {
		l, ok := s.LeaseTimeToLive(id, true)
		text += fmt.Sprint(" lease ", id, ok, l.Keys)
	}
	s.mem.mu.Lock()
	defer s.mem.mu.Unlock()
	return text + fmt.Sprint(s.mem.index.sumOf(span{open: true}), s.mem.index.keys, s.mem.changes.len(), s.mem.tail.len(), s.mem.tailBytes.Load()) +
		authText(s.auth.head) + authText(s.Auth())
}

// On a full disk a write is refused and leaves no trace; with room again all goes on.
func TestNoSpaceIsUndone(t *testing.T) {
	fs := newFaultFS()
	s := openStore(t, Options{Dir: t.TempDir(), FS: fs})
	grant(t, s, 1, 100)
	grant(t, s, 2, 200)
	putLease(t, s, "a", "1", 1)
	putLease(t, s, "b", "1", 2)
	put(t, s, "c", "1")
	before := stateOf(t, s)
	fail := func(string) *gate {
		g := newGate(syscall.ENOSPC)
		fs.set(func(f *faultFS) { f.write = g.wait })
		return g
	}
	requests := map[string]func() error{
		"put":     func() error { _, err := do(s, putOp("a", "2"), putOp("new", "")); return err },
		"delete":  func() error { _, err := do(s, deleteOp(everything)); return err },
		"grant":   func() error { _, err := s.LeaseGrant(bg, 3, 100); return err },
		"revoke":  func() error { _, err := s.LeaseRevoke(bg, 1); return err },
		"compact": func() error { _, err := s.Compact(bg, 3, false); return err },
		"user":    func() error { return s.ChangeAuth(bg, addUser("u")) },
		"move":    func() error { _, err := do(s, Op{Put: &PutRequest{Key: []byte("a"), Lease: 2}}); return err },
		"twice": func() error {
			_, err := do(s, putOp("c", "2"), deleteOp(single("c")), deleteOp(single("a")), putOp("d", ""))
			return err
		},
	}
	makeRoom := func() {
		fs.set(func(f *faultFS) { f.write = nil })
		s.space.mu.Lock()
		s.space.checked = time.Time{} // look again now
		s.space.mu.Unlock()
	}
	for name, request := range requests {
		close(fail(name).open)
		wantErr(t, request(), ErrNoSpace)
		makeRoom()
		if after := stateOf(t, s); after != before {
			t.Errorf("%s left a trace:\n%s, was\n%s", name, after, before)
		}
	}
	// One is being written, the others wait for the next batch: all are taken back.
	g := fail("all")
	errs := make(chan error, len(requests))
	go func() { errs <- requests["put"]() }()
	<-g.arrived
	for name, request := range requests {
		if name != "put" {
			go func() { errs <- request() }()
		}
	}
	go func() { errs <- requests["put"]() }()
	gathered(s, 3)
	close(g.open)
	for range len(requests) + 1 {
		if err := <-errs; err == nil {
			t.Error("a write on a full disk succeeded")
		}
	}
	makeRoom()
	if after := stateOf(t, s); after != before {
		t.Errorf("a trace is left:\n%s, was\n%s", after, before)
	}
	must(t, s.Err())
	for _, name := range []string{"put", "grant", "move", "revoke", "compact", "twice"} {
		must(t, requests[name]())
	}
	after := stateOf(t, s)[:60]
	s = reopen(t, s)
	if got := stateOf(t, s)[:60]; got != after {
		t.Errorf("after a restart:\n%s, was\n%s", got, after)
	}
}
