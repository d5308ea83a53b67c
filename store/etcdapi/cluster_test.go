package etcdapi

import (
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
)

func TestCluster(t *testing.T) {
	urls := []string{"https://10.0.0.1:2379"}
	a := newAdminTest(t, Config{ClientURLs: urls})
	a.put("a", "1")
	id := a.s.memberID
	t.Run("CLU-1 CLU-2 HDR-4", func(t *testing.T) {
		for _, linearizable := range []bool{false, true} {
			resp, err := a.cluster.MemberList(a.ctx, &pb.MemberListRequest{Linearizable: linearizable})
			if err != nil || len(resp.Members) != 1 {
				t.Fatalf("%v, %v", resp, err)
			}
			m, h := resp.Members[0], resp.Header
			if m.ID != id || m.Name != "default" || m.IsLearner || !slices.Equal(m.ClientURLs, urls) || !slices.Equal(m.PeerURLs, []string{"http://localhost:2380"}) {
				t.Error(m)
			}
			if h.Revision != 0 || h.MemberId != id || h.ClusterId != a.s.clusterID || h.RaftTerm != 2 {
				t.Error(h)
			}
		}
	})
	const (
		badURLs = "etcdserver: given member URLs are invalid"
		few     = "etcdserver: re-configuration failed due to not enough started members"
		unknown = "etcdserver: member not found"
	)
	for _, c := range []struct {
		name string
		urls []string
		code codes.Code
		text string
	}{
		{"CLU-3 none", nil, codes.InvalidArgument, badURLs},
		{"CLU-3 bad", []string{"nonsense"}, codes.InvalidArgument, badURLs},
		{"CLU-3 no port", []string{"http://10.0.0.2"}, codes.InvalidArgument, badURLs},
		{"CLU-3 path", []string{"http://10.0.0.2:2380/x"}, codes.InvalidArgument, badURLs},
		{"CLU-4", []string{"http://localhost:2380"}, codes.FailedPrecondition, "etcdserver: Peer URLs already exists"},
		{"CLU-5", []string{"http://10.0.0.2:2380"}, codes.FailedPrecondition, few},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := a.cluster.MemberAdd(a.ctx, &pb.MemberAddRequest{PeerURLs: c.urls})
			wantStatus(t, err, c.code, c.text)
		})
	}
	t.Run("CLU-6 V-17", func(t *testing.T) {
		_, err := a.cluster.MemberRemove(a.ctx, &pb.MemberRemoveRequest{ID: 4711})
		wantStatus(t, err, codes.NotFound, unknown)
		_, err = a.cluster.MemberRemove(a.ctx, &pb.MemberRemoveRequest{ID: id})
		wantStatus(t, err, codes.FailedPrecondition, few)
	})
	t.Run("CLU-7", func(t *testing.T) {
		_, err := a.cluster.MemberPromote(a.ctx, &pb.MemberPromoteRequest{ID: 4711})
		wantStatus(t, err, codes.NotFound, unknown)
		_, err = a.cluster.MemberPromote(a.ctx, &pb.MemberPromoteRequest{ID: id})
		wantStatus(t, err, codes.FailedPrecondition, "etcdserver: can only promote a learner member")
	})
	t.Run("CLU-8 V-9", func(t *testing.T) {
		good := []string{"http://10.0.0.9:2380"}
		_, err := a.cluster.MemberUpdate(a.ctx, &pb.MemberUpdateRequest{ID: 4711, PeerURLs: good})
		wantStatus(t, err, codes.NotFound, unknown)
		_, err = a.cluster.MemberUpdate(a.ctx, &pb.MemberUpdateRequest{ID: id, PeerURLs: []string{"nonsense"}})
		wantStatus(t, err, codes.InvalidArgument, badURLs)
		resp, err := a.cluster.MemberUpdate(a.ctx, &pb.MemberUpdateRequest{ID: id, PeerURLs: good})
		if err != nil || resp.Members[0].ID != id || resp.Members[0].PeerURLs[0] != "http://localhost:2380" {
			t.Errorf("%v, %v", resp, err)
		}
	})
}
