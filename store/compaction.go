package store

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarn-kv/tarn/store/tree"
)

const (
	// pruneStep is the number of changes looked at under one lock.
	pruneStep = 512
	// removeStep is the number of records that one commit removes from the tree.
	removeStep = 4096
	// removeRetry is the pause after a removal for which there was no space.
	removeRetry = 10 * time.Second
)

// compactor removes, in the background, what lies below the compact revision.
type compactor struct {
	mu      sync.Mutex
	queue   []int64 // published compact revisions, not worked off, ascending
	running bool
	idle    chan struct{} // closed while nothing is queued that can go on
	// owed is set when somebody still reads below the compact revision: the
	// rest goes when the pin goes.
	owed bool
	// finished is the newest revision that was worked off, -1 if none, and hashed
	// the newest whose hash was kept.
	finished, hashed int64
	// lost are records that are gone from memory, but could not be removed from
	// the tree for lack of space. Guarded by checkpointer.mu.
	lost []tree.DeadRecord
}

// Compact makes rev the oldest revision that can be read. It returns once that is
// durable, or, if physical, once the records below are gone. It returns the
// store's revision.
//
// ErrCompacted is returned when rev is not above the compact revision,
// ErrFutureRev when it is above the current one, ErrCorrupt while the store is marked corrupt.
func (s *Store) Compact(ctx context.Context, rev int64, physical bool) (current int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	err = s.submit(func(b *batch) error {
		current = s.head.revision
		if err := s.admitDelete(); err != nil {
			return err
		}
		switch {
		case rev == 0 && s.head.compacted < 0:
			return nil // nothing lies below the first revision
		case rev <= s.head.compacted:
			return ErrCompacted
		case rev > s.head.revision:
			return ErrFutureRev
		}
		b.control(control{kind: recordCompact, a: rev})
		s.head.compacted = rev
		b.published = append(b.published, func() { s.startCompaction(rev) })
		return nil
	})
	if physical {
		if waitErr := s.compact.waitIdle(ctx, s.Failed()); err == nil {
			err = waitErr
		}
	}
	return current, err
}

// startCompaction makes a compact revision visible and has its records removed.
func (s *Store) startCompaction(rev int64) {
	s.compacted.Store(rev)
	atomic.AddUint64(&s.count.Compactions, 1)
	c := &s.compact
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, rev)
	s.runCompactor()
}

// runCompactor starts the worker if there is work. c.mu is held.
func (s *Store) runCompactor() {
	c := &s.compact
	if c.running || len(c.queue) == 0 || s.closed.Load() {
		return
	}
	c.running, c.owed = true, false
	c.idle = make(chan struct{})
	go s.workOff()
}

// unpinned is called when the lowest pin has gone.
func (s *Store) unpinned() {
	c := &s.compact
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owed {
		s.runCompactor()
	}
}

// workOff removes what the queued compactions allow, one after the other, and gives back the space.
func (s *Store) workOff() {
	c := &s.compact
	for removed := false; ; {
		c.mu.Lock()
		if len(c.queue) == 0 && removed {
			c.mu.Unlock()
			s.giveBack()
			removed = false
			continue
		}
		if len(c.queue) == 0 || s.Err() != nil {
			c.running = false
			close(c.idle)
			c.mu.Unlock()
			s.clearAlarmIfRoom()
			return
		}
		rev, prior := c.queue[0], c.finished
		c.mu.Unlock()

		if rev > c.hashed {
			s.hashes.keep(s, rev, prior)
			c.hashed = rev
		}
		done, err := s.removeBelow(rev)
		if err != nil {
			s.log.Warn("compaction could not go on; trying again", "in", removeRetry, "revision", rev, "error", err)
			time.AfterFunc(removeRetry, s.unpinned)
		}

		c.mu.Lock()
		if !done {
			c.owed, c.running = true, false
			close(c.idle)
			// A pin that went before owed was set has not started us again.
			if err == nil && s.pins.lowest(rev) == rev {
				s.runCompactor()
			}
			c.mu.Unlock()
			return
		}
		c.queue, c.finished, removed = c.queue[1:], rev, true
		c.mu.Unlock()
	}
}

// waitIdle waits until the worker has nothing to do, or only waits for a reader.
func (c *compactor) waitIdle(ctx context.Context, failed <-chan struct{}) error {
	c.mu.Lock()
	idle, running := c.idle, c.running
	c.mu.Unlock()
	if !running {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-failed:
		return ErrStopped
	}
}

func (c *compactor) wait() { _ = c.waitIdle(context.Background(), nil) }

// removeBelow removes the records that no read at or above rev sees. It
// reports false if a pinned revision below rev, or an error, kept it from going all the way.
func (s *Store) removeBelow(rev int64) (done bool, err error) {
	start, removed := time.Now(), 0
	s.ckpt.mu.Lock()
	defer s.ckpt.mu.Unlock()
	s.mem.mu.Lock()
	floor := s.pins.lowest(rev)
	s.mem.floor = max(s.mem.floor, floor)
	s.mem.mu.Unlock()
	var dead []record
	pace := s.newPace()
	for at, more := 0, true; more; {
		dead, at, more = s.pruneStep(floor, at, dead)
		if len(dead) >= removeStep || !more {
			removed += len(dead)
			finished := int64(-1)
			if !more && floor == rev {
				finished = rev
			}
			if err := s.removeFromTree(dead, finished, more); err != nil {
				return false, err
			}
			dead = dead[:0]
			pace.step(s)
		}
	}
	atomic.AddUint64(&s.count.CompactedRecords, uint64(removed))
	s.log.Debug("compaction removed records", "revision", rev, "floor", floor, "records", removed, "took", time.Since(start))
	return floor == rev, nil
}

// pruneStep prunes the keys of a few changes up to floor. Changes below floor
// are dropped; those at floor stay for watches that begin there, and at counts them.
func (s *Store) pruneStep(floor int64, at int, dead []record) ([]record, int, bool) {
	m := &s.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	below := 0
	for range pruneStep {
		i := at + below
		if i >= m.changes.len() || m.changes.at(i).main > floor {
			m.changes.dropFront(below)
			return dead, at, false
		}
		c := m.changes.at(i)
		before := len(dead)
		dead = c.entry.prune(c.main, c.sub, floor, dead)
		m.prefixes.removed(c.entry.key, dead[before:])
		if c.entry.last.main == 0 && m.index.get(c.entry.key) == c.entry {
			m.index.update(c.entry.key, func(*entry) {})
		}
		if c.main < floor {
			below++
		} else {
			at++
		}
	}
	m.changes.dropFront(below)
	return dead, at, true
}

// removeFromTree removes the records that have reached the tree; the others
// will never be written. more is set if another step follows. ckpt.mu is held.
func (s *Store) removeFromTree(dead []record, finished int64, more bool) error {
	var stored []tree.DeadRecord
	for i := range dead {
		if dead[i].main <= s.ckpt.treeRev {
			stored = append(stored, tree.DeadRecord{Rev: dead[i].rev(), Tombstone: dead[i].tombstone()})
		}
	}
	if err := s.commitTree(stored, finished, more); err != nil {
		return fmt.Errorf("remove %d records from the tree: %w", len(stored), err)
	}
	return nil
}
