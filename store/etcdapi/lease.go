package etcdapi

import (
	"context"
	"errors"
	"io"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// leaseService is etcdserverpb.Lease.
type leaseService struct {
	etcdserverpb.UnimplementedLeaseServer
	s *Server
}

func (l leaseService) LeaseGrant(ctx context.Context, r *etcdserverpb.LeaseGrantRequest) (*etcdserverpb.LeaseGrantResponse, error) {
	if err := l.s.requireUser(ctx); err != nil {
		return nil, err
	}
	lease, err := l.s.store.LeaseGrant(ctx, r.ID, r.TTL)
	if err != nil {
		return nil, toStatus(err)
	}
	return &etcdserverpb.LeaseGrantResponse{Header: l.s.header(lease.Revision), ID: lease.ID, TTL: lease.TTL}, nil
}

func (l leaseService) LeaseRevoke(ctx context.Context, r *etcdserverpb.LeaseRevokeRequest) (*etcdserverpb.LeaseRevokeResponse, error) {
	revision, err := l.s.store.LeaseRevoke(ctx, r.ID)
	if err != nil {
		return nil, toStatus(err)
	}
	return &etcdserverpb.LeaseRevokeResponse{Header: l.s.header(revision)}, nil
}

// LeaseTimeToLive shows the keys to those who may read them all (AUT-16).
func (l leaseService) LeaseTimeToLive(ctx context.Context, r *etcdserverpb.LeaseTimeToLiveRequest) (*etcdserverpb.LeaseTimeToLiveResponse, error) {
	if err := l.s.requireUser(ctx); err != nil {
		return nil, err
	}
	info, ok := l.s.store.LeaseTimeToLive(r.ID, r.Keys)
	if err := l.s.store.PermitLeaseKeys(ctx, info.Keys); err != nil {
		return nil, toStatus(err)
	}
	resp := &etcdserverpb.LeaseTimeToLiveResponse{Header: l.s.currentHeader(), ID: r.ID, TTL: -1}
	if !ok {
		return resp, nil // unknown is TTL −1, not an error (LSE-8)
	}
	resp.TTL, resp.GrantedTTL = info.TTL, info.Granted
	for _, k := range info.Keys {
		resp.Keys = append(resp.Keys, []byte(k))
	}
	return resp, nil
}

func (l leaseService) LeaseLeases(ctx context.Context, _ *etcdserverpb.LeaseLeasesRequest) (*etcdserverpb.LeaseLeasesResponse, error) {
	ids := l.s.store.Leases()
	if err := l.s.store.PermitLeaseList(ctx); err != nil {
		return nil, toStatus(err)
	}
	resp := &etcdserverpb.LeaseLeasesResponse{Header: l.s.currentHeader(), Leases: make([]*etcdserverpb.LeaseStatus, len(ids))}
	for i, id := range ids {
		resp.Leases[i] = &etcdserverpb.LeaseStatus{ID: id}
	}
	return resp, nil
}

type keepAliveStream = grpc.BidiStreamingServer[etcdserverpb.LeaseKeepAliveRequest, etcdserverpb.LeaseKeepAliveResponse]

// received is one result of a stream's Recv.
type received[T any] struct {
	msg T
	err error
}

// LeaseKeepAlive gives one answer per request, in order (LSE-5).
func (l leaseService) LeaseKeepAlive(stream keepAliveStream) error {
	requests := receive(stream.Context(), stream.Recv)
	for {
		select {
		case <-l.s.stop:
			return errStopped
		case r := <-requests:
			if errors.Is(r.err, io.EOF) {
				return nil // half-closed: everything before is answered (LSE-7)
			}
			if r.err != nil {
				return r.err
			}
			if err := l.keepAlive(stream, r.msg.ID); err != nil {
				return err
			}
		}
	}
}

func (l leaseService) keepAlive(stream keepAliveStream, id int64) error {
	header := l.s.currentHeader() // from before the renewal (LSE-6)
	ctx, err := l.s.identified(stream.Context())
	if err != nil {
		return err
	}
	if err := l.s.store.PermitKeepAlive(ctx, id); err != nil {
		return toStatus(err)
	}
	ttl, err := l.s.store.LeaseKeepAlive(ctx, id)
	if err != nil {
		return toStatus(err)
	}
	return stream.Send(&etcdserverpb.LeaseKeepAliveResponse{Header: header, ID: id, TTL: ttl})
}

// receive calls recv until it fails and passes on what it returned. The
// goroutine ends when the stream has ended, which is when its handler returns.
func receive[T any](ctx context.Context, recv func() (T, error)) <-chan received[T] {
	out := make(chan received[T])
	go func() {
		for {
			msg, err := recv()
			select {
			case out <- received[T]{msg, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return out
}
