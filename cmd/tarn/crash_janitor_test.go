package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// granted and what follows note what a client was told of a lease.
func (h *crashHistory) granted(l *crashLease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leases[l.id] = l
	h.note(crashRecord{what: crashGranted, lease: l})
}

func (h *crashHistory) renewed(l *crashLease, sent time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.renewed = sent
	h.renewals++
	h.note(crashRecord{what: crashRenewed, lease: l})
}

// alive returns the leases that the last comparison has found.
func (h *crashHistory) alive(leases []*crashLease) []*crashLease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(leases), func(l *crashLease) bool { return h.leases[l.id] != l })
}

func (h *crashHistory) compacting(rev int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.floorTried = max(h.floorTried, rev)
	h.note(crashRecord{what: crashCompacting, rev: rev})
}

func (h *crashHistory) compactedTo(rev int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.floor = max(h.floor, rev)
	h.compactions++
	h.note(crashRecord{what: crashCompacted, rev: rev})
}

// crashJanitor compacts what all watches have seen, and defragments.
type crashJanitor struct {
	hist    *crashHistory
	watches []*crashWatch
	rnd     *rand.Rand
}

func (j *crashJanitor) run(ctx context.Context, conn *grpc.ClientConn) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(5+j.rnd.IntN(100)) * time.Millisecond):
		}
		if err := j.step(ctx, conn); unanswered(err) {
			return nil
		} else if err != nil {
			return fmt.Errorf("compaction and defragmentation: %w", err)
		}
	}
}

func (j *crashJanitor) step(ctx context.Context, conn *grpc.ClientConn) error {
	if j.rnd.IntN(4) == 0 {
		_, err := etcdserverpb.NewMaintenanceClient(conn).Defragment(ctx, &etcdserverpb.DefragmentRequest{})
		return err
	}
	rev := j.watches[0].revision()
	for _, w := range j.watches[1:] {
		rev = min(rev, w.revision())
	}
	if rev <= j.hist.floorTried {
		return nil
	}
	j.hist.compacting(rev)
	_, err := etcdserverpb.NewKVClient(conn).Compact(ctx, &etcdserverpb.CompactionRequest{Revision: rev, Physical: j.rnd.IntN(3) == 0})
	if err != nil {
		return err
	}
	j.hist.compactedTo(rev)
	return nil
}
