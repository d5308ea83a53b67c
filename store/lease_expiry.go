package store

import (
	"sync/atomic"
	"time"
)

const (
	// expirySlack is by how much an expiry may be late, so that leases that end
	// close to each other cause one wake-up. etcd looks each 500 ms.
	expirySlack = 500 * time.Millisecond
	// expiryBatch is the number of leases that are ended under one lock, so
	// that thousands that expire at once do not hold up writes.
	expiryBatch = 64
	// stallLimit is the lateness of the timer from which on the process is
	// taken to have been stopped: keepalives sent meanwhile are still on their way.
	stallLimit = time.Second
	// expiryRetry is the pause after the disk has refused the end of a lease.
	expiryRetry = 2 * time.Second
)

// arm sets the timer for the next expiry. mu is held.
func (l *leases) arm() {
	if l.stopped || l.fire == nil || len(l.revoking) > 0 {
		return // ended arms it again
	}
	if len(l.queue) == 0 {
		if l.timer != nil {
			l.timer.Stop()
			l.timer, l.due = nil, time.Time{}
		}
		return
	}
	next := l.queue[0].expiry.Add(expirySlack / 2)
	if next.Before(l.notBefore) {
		next = l.notBefore
	}
	// A timer that fires up to the slack early only looks and is set again.
	if l.timer != nil && !next.Before(l.due) && next.Sub(l.due) < expirySlack/2 {
		return
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	l.due = next
	l.timer = time.AfterFunc(time.Until(next), l.fire)
}

func (l *leases) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	if l.timer != nil {
		l.timer.Stop()
	}
}

// takeExpired returns leases past their expiry, at most n, and marks them as
// ending. If the timer fired much too late, all leases get that time on top
// instead, and some more for the keepalives that wait to be read.
func (l *leases) takeExpired(n int) (ids []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := now()
	if late := t.Sub(l.due); !l.due.IsZero() && late > stallLimit {
		for _, x := range l.queue {
			x.expiry = x.expiry.Add(late + stallLimit)
		}
	}
	l.due = time.Time{}
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	for _, x := range l.expired(t, n) {
		l.revoking[x.id] = make(chan struct{})
		ids = append(ids, x.id)
	}
	if len(ids) == 0 {
		l.arm()
	}
	return ids
}

// expired collects leases past their expiry from the heap, not those ending already.
func (l *leases) expired(t time.Time, n int) (out []*lease) {
	var walk func(i int)
	walk = func(i int) {
		if i >= len(l.queue) || len(out) == n || l.queue[i].expiry.After(t) {
			return
		}
		if l.revoking[l.queue[i].id] == nil {
			out = append(out, l.queue[i])
		}
		walk(2*i + 1)
		walk(2*i + 2)
	}
	walk(0)
	return out
}

// ended wakes who waits for the ends of these leases. If they could not be
// ended, the next try comes after a pause.
func (l *leases) ended(ids []int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notBefore = time.Time{}
	if err != nil {
		l.notBefore = now().Add(expiryRetry)
	}
	for _, id := range ids {
		close(l.revoking[id])
		delete(l.revoking, id)
	}
	l.arm()
}

// expire ends the leases that are due. It runs on the timer's goroutine.
func (s *Store) expire() {
	for {
		ids := s.leases.takeExpired(expiryBatch)
		if len(ids) == 0 {
			return
		}
		err := s.endLeases(ids)
		s.leases.ended(ids, err)
		if err != nil {
			s.log.Warn("expired leases could not be ended; trying again", "in", expiryRetry, "leases", len(ids), "error", err)
			return
		}
		atomic.AddUint64(&s.count.LeasesExpired, uint64(len(ids)))
	}
}

// endLeases revokes expired leases, each in a revision of its own. A lease without keys
// needs no sync: were its end lost, it would only expire again.
func (s *Store) endLeases(ids []int64) error {
	var withKeys []int64
	s.ride(func(b *batch) {
		for _, id := range ids {
			if s.leases.hasKeys(id) {
				withKeys = append(withKeys, id)
			} else {
				s.revoke(b, id)
			}
		}
	})
	if len(withKeys) == 0 {
		return nil
	}
	return s.submit(func(b *batch) error {
		if err := s.admitDelete(); err != nil {
			return err
		}
		for _, id := range withKeys {
			s.revoke(b, id)
		}
		return nil
	})
}

func (l *leases) hasKeys(id int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.byID[id]
	return x != nil && len(x.keys) > 0
}
