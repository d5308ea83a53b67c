package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/tarn-kv/tarn/store/wal"
)

// maxGather is the size in bytes of a gathered batch above which writers wait
// for the disk, so that a slow one does not fill the memory.
const maxGather = 32 << 20

// submit runs apply with the head locked and returns once everything that apply
// wrote, or saw, is durable. apply must change nothing if it returns an error.
//
// The first caller that finds no flush under way flushes the batch itself: a
// lone client pays no hand-off. What arrives meanwhile gathers in the
// next batch, which one sync makes durable: group commit without a timer.
func (s *Store) submit(apply func(*batch) error) error {
	s.mu.Lock()
	for s.inflight != nil && s.gather != nil && len(s.gather.frame) > maxGather {
		ahead := s.inflight
		s.mu.Unlock()
		<-ahead.done
		s.mu.Lock()
	}
	if err := s.stopped(); err != nil {
		s.mu.Unlock()
		return err
	}
	if s.gather == nil {
		s.gather = newBatch(s.head)
	}
	b := s.gather
	size := len(b.frame)
	err := apply(b)
	if len(b.frame) > size {
		b.urgent = true
	}
	lead := false
	switch {
	case b.urgent && !s.flushing:
		s.flushing, lead = true, true
	case b.urgent:
	case s.inflight != nil:
		b = s.inflight // nothing written; what was seen is being synced
	default:
		s.mu.Unlock()
		return err
	}
	s.mu.Unlock()
	if lead {
		s.flush()
	}
	<-b.done
	return errors.Join(err, b.err)
}

// ride is submit for changes that nobody waits for: they become durable with
// the next batch that somebody does wait for.
func (s *Store) ride(apply func(*batch)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped() == nil {
		s.rideOn(apply)
	}
}

// rideOn is ride under Store.mu, for a store that has not stopped.
func (s *Store) rideOn(apply func(*batch)) {
	if s.gather == nil {
		s.gather = newBatch(s.head)
	}
	apply(s.gather)
}

// flush writes and publishes the gathered batch. If another has gathered
// meanwhile, it leaves that one to a goroutine of its own, so that the caller can answer.
func (s *Store) flush() {
	if s.flushOne() {
		go func() {
			for s.flushOne() {
			}
		}()
	}
}

// flushOne makes one batch durable and visible, and reports whether there is
// another. s.flushing is set, by this goroutine's starter.
func (s *Store) flushOne() (more bool) {
	s.mu.Lock()
	b := s.gather
	s.gather, s.inflight = nil, b
	s.mu.Unlock()

	seq, err := s.appendFrame(b)
	if err != nil {
		s.refuse(b, err)
	} else {
		s.publish(b, seq)
	}

	s.mu.Lock()
	s.inflight = nil
	more = s.gather != nil && s.gather.urgent
	s.flushing = more
	s.mu.Unlock()
	close(b.done)
	return more
}

// freedPoll is the time between two looks at whether a file system has freed what it was given.
const freedPoll = 50 * time.Millisecond

// appendFrame writes and syncs one frame. On a full disk it gives up the reserve and
// tries again, so that what frees space still gets through. ZFS frees in the
// background, some transaction groups of a few seconds later, and has no room until then.
func (s *Store) appendFrame(b *batch) (uint64, error) {
	if err := s.Err(); err != nil {
		return 0, err
	}
	seq, err := s.wal.AppendFrame(b.frame)
	if errors.Is(err, wal.ErrNoSpace) && s.space.useReserve(s) {
		for until := now().Add(s.opts.freedWithin); ; time.Sleep(freedPoll) {
			seq, err = s.wal.AppendFrame(b.frame)
			if !errors.Is(err, wal.ErrNoSpace) || !now().Before(until) {
				break
			}
		}
	}
	return seq, err
}

// refuse takes back a batch that could not be written, and what has been
// applied on top of it.
func (s *Store) refuse(b *batch, err error) {
	switch {
	case errors.Is(err, wal.ErrTooLarge):
	case errors.Is(err, wal.ErrNoSpace):
		err = fmt.Errorf("%w: %w", ErrNoSpace, err)
		s.log.Warn("write refused: the file system of the data directory is full; delete keys and compact, or make room", "dir", s.opts.Dir, "error", err)
	default:
		s.fail(err)
		err = fmt.Errorf("%w: %w", ErrStopped, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.gather; g != nil {
		s.gather = nil
		s.takeBack(g)
		g.err = err
		defer close(g.done)
	}
	s.takeBack(b)
	b.err = err
}

// takeBack undoes a batch in memory: first the controls, so that a revoked lease
// is there again when its keys come back. s.mu is held.
func (s *Store) takeBack(b *batch) {
	for i := len(b.undo) - 1; i >= 0; i-- {
		b.undo[i]()
	}
	s.mem.mu.Lock()
	defer s.mem.mu.Unlock()
	for range b.changes {
		key, undone, before := s.mem.undo()
		s.leases.move(key, undone.lease, before.lease)
	}
	s.head = b.before
}

// publish makes a durable batch visible: to reads, then to watchers.
func (s *Store) publish(b *batch, seq uint64) {
	rev := s.settle(b)
	if b.auth != nil {
		s.auth.published.Store(b.auth) // first: what follows a revocation must not be readable before it
	}
	s.ckpt.note(s, rev, seq, b.controls)
	if from := s.published.Load(); rev > from {
		s.published.Store(rev)
		s.hub.publish(from, rev)
	}
	// A compaction begins only after the watchers got what it may remove.
	for _, f := range b.published {
		f()
	}
	if s.opts.ObservePublish != nil {
		s.opts.ObservePublish()
	}
}

// settle points the tail to the batch's final memory (the frame may have moved
// while it grew), counts the changes and returns the batch's last revision.
func (s *Store) settle(b *batch) (rev int64) {
	rev = s.published.Load()
	if len(b.changes) == 0 {
		return rev
	}
	m := &s.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.tail.search(func(t *tailRecord) bool { return t.main > rev })
	for _, c := range b.changes {
		t := m.tail.at(i)
		t.value = b.frame[c.offset : c.offset+c.length : c.offset+c.length]
		m.prefixes.wrote(t.entry.key, c.length)
		rev = t.main
		i++
	}
	return rev
}

// barrier returns once everything that the head shows is durable.
func (s *Store) barrier() error {
	return s.submit(func(*batch) error { return nil })
}

// flushAll writes out what still rides along.
func (s *Store) flushAll() error {
	s.mu.Lock()
	b := s.inflight
	lead := false
	if g := s.gather; g != nil && !g.empty() {
		b, g.urgent = g, true
		if !s.flushing {
			s.flushing, lead = true, true
		}
	}
	s.mu.Unlock()
	if b == nil {
		return nil
	}
	if lead {
		s.flush()
	}
	<-b.done
	return b.err
}
