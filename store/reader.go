package store

import (
	"context"
	"sync/atomic"
)

// Reader reads at one pinned revision, also across a compaction. It must be
// closed. A Reader may be used by several goroutines, a Scanner by one.
type Reader struct {
	s       *Store
	current int64
	pin
}

// checkRevision tells whether a read of rev is possible.
func checkRevision(rev, current, compacted int64) error {
	switch {
	case rev <= 0:
		return nil
	case rev > current:
		return ErrFutureRev
	case rev < compacted:
		return ErrCompacted
	}
	return nil
}

// pinAt pins a revision for reading; rev ≤ 0 means the current one, which is
// returned beside the pin.
func (s *Store) pinAt(rev int64) (pin, int64, error) {
	if err := s.stopped(); err != nil {
		return pin{}, 0, err
	}
	// The pin is set before the compact revision is looked at, so that a
	// compaction either sees the pin or is seen.
	current := s.published.Load()
	at := rev
	if at <= 0 {
		at = current
	}
	if at > current {
		return pin{}, current, ErrFutureRev
	}
	s.pins.add(at)
	p := pin{&s.pins, at}
	// A current revision that a compaction has overtaken since is no error.
	if at < s.compacted.Load() {
		p.Close()
		if rev <= 0 {
			return s.pinAt(rev)
		}
		return pin{}, current, ErrCompacted
	}
	return p, current, nil
}

// NewReader pins a revision; rev ≤ 0 means the current one.
//
// ErrFutureRev and ErrCompacted are returned when rev can not be read.
func (s *Store) NewReader(ctx context.Context, rev int64) (*Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p, current, err := s.pinAt(rev)
	if err != nil {
		return nil, err
	}
	atomic.AddUint64(&s.count.Ranges, 1)
	return &Reader{s: s, current: current, pin: p}, nil
}

// At returns the pinned revision.
func (r *Reader) At() int64 { return r.rev }

// Current returns the store's revision when the reader was made.
func (r *Reader) Current() int64 { return r.current }

// Count returns the number of live keys in a range: O(log n), and the number of
// changes since the pinned revision.
func (r *Reader) Count(k KeyRange) int64 {
	sp := k.span()
	m := &r.s.mem
	m.mu.RLock()
	n, ok := m.countAt(sp, r.rev)
	m.mu.RUnlock()
	if ok {
		return n
	}
	sc := r.Scan(k)
	var items []Item
	for {
		items = sc.Next(items[:0], scanStep, 1<<62)
		if len(items) == 0 {
			return n
		}
		n += int64(len(items))
	}
}

// SameAt reports whether a range has the same records at the pinned revision and at
// another one, which must be readable too. It may say no where it would be long to tell.
func (r *Reader) SameAt(k KeyRange, rev int64) bool {
	const most = 10_000 // changes looked at
	from, to := min(r.rev, rev), max(r.rev, rev)
	if from == to {
		return true
	}
	sp := k.span()
	m := &r.s.mem
	m.mu.RLock()
	defer m.mu.RUnlock()
	if from < m.floor {
		return false
	}
	first := m.changesFrom(from + 1)
	for i := first; i < m.changes.len(); i++ {
		c := m.changes.at(i)
		if c.main > to {
			break
		}
		if i-first == most || sp.contains(c.entry.key) {
			return false
		}
	}
	return true
}

// Bytes returns about how many bytes a list of the range takes, from the sums
// of the head.
func (r *Reader) Bytes(k KeyRange) int64 {
	m := &r.s.mem
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.index.sumOf(k.span()).bytes
}

// Scan reads a range in key order.
func (r *Reader) Scan(k KeyRange) *Scanner { return &Scanner{r: r, rest: k.span()} }

// Scanner walks the live keys of a range. The lock is held for a bounded number
// of entries at a time, so a long scan does not hold up the writer.
type Scanner struct {
	r    *Reader
	rest span
}

// scanStep is the number of entries looked at under one lock.
const scanStep = 1024

// Next appends up to n items to dst, at least one if there is one left, and ends early
// when their sizes reach maxBytes. Nothing is appended at the end of the range.
func (sc *Scanner) Next(dst []Item, n, maxBytes int) []Item {
	m := &sc.r.s.mem
	got, size := 0, 0
	for got < n && size < maxBytes && !sc.rest.empty() {
		seen := 0
		last := ""
		more := false
		m.mu.RLock()
		m.index.ascend(sc.rest, func(e *entry) bool {
			if seen == scanStep || got == n || size >= maxBytes {
				more = true
				return false
			}
			seen++
			last = e.key
			if rec := e.liveAt(sc.r.rev); rec != nil {
				dst = append(dst, e.item(rec))
				got++
				size += int(rec.size)
			}
			return true
		})
		m.mu.RUnlock()
		if !more {
			sc.rest = span{}
			break
		}
		sc.rest.start = last + "\x00"
	}
	return dst
}
