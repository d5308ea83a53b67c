package etcdapi

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/mem"
)

// manyRevisions are so many that to compact them takes a while.
const manyRevisions = 10_000

// Compact answers when the new floor is durable, and with physical set when the
// records below it are gone.
func (k *kvService) Compact(ctx context.Context, req *pb.CompactionRequest) (raw, error) {
	if err := k.s.requireAdmin(ctx); err != nil {
		return nil, err
	}
	if req.Revision-k.s.store.Status().CompactRevision >= manyRevisions {
		k.s.procs.widen() // other requests would wait while it has the one processor
	}
	current, err := k.s.store.Compact(ctx, req.Revision, req.Physical)
	if err != nil {
		return nil, err
	}
	return raw{mem.SliceBuffer(k.s.head(current).append(nil))}, nil
}
