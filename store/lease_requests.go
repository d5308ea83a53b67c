package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"slices"
	"sync/atomic"
	"time"
)

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
// ErrLeaseNotFound is returned when there is no such lease, and an error of auth.State.Allow
// when the context's caller may not write all of its keys.
func (s *Store) LeaseRevoke(ctx context.Context, id int64) (rev int64, err error) {
	err = s.submit(func(b *batch) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.admitDelete(); err != nil {
			return err
		}
		if err := s.permitRevoke(ctx, id); err != nil {
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
				s.mem.index.update(k, func(e *entry) { t.delete(e, []byte(k)) })
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
