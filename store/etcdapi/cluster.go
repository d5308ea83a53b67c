package etcdapi

import (
	"context"
	"net"
	"net/url"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// clusterService is etcdserverpb.Cluster for the one member there is. Headers
// have no revision (HDR-4).
type clusterService struct {
	etcdserverpb.UnimplementedClusterServer
	s *Server
}

func (c clusterService) peerURLs() []string { return strings.Split(c.s.cfg.PeerURL, ",") }

func (c clusterService) members() []*etcdserverpb.Member {
	return []*etcdserverpb.Member{{
		ID:         c.s.memberID,
		Name:       c.s.cfg.Name,
		PeerURLs:   c.peerURLs(),
		ClientURLs: c.s.cfg.ClientURLs,
	}}
}

func (c clusterService) MemberList(ctx context.Context, _ *etcdserverpb.MemberListRequest) (*etcdserverpb.MemberListResponse, error) {
	if err := c.s.requireUser(ctx); err != nil {
		return nil, err
	}
	return &etcdserverpb.MemberListResponse{Header: c.s.header(0), Members: c.members()}, nil
}

// MemberAdd always fails. etcd would accept a second member and then wait for it
// with every write (CLU-5).
func (c clusterService) MemberAdd(ctx context.Context, r *etcdserverpb.MemberAddRequest) (*etcdserverpb.MemberAddResponse, error) {
	if err := c.s.requireAdmin(ctx); err != nil {
		return nil, err
	}
	if !validPeerURLs(r.PeerURLs) {
		return nil, rpctypes.ErrGRPCMemberBadURLs
	}
	for _, u := range c.peerURLs() {
		if slices.Contains(r.PeerURLs, u) {
			return nil, rpctypes.ErrGRPCPeerURLExist
		}
	}
	return nil, rpctypes.ErrGRPCMemberNotEnoughStarted
}

// MemberRemove never removes the last member (V-17).
func (c clusterService) MemberRemove(ctx context.Context, r *etcdserverpb.MemberRemoveRequest) (*etcdserverpb.MemberRemoveResponse, error) {
	if err := c.s.requireAdmin(ctx); err != nil {
		return nil, err
	}
	if r.ID != c.s.memberID {
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	return nil, rpctypes.ErrGRPCMemberNotEnoughStarted
}

// MemberUpdate accepts good URLs and keeps the member as it is: there is no peer
// port, and the member's ID is made from its URL (V-9).
func (c clusterService) MemberUpdate(ctx context.Context, r *etcdserverpb.MemberUpdateRequest) (*etcdserverpb.MemberUpdateResponse, error) {
	if err := c.s.requireAdmin(ctx); err != nil {
		return nil, err
	}
	switch {
	case r.ID != c.s.memberID:
		return nil, rpctypes.ErrGRPCMemberNotFound
	case !validPeerURLs(r.PeerURLs):
		return nil, rpctypes.ErrGRPCMemberBadURLs
	}
	return &etcdserverpb.MemberUpdateResponse{Header: c.s.header(0), Members: c.members()}, nil
}

func (c clusterService) MemberPromote(ctx context.Context, r *etcdserverpb.MemberPromoteRequest) (*etcdserverpb.MemberPromoteResponse, error) {
	if err := c.s.requireAdmin(ctx); err != nil {
		return nil, err
	}
	if r.ID != c.s.memberID {
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	return nil, rpctypes.ErrGRPCMemberNotLearner
}

// validPeerURLs is etcd's rule: at least one; http or https with host and port
// and no path, or a socket.
func validPeerURLs(urls []string) bool {
	for _, raw := range urls {
		u, err := url.Parse(raw)
		if err != nil {
			return false
		}
		switch u.Scheme {
		case "http", "https":
			if _, _, err := net.SplitHostPort(u.Host); err != nil || u.Path != "" {
				return false
			}
		case "unix", "unixs":
		default:
			return false
		}
	}
	return len(urls) > 0
}
