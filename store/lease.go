package store

import (
	"container/heap"
	"slices"
	"sync"
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
