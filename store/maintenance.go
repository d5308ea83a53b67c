package store

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/vfs"
)

// Snapshot is a consistent image of the store as one file in etcd's format.
type Snapshot struct{ image *tree.Snapshot }

// Snapshot takes an image that holds everything that was published before the call. Writes
// go on meanwhile. It must be closed.
func (s *Store) Snapshot(ctx context.Context) (*Snapshot, error) {
	if err := s.Checkpoint(ctx); err != nil {
		return nil, err
	}
	image, err := s.tree.Snapshot()
	if err != nil {
		return nil, err
	}
	return &Snapshot{image}, nil
}

// Size returns the size of the file in bytes, a multiple of 512.
func (sn *Snapshot) Size() int64 { return sn.image.Size() }

// WriteTo writes the file.
func (sn *Snapshot) WriteTo(w io.Writer) (int64, error) { return sn.image.WriteTo(w) }

// Close ends the snapshot.
func (sn *Snapshot) Close() error { return sn.image.Close() }

// Defragment gives the free space of the file back to the file system. Reads and writes go
// on meanwhile: they are kept in the log until the new file has taken the place of the old one.
func (s *Store) Defragment(ctx context.Context) error {
	s.ckpt.mu.Lock()
	err := s.checkpointLocked()
	if err == nil {
		err = s.tree.Defragment(ctx)
	}
	if vfs.IsNoSpace(err) {
		err = fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	s.ckpt.mu.Unlock()
	s.clearAlarmIfRoom()
	return err
}

// Status is a picture of a store's state.
type Status struct {
	Revision, CompactRevision int64  // CompactRevision is -1 if never compacted
	Index                     uint64 // number of the newest batch in the log
	Size                      int64  // bytes of the tree's file
	Allocated                 int64  // bytes of disk space that it takes
	InUse                     int64  // bytes that count against the quota
	Quota                     int64  // bytes, negative: none
	Keys                      int64  // live keys
	Leases                    int
	Watchers, SlowWatchers    int
	Streams                   int
	PendingEvents             int // queued for clients that have not read them yet
	TailBytes, WALBytes       int64
	OpenReads                 int // pinned revisions and open read transactions
}

// Status returns the store's state.
func (s *Store) Status() Status {
	st := Status{
		Revision:        s.published.Load(),
		CompactRevision: s.compacted.Load(),
		Index:           s.wal.LastSeq(),
		Size:            s.tree.Size(),
		Allocated:       s.tree.Allocated(),
		InUse:           s.inUse(),
		Quota:           s.opts.Quota,
		Leases:          s.leases.count(),
		TailBytes:       s.mem.tailBytes.Load(),
		WALBytes:        s.wal.Size(),
		OpenReads:       s.pins.count() + s.tree.OpenReads(),
	}
	st.Keys = s.keys()
	s.hub.sizes(&st)
	return st
}

// keys is the number of live keys.
func (s *Store) keys() int64 {
	s.mem.mu.RLock()
	defer s.mem.mu.RUnlock()
	return s.mem.index.sumOf(span{open: true}).live
}

// Counters count what a store has done since it was opened.
type Counters struct {
	Puts, Deletes, Txns, Ranges                                uint64
	Events, PutBytes                                           uint64
	LeasesGranted, LeasesRevoked, LeasesRenewed, LeasesExpired uint64
	Compactions, CompactedRecords, Checkpoints                 uint64
	ProgressRequested, ProgressAnswered, ProgressDropped       uint64
	ProgressPeriodic                                           uint64
	WatchesCanceledByCompaction                                uint64
	BytesGivenBack                                             uint64 // of the tree's file, to the file system
}

// counters are added to with atomic operations.
type counters struct{ Counters }

// Counters returns the counters.
func (s *Store) Counters() Counters {
	c := &s.count.Counters
	var out Counters
	for _, p := range []struct{ to, from *uint64 }{
		{&out.Puts, &c.Puts}, {&out.Deletes, &c.Deletes}, {&out.Txns, &c.Txns}, {&out.Ranges, &c.Ranges},
		{&out.Events, &c.Events}, {&out.PutBytes, &c.PutBytes},
		{&out.LeasesGranted, &c.LeasesGranted}, {&out.LeasesRevoked, &c.LeasesRevoked},
		{&out.LeasesRenewed, &c.LeasesRenewed}, {&out.LeasesExpired, &c.LeasesExpired},
		{&out.Compactions, &c.Compactions}, {&out.CompactedRecords, &c.CompactedRecords}, {&out.Checkpoints, &c.Checkpoints},
		{&out.ProgressRequested, &c.ProgressRequested}, {&out.ProgressAnswered, &c.ProgressAnswered},
		{&out.ProgressDropped, &c.ProgressDropped}, {&out.ProgressPeriodic, &c.ProgressPeriodic},
		{&out.WatchesCanceledByCompaction, &c.WatchesCanceledByCompaction},
		{&out.BytesGivenBack, &c.BytesGivenBack},
	} {
		*p.to = atomic.LoadUint64(p.from)
	}
	return out
}
