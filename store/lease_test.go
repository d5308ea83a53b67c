package store

import (
	"container/heap"
	"fmt"
	"slices"
	"testing"
	"time"
)

// passTime makes leases expire without waiting for them.
func passTime(s *Store, ids ...int64) {
	s.leases.mu.Lock()
	defer s.leases.mu.Unlock()
	for _, id := range ids {
		s.leases.byID[id].expiry = now().Add(-time.Millisecond)
	}
	heap.Init(&s.leases.queue)
}

func grant(t testing.TB, s *Store, id, ttl int64) {
	t.Helper()
	_, err := s.LeaseGrant(bg, id, ttl)
	must(t, err)
}

func leaseKeys(t *testing.T, s *Store, id int64, want ...string) {
	t.Helper()
	l, ok := s.LeaseTimeToLive(id, true)
	if !ok || !slices.Equal(l.Keys, want) {
		t.Errorf("lease %d has keys %q (%v), want %q", id, l.Keys, ok, want)
	}
}

func TestLeaseGrant(t *testing.T) { // LSE-1, LSE-2
	s := testStore(t)
	for ttl, want := range map[int64]int64{0: 2, -10: 2, 1: 2, 2: 2, MaxLeaseTTL: MaxLeaseTTL} {
		l, err := s.LeaseGrant(bg, 0, ttl)
		if err != nil || l.TTL != want || l.ID <= 0 || l.Revision != 1 {
			t.Errorf("TTL %d: %+v, %v", ttl, l, err)
		}
	}
	_, err := s.LeaseGrant(bg, 0, MaxLeaseTTL+1)
	wantErr(t, err, ErrLeaseTTLTooLarge)
	grant(t, s, -7, 60)
	_, err = s.LeaseGrant(bg, -7, 60)
	wantErr(t, err, ErrLeaseExists)
	if s.Revision() != 1 {
		t.Error("a grant changed the revision (REV-4)")
	}
}

func TestLeaseAttach(t *testing.T) { // LSE-8, LSE-12, PUT-3 to PUT-7
	s := testStore(t)
	grant(t, s, 1234, 60)
	grant(t, s, 1235, 90)
	putLease(t, s, "L/b", "1", 1234)
	putLease(t, s, "L/a", "1", 1234)
	leaseKeys(t, s, 1234, "L/a", "L/b")
	if l, _ := s.LeaseTimeToLive(1234, false); l.TTL < 50 || l.TTL > 60 || l.Granted != 60 || l.Keys != nil {
		t.Errorf("lease is %+v", l)
	}
	put(t, s, "L/a", "2")
	leaseKeys(t, s, 1234, "L/b")
	putLease(t, s, "L/b", "2", 1235)
	leaseKeys(t, s, 1234)
	leaseKeys(t, s, 1235, "L/b")
	_, err := do(s, Op{Put: &PutRequest{Key: []byte("L/b"), IgnoreLease: true}})
	must(t, err)
	leaseKeys(t, s, 1235, "L/b")
	_, err = do(s, Op{Put: &PutRequest{Key: []byte("L/b"), IgnoreValue: true}})
	must(t, err)
	leaseKeys(t, s, 1235)
	putLease(t, s, "L/b", "", 1235)
	del(t, s, single("L/b"))
	leaseKeys(t, s, 1235)
	_, err = do(s, Op{Put: &PutRequest{Key: []byte("new"), Lease: 9, IgnoreValue: true}})
	wantErr(t, err, ErrLeaseNotFound)
	_, err = do(s, Op{Put: &PutRequest{Key: []byte("new"), IgnoreValue: true}})
	wantErr(t, err, ErrKeyNotFound)
	if _, ok := s.LeaseTimeToLive(9, true); ok {
		t.Error("an unknown lease is known")
	}
}

func TestLeaseRevoke(t *testing.T) { // LSE-4, REV-5
	s := testStore(t)
	w := watchStream(t, s)
	grant(t, s, 5, 60)
	var rev int64
	for _, k := range []string{"l/3", "l/1", "l/2"} {
		rev = putLease(t, s, k, "x", 5)
	}
	watch(t, w, WatchRequest{KeyRange: everything, PrevKV: true})
	next(t, w)
	got, err := s.LeaseRevoke(bg, 5)
	if err != nil || got != rev+1 {
		t.Fatalf("revision %d, %v", got, err)
	}
	m := next(t, w)
	if len(m.Events) != 3 || m.Revision != rev+1 {
		t.Fatalf("got %+v", m)
	}
	for i, e := range m.Events {
		ev := decodeEvent(t, e, true)
		if !e.IsDelete() || string(ev.Kv.Key) != fmt.Sprint("l/", i+1) || ev.PrevKv.Lease != 5 || ev.Kv.Lease != 0 {
			t.Errorf("event %v", ev)
		}
	}
	_, err = s.LeaseRevoke(bg, 5)
	wantErr(t, err, ErrLeaseNotFound)
	grant(t, s, 6, 60)
	if got, err = s.LeaseRevoke(bg, 6); err != nil || got != rev+1 {
		t.Errorf("revoke of a lease without keys: revision %d, %v", got, err)
	}
}

func TestLeaseKeepAlive(t *testing.T) { // LSE-5, LSE-9
	s := testStore(t)
	grant(t, s, 50, 100)
	grant(t, s, 51, 200)
	grant(t, s, 52, 150)
	if got := s.Leases(); !slices.Equal(got, []int64{50, 52, 51}) {
		t.Errorf("leases by time left: %v", got)
	}
	passTime(s, 51) // without the timer looking: it may be renewed until it is being ended
	if ttl, err := s.LeaseKeepAlive(bg, 51); ttl != 200 || err != nil {
		t.Errorf("TTL %d, %v", ttl, err)
	}
	if ttl, err := s.LeaseKeepAlive(bg, 777); ttl != 0 || err != nil {
		t.Errorf("unknown lease: TTL %d, %v", ttl, err)
	}
	// An expired one is answered when its end is durable.
	passTime(s, 50)
	ids := s.leases.takeExpired(10)
	if !slices.Equal(ids, []int64{50}) {
		t.Fatalf("expired: %v", ids)
	}
	answered := make(chan int64)
	go func() {
		ttl, _ := s.LeaseKeepAlive(bg, 50)
		answered <- ttl
	}()
	select {
	case <-answered:
		t.Error("answered before the lease has ended")
	case <-time.After(20 * time.Millisecond):
	}
	must(t, s.endLeases(ids))
	s.leases.ended(ids, nil)
	if ttl := <-answered; ttl != 0 {
		t.Errorf("expired lease: TTL %d", ttl)
	}
	if _, ok := s.LeaseTimeToLive(50, false); ok {
		t.Error("the lease is still there")
	}
}

func TestLeasesExpireTogether(t *testing.T) { // LSE-10
	const n = 3*expiryBatch + 5
	s := testStore(t)
	var ids []int64
	for id := int64(1); id <= n; id++ {
		ids = append(ids, id)
		s.ride(func(b *batch) { s.grant(b, id, 1000) })
	}
	putLease(t, s, "a", "", 1)
	rev := putLease(t, s, "b", "", 2)
	grant(t, s, n+1, 1000)
	passTime(s, ids...)
	s.expire()
	if left := s.Leases(); !slices.Equal(left, []int64{n + 1}) {
		t.Errorf("leases left: %v", left)
	}
	if s.Revision() != rev+2 || s.Status().Keys != 0 {
		t.Errorf("revision %d, want %d; %d keys", s.Revision(), rev+2, s.Status().Keys)
	}
	if c := s.Counters(); c.LeasesExpired != n {
		t.Errorf("%d are counted", c.LeasesExpired)
	}
	s = reopen(t, s) // also the ends that rode along
	if left := s.Leases(); !slices.Equal(left, []int64{n + 1}) {
		t.Errorf("leases left after a restart: %v", left)
	}
}

// LSE-11: a process that was stopped gives every lease the time that it lost.
func TestLeaseSurvivesStall(t *testing.T) {
	s := testStore(t)
	grant(t, s, 1, 10)
	s.leases.mu.Lock()
	s.leases.timer.Stop()
	s.leases.byID[1].expiry = now().Add(-5 * time.Second)
	s.leases.due = s.leases.byID[1].expiry
	s.leases.mu.Unlock()
	if ids := s.leases.takeExpired(10); len(ids) > 0 {
		t.Error("a lease ended while the process stood still")
	}
	if left := time.Until(s.leases.byID[1].expiry); left < 0 || left > 2*time.Second {
		t.Errorf("it has %v left", left)
	}
}

func TestLeaseRestart(t *testing.T) { // LSE-13, LSE-15
	s := testStore(t)
	grant(t, s, 1, 100)
	grant(t, s, 2, 100)
	putLease(t, s, "a", "", 1)
	putLease(t, s, "b", "", 1)
	putLease(t, s, "b", "", 2)
	must(t, s.Checkpoint(bg))
	putLease(t, s, "c", "", 1)
	s.leases.mu.Lock()
	s.leases.byID[1].expiry = now().Add(26 * time.Second)
	s.leases.mu.Unlock()
	s = reopen(t, s)
	leaseKeys(t, s, 1, "a", "c")
	leaseKeys(t, s, 2, "b")
	if l, _ := s.LeaseTimeToLive(1, false); l.TTL < 98 || l.TTL > 101 {
		t.Errorf("%d s are left", l.TTL)
	}
	if s.Term() != firstTerm+1 {
		t.Errorf("term %d", s.Term())
	}
}

// The timer ends a lease by itself, not early and not long after (LSE-10).
func TestLeaseTimer(t *testing.T) {
	s := testStore(t)
	gone := make(chan struct{}, 9)
	w := s.NewWatchStream(func() { gone <- struct{}{} })
	defer w.Close()
	grant(t, s, 1, 2)
	begun := time.Now()
	putLease(t, s, "a", "", 1)
	watch(t, w, WatchRequest{KeyRange: everything})
	<-gone
	next(t, w)
	nothing(t, w)
	<-gone
	if took := time.Since(begun); took < 1900*time.Millisecond {
		t.Errorf("the lease ended after %v", took)
	}
	if m := next(t, w); len(m.Events) != 1 || !m.Events[0].IsDelete() {
		t.Errorf("got %+v", m)
	}
}
