// Package store keeps a key space with revisions, as etcd does: transactions,
// history, compaction, leases, watches. It knows nothing of gRPC or ZFS.
//
// See DESIGN.md for the invariants and the locks.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/wal"
)

// Store is an open store. All methods are safe for concurrent use.
type Store struct {
	opts     Options
	log      *slog.Logger
	lock     io.Closer // of the directory
	instance string
	wal      *wal.Log
	tree     *tree.Tree
	id       [16]byte
	term     int64

	// mu is held by whoever evaluates or applies a write: it guards the head.
	mu       sync.Mutex
	head     head
	gather   *batch      // collects what is applied now; nil if nothing is
	inflight *batch      // is being written and synced
	flushing bool        // a goroutine is in flush or about to enter it
	closed   atomic.Bool // set under mu

	mem    memory
	leases leases
	alarms alarms
	auth   authority
	hub    hub
	pins   pins

	published atomic.Int64 // newest durable revision: what reads see
	compacted atomic.Int64 // published compact revision, -1 = never compacted
	failure   failure

	ckpt    checkpointer
	compact compactor
	space   space
	hashes  storedHashes
	count   counters

	memberID atomic.Uint64
}

// head is the state that includes writes which are not durable yet.
type head struct {
	revision  int64
	compacted int64
}

// failure is why a store has stopped.
type failure struct {
	once sync.Once
	ch   chan struct{}
	err  error
}

// fail stops the store for good: after a failed sync nothing is known about
// what the disk holds, so nothing may be served or tried again.
func (s *Store) fail(err error) {
	s.failure.once.Do(func() {
		s.failure.err = err
		s.log.Error("store stopped: a write to the data directory failed for good; check the disk, then start again", "dir", s.opts.Dir, "error", err)
		close(s.failure.ch)
	})
}

// Failed is closed when a write or a sync has failed for good. The process must
// then exit: what the disk holds is known again only after recovery.
func (s *Store) Failed() <-chan struct{} { return s.failure.ch }

// Err tells why Failed was closed, or nil.
func (s *Store) Err() error {
	select {
	case <-s.failure.ch:
		return s.failure.err
	default:
		return nil
	}
}

func (s *Store) stopped() error {
	if err := s.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrStopped, err)
	}
	if s.closed.Load() {
		return ErrStopped
	}
	return nil
}

// readFailed stops the store because something that must be there can not be read, unless
// only Close came first.
func (s *Store) readFailed(err error) error {
	if errors.Is(err, tree.ErrClosed) {
		return ErrStopped
	}
	s.fail(err)
	return err
}

// ID returns the store's identity, 32 hex digits, made when the store was
// created.
func (s *Store) ID() string { return fmt.Sprintf("%x", s.id[:]) }

// Instance is the random number in hex, made when the store was opened, that the directory's lock
// file has too (see vfs.HolderOf).
func (s *Store) Instance() string { return s.instance }

// Term counts the starts of the store: 2 the first time.
func (s *Store) Term() int64 { return s.term }

// Revision returns the newest durable revision.
func (s *Store) Revision() int64 { return s.published.Load() }

// SetMemberID tells the store under which member ID it raises alarms.
func (s *Store) SetMemberID(id uint64) { s.memberID.Store(id) }

// Close moves what is in the log into the tree and closes both. Watch streams
// end; requests in flight are answered, later ones get ErrStopped.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed.Load() {
		s.mu.Unlock()
		return nil
	}
	s.closed.Store(true)
	s.leases.stop()
	s.ckpt.stop()
	s.mu.Unlock()

	s.hub.close()
	err := s.flushAll()
	s.compact.wait()
	if err == nil && s.Err() == nil {
		err = s.Checkpoint(context.Background())
		if errors.Is(err, ErrNoSpace) {
			s.log.Warn("the last checkpoint was not made for lack of space: the log keeps what it holds", "error", err)
			err = nil
		}
	}
	return errors.Join(err, s.closeFiles())
}

func (s *Store) closeFiles() error {
	var errs []error
	if s.wal != nil {
		errs = append(errs, s.wal.Close())
	}
	if s.tree != nil {
		errs = append(errs, s.tree.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

// now is the clock of leases; it is monotonic.
func now() time.Time { return time.Now() }
