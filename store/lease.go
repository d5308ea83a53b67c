package store

import (
	"cmp"
	"container/heap"
	"context"
	"crypto/rand"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Lease is a granted lease.
type Lease struct {
	ID       int64
	TTL      int64 // seconds, as granted
	Revision int64 // of the store
}

// LeaseInfo is what is left of a lease.
type LeaseInfo struct {
	TTL     int64 // whole seconds left
	Granted int64
	Keys    []string // ascending; only if asked for
}

// lease is a live lease.
type lease struct {
	id     int64
	ttl    int64 // seconds
	expiry time.Time
	keys   map[string]struct{}
	pos    int // in leases.queue
}

// leases are the leases of the head, ordered by expiry. Grants, ends and
// attachments are changed under Store.mu; mu guards the memory. Expiry times are not
// durable: after a restart each lease has its full TTL again.
type leases struct {
	mu    sync.Mutex
	byID  map[int64]*lease
	queue leaseQueue
	timer *time.Timer // for the next expiry, nil if there is none
	due   time.Time   // when timer fires
	fire  func()      // what the timer calls
	// revoking has the leases past their expiry whose end is not durable yet.
	revoking map[int64]chan struct{}
	// notBefore puts off the next try after a failed one.
	notBefore time.Time
	stopped   bool
}

// leaseQueue is a heap by expiry.
type leaseQueue []*lease

func (q leaseQueue) Len() int           { return len(q) }
func (q leaseQueue) Less(i, j int) bool { return q[i].expiry.Before(q[j].expiry) }
func (q leaseQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].pos, q[j].pos = i, j
}
func (q *leaseQueue) Push(x any) {
	l := x.(*lease)
	l.pos = len(*q)
	*q = append(*q, l)
}
func (q *leaseQueue) Pop() any {
	old := *q
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return l
}

func (l *leases) init() {
	l.byID = make(map[int64]*lease)
	l.revoking = make(map[int64]chan struct{})
}

// start begins to end expired leases by calling fire, which calls takeExpired.
func (l *leases) start(fire func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fire = fire
	l.arm()
}

func (l *leases) exists(id int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byID[id] != nil
}

// add makes a lease live, with its whole TTL from now on.
func (l *leases) add(x *lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x.keys == nil {
		x.keys = make(map[string]struct{})
	}
	l.byID[x.id] = x
	heap.Push(&l.queue, x)
	l.arm()
}

// remove takes a lease away and returns it, or nil.
func (l *leases) remove(id int64) *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.byID[id]
	if x != nil {
		delete(l.byID, id)
		heap.Remove(&l.queue, x.pos)
		l.arm()
	}
	return x
}

// extend gives a lease its whole TTL again and returns it; false if there is no
// such lease, or it has expired.
func (l *leases) extend(id int64, extra time.Duration) (ttl int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.byID[id]
	if x == nil || l.revoking[id] != nil {
		return 0, false
	}
	x.expiry = now().Add(ttlDuration(x.ttl) + extra)
	heap.Fix(&l.queue, x.pos)
	l.arm()
	return x.ttl, true
}

// move takes a key from one lease to another; 0 and unknown leases are none.
func (l *leases) move(key string, from, to int64) {
	if from == to {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if x := l.byID[from]; x != nil {
		delete(x.keys, key)
	}
	if x := l.byID[to]; x != nil {
		x.keys[key] = struct{}{}
	}
}

// keysOf returns a lease's keys in order.
func (x *lease) keysOf() []string {
	keys := make([]string, 0, len(x.keys))
	for k := range x.keys {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (l *leases) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byID)
}

func ttlDuration(ttl int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Second)
	return time.Duration(min(ttl, most)) * time.Second
}

// LeaseGrant makes a lease that ends ttl seconds after the last keepalive; a TTL
// below MinLeaseTTL is raised to it. ID 0 lets the store choose.
//
// ErrLeaseExists, ErrLeaseTTLTooLarge and ErrNoSpace are returned when it can not.
func (s *Store) LeaseGrant(ctx context.Context, id, ttl int64) (Lease, error) {
	if ttl > MaxLeaseTTL {
		return Lease{}, ErrLeaseTTLTooLarge
	}
	ttl = max(ttl, MinLeaseTTL)
	var rev int64
	err := s.submit(func(b *batch) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.admitCost(b, leaseCost); err != nil {
			return err
		}
		if id == 0 {
			id = s.leases.freeID()
		}
		if s.leases.exists(id) {
			return ErrLeaseExists
		}
		rev = s.head.revision
		s.grant(b, id, ttl)
		return nil
	})
	if err != nil {
		return Lease{}, err
	}
	atomic.AddUint64(&s.count.LeasesGranted, 1)
	return Lease{ID: id, TTL: ttl, Revision: rev}, nil
}

func (s *Store) grant(b *batch, id, ttl int64) {
	b.control(control{kind: recordGrant, a: id, b: ttl})
	s.leases.add(&lease{id: id, ttl: ttl, expiry: now().Add(ttlDuration(ttl))})
	b.undo = append(b.undo, func() { s.leases.remove(id) })
	// The holder learns of the lease now: its time begins here.
	b.published = append(b.published, func() { s.leases.extend(id, 0) })
}

// freeID returns an unused positive ID.
func (l *leases) freeID() int64 {
	var buf [8]byte
	for {
		rand.Read(buf[:])
		id := int64(binary.BigEndian.Uint64(buf[:]) >> 1)
		if id != 0 && !l.exists(id) {
			return id
		}
	}
}

// LeaseRevoke ends a lease and deletes its keys, in key order, in one revision.
// It returns the store's revision after that.
//
// ErrLeaseNotFound is returned when there is no such lease.
func (s *Store) LeaseRevoke(ctx context.Context, id int64) (rev int64, err error) {
	err = s.submit(func(b *batch) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.admitDelete(); err != nil {
			return err
		}
		if !s.revoke(b, id) {
			return ErrLeaseNotFound
		}
		rev = s.head.revision
		return nil
	})
	if err == nil {
		atomic.AddUint64(&s.count.LeasesRevoked, 1)
	}
	return rev, err
}

// revoke applies the end of a lease to the head. Store.mu is held.
func (s *Store) revoke(b *batch, id int64) bool {
	s.leases.mu.Lock()
	x := s.leases.byID[id]
	var keys []string
	if x != nil {
		keys = x.keysOf()
	}
	s.leases.mu.Unlock()
	if x == nil {
		return false
	}
	if len(keys) > 0 {
		s.mem.mu.Lock()
		t := &txn{s: s, b: b, now: s.head.revision}
		for _, k := range keys {
			if e := s.mem.index.get(k); e != nil && e.live() {
				t.delete(e)
			}
		}
		s.head.revision = t.current()
		s.mem.mu.Unlock()
	}
	b.control(control{kind: recordRevoke, a: id})
	s.leases.remove(id)
	b.undo = append(b.undo, func() {
		x.expiry = now().Add(ttlDuration(x.ttl))
		s.leases.add(x)
	})
	return true
}

// LeaseKeepAlive gives a lease its whole TTL again and returns it in seconds; 0 if there is no
// such lease. For a lease past its expiry it waits until its end is durable.
func (s *Store) LeaseKeepAlive(ctx context.Context, id int64) (ttl int64, err error) {
	if err := s.Err(); err != nil {
		return 0, ErrStopped
	}
	ttl, ok := s.leases.extend(id, 0)
	if ok {
		atomic.AddUint64(&s.count.LeasesRenewed, 1)
		return ttl, nil
	}
	s.leases.mu.Lock()
	ending := s.leases.revoking[id]
	s.leases.mu.Unlock()
	if ending == nil {
		return 0, nil
	}
	select {
	case <-ending:
		return 0, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-s.Failed():
		return 0, ErrStopped
	}
}

// LeaseTimeToLive tells what is left of a lease; ok is false if there is no such lease.
func (s *Store) LeaseTimeToLive(id int64, keys bool) (info LeaseInfo, ok bool) {
	if s.barrier() != nil {
		return LeaseInfo{}, false
	}
	s.leases.mu.Lock()
	defer s.leases.mu.Unlock()
	x := s.leases.byID[id]
	if x == nil {
		return LeaseInfo{}, false
	}
	info = LeaseInfo{TTL: int64(max(0, x.expiry.Sub(now())) / time.Second), Granted: x.ttl}
	if keys {
		info.Keys = x.keysOf()
	}
	return info, true
}

// Leases returns the IDs of all leases, ascending by time left.
func (s *Store) Leases() []int64 {
	if s.barrier() != nil {
		return nil
	}
	s.leases.mu.Lock()
	defer s.leases.mu.Unlock()
	all := slices.Clone(s.leases.queue)
	slices.SortFunc(all, func(a, b *lease) int {
		return cmp.Or(a.expiry.Compare(b.expiry), cmp.Compare(a.id, b.id))
	})
	ids := make([]int64, len(all))
	for i, x := range all {
		ids[i] = x.id
	}
	return ids
}
