package main

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// hash returns the hash of all keys and their history at a revision.
func (s *server) hash(ctx context.Context, revision int64) (uint32, error) {
	conn, err := dial(s.address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	r, err := pb.NewMaintenanceClient(conn).HashKV(ctx, &pb.HashKVRequest{Revision: revision})
	if err != nil {
		return 0, fmt.Errorf("hash of all keys at revision %d: %w", revision, err)
	}
	return r.Hash, nil
}
