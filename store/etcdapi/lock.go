package etcdapi

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/tarn-kv/tarn/store/etcdapi/concurrencypb"
)

// lockService is v3lockpb.Lock.
type lockService struct {
	concurrencypb.UnimplementedLockServer
	s *Server
}

func (s *Server) registerLock(r grpc.ServiceRegistrar) {
	concurrencypb.RegisterLockServer(r, lockService{s: s})
}

// Lock waits until the lease is the first in the queue for the lock.
func (l lockService) Lock(ctx context.Context, r *concurrencypb.LockRequest) (*concurrencypb.LockResponse, error) {
	e, err := l.s.enter(ctx, r.Name, r.Lease, nil)
	if err != nil {
		return nil, toSessionStatus(err)
	}
	if !e.first {
		if e.header, err = e.wait(ctx, errSessionExpired); err != nil {
			return nil, toSessionStatus(err)
		}
	}
	return &concurrencypb.LockResponse{Header: e.header, Key: e.key}, nil
}

// Unlock deletes a key, whatever it is.
func (l lockService) Unlock(ctx context.Context, r *concurrencypb.UnlockRequest) (*concurrencypb.UnlockResponse, error) {
	resp, err := l.s.inner().delete(ctx, &pb.DeleteRangeRequest{Key: r.Key})
	if err != nil {
		return nil, toSessionStatus(err)
	}
	return &concurrencypb.UnlockResponse{Header: resp.Header}, nil
}
