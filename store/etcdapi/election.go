package etcdapi

import (
	"bytes"
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/tarn-kv/tarn/store/etcdapi/concurrencypb"
)

// electionService is v3electionpb.Election.
type electionService struct {
	concurrencypb.UnimplementedElectionServer
	s *Server
}

func (s *Server) registerElection(r grpc.ServiceRegistrar) {
	concurrencypb.RegisterElectionServer(r, electionService{s: s})
}

// Campaign waits until the lease is the first in the queue for the leadership.
// A lease that is in it already gets the new value at once.
func (e electionService) Campaign(ctx context.Context, r *concurrencypb.CampaignRequest) (*concurrencypb.CampaignResponse, error) {
	c, err := e.s.enter(ctx, r.Name, r.Lease, r.Value)
	if err != nil {
		return nil, toSessionStatus(err)
	}
	if c.before != nil && !bytes.Equal(c.before.Value, r.Value) {
		if _, err := e.s.proclaim(ctx, c.key, c.created, r.Value, c.lease); err != nil {
			c.withdraw(ctx)
			return nil, toSessionStatus(err)
		}
	}
	if !c.first {
		if _, err := c.wait(ctx, errNotLeader); err != nil {
			return nil, toSessionStatus(err)
		}
	}
	return &concurrencypb.CampaignResponse{
		Header: c.header,
		Leader: &concurrencypb.LeaderKey{Name: r.Name, Key: c.key, Rev: c.created, Lease: c.lease},
	}, nil
}

// Proclaim gives the leader's key a new value.
func (e electionService) Proclaim(ctx context.Context, r *concurrencypb.ProclaimRequest) (*concurrencypb.ProclaimResponse, error) {
	if r.Leader == nil {
		return nil, errMissingLeader
	}
	lease, err := e.s.session(ctx, r.Leader.Lease)
	if err != nil {
		return nil, toSessionStatus(err)
	}
	header, err := e.s.proclaim(ctx, r.Leader.Key, r.Leader.Rev, r.Value, lease)
	if err != nil {
		return nil, toSessionStatus(err)
	}
	return &concurrencypb.ProclaimResponse{Header: header}, nil
}

func (s *Server) proclaim(ctx context.Context, key []byte, created int64, value []byte, lease int64) (*pb.ResponseHeader, error) {
	resp, err := s.inner().txn(ctx, &pb.TxnRequest{
		Compare: createdAt(key, created), Success: []*pb.RequestOp{thenPut(&pb.PutRequest{Key: key, Value: value, Lease: lease})},
	})
	if err != nil {
		return nil, err
	}
	if !resp.Succeeded {
		return nil, errNotLeader
	}
	return resp.Header, nil
}

// Leader returns the first key in the queue.
func (e electionService) Leader(ctx context.Context, r *concurrencypb.LeaderRequest) (*concurrencypb.LeaderResponse, error) {
	resp, err := e.s.inner().get(ctx, firstOf(queuePrefix(r.Name)))
	if err != nil {
		return nil, toSessionStatus(err)
	}
	if len(resp.Kvs) == 0 {
		return nil, errNoLeader
	}
	return &concurrencypb.LeaderResponse{Header: resp.Header, Kv: resp.Kvs[0]}, nil
}

// Resign deletes the leader's key. That somebody else has the leadership is not
// an error.
func (e electionService) Resign(ctx context.Context, r *concurrencypb.ResignRequest) (*concurrencypb.ResignResponse, error) {
	if r.Leader == nil {
		return nil, errMissingLeader
	}
	resp, err := e.s.inner().txn(ctx, &pb.TxnRequest{
		Compare: createdAt(r.Leader.Key, r.Leader.Rev),
		Success: []*pb.RequestOp{thenDelete(&pb.DeleteRangeRequest{Key: r.Leader.Key})},
	})
	if err != nil {
		return nil, toSessionStatus(err)
	}
	return &concurrencypb.ResignResponse{Header: resp.Header}, nil
}
