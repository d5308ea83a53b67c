package etcdapi

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tarn-kv/tarn/store"
)

// leaseTest is a client of a server with an empty store.
type leaseTest struct {
	t   *testing.T
	ctx context.Context
	s   *Server
	pb.LeaseClient
	kv pb.KVClient
}

func newLeaseTest(t *testing.T) *leaseTest {
	t.Helper()
	s, addr := startServer(t, Config{})
	conn := dial(t, addr)
	return &leaseTest{t: t, ctx: testContext(t), s: s, LeaseClient: pb.NewLeaseClient(conn), kv: pb.NewKVClient(conn)}
}

func (l *leaseTest) grant(id, ttl int64) *pb.LeaseGrantResponse {
	l.t.Helper()
	resp, err := l.LeaseGrant(l.ctx, &pb.LeaseGrantRequest{ID: id, TTL: ttl})
	if err != nil {
		l.t.Fatal(err)
	}
	return resp
}

func (l *leaseTest) put(key string, lease int64) *pb.PutResponse {
	l.t.Helper()
	resp, err := l.kv.Put(l.ctx, &pb.PutRequest{Key: []byte(key), Value: []byte("v"), Lease: lease})
	if err != nil {
		l.t.Fatal(err)
	}
	return resp
}

func (l *leaseTest) keys(id int64) []string {
	l.t.Helper()
	resp, err := l.LeaseTimeToLive(l.ctx, &pb.LeaseTimeToLiveRequest{ID: id, Keys: true})
	if err != nil {
		l.t.Fatal(err)
	}
	var keys []string
	for _, k := range resp.Keys {
		keys = append(keys, string(k))
	}
	slices.Sort(keys)
	return keys
}

func TestLeaseGrant(t *testing.T) {
	l := newLeaseTest(t)
	t.Run("LSE-1 HDR-1", func(t *testing.T) {
		resp := l.grant(0, 60)
		h := resp.Header
		if resp.ID <= 0 || resp.Error != "" || h.ClusterId != l.s.clusterID || h.MemberId != l.s.memberID || h.RaftTerm != l.s.term || h.Revision != 1 {
			t.Error(resp)
		}
		if resp := l.grant(-77, 60); resp.ID != -77 {
			t.Error(resp)
		}
		_, err := l.LeaseGrant(l.ctx, &pb.LeaseGrantRequest{ID: -77, TTL: 60})
		wantStatus(t, err, codes.FailedPrecondition, "etcdserver: lease already exists")
	})
	t.Run("LSE-2", func(t *testing.T) {
		for ttl, want := range map[int64]int64{0: 2, -10: 2, 1: 2, 2: 2, 3: 3, 9_000_000_000: 9_000_000_000} {
			if got := l.grant(0, ttl).TTL; got != want {
				t.Errorf("TTL %d became %d", ttl, got)
			}
		}
		_, err := l.LeaseGrant(l.ctx, &pb.LeaseGrantRequest{TTL: 9_000_000_001})
		wantStatus(t, err, codes.OutOfRange, "etcdserver: too large lease TTL")
	})
	t.Run("LSE-3", func(t *testing.T) {
		a := store.Alarm{MemberID: l.s.memberID, Type: store.NoSpace}
		if err := l.s.store.AlarmActivate(l.ctx, a); err != nil {
			t.Fatal(err)
		}
		_, err := l.LeaseGrant(l.ctx, &pb.LeaseGrantRequest{TTL: 60})
		wantStatus(t, err, codes.ResourceExhausted, "etcdserver: mvcc: database space exceeded")
		if _, err := l.s.store.AlarmDeactivate(l.ctx, a); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLeaseKeys(t *testing.T) {
	l := newLeaseTest(t)
	l.grant(1234, 60)
	l.grant(1235, 60)
	l.put("L/b", 1234)
	l.put("L/a", 1234)
	t.Run("LSE-8", func(t *testing.T) {
		resp, err := l.LeaseTimeToLive(l.ctx, &pb.LeaseTimeToLiveRequest{ID: 1234})
		if err != nil || resp.TTL > 60 || resp.TTL < 1 || resp.GrantedTTL != 60 || len(resp.Keys) != 0 || resp.Header.Revision != 3 {
			t.Errorf("%v, %v", resp, err)
		}
		resp, err = l.LeaseTimeToLive(l.ctx, &pb.LeaseTimeToLiveRequest{ID: 99, Keys: true})
		if err != nil || resp.ID != 99 || resp.TTL != -1 || resp.GrantedTTL != 0 {
			t.Errorf("unknown: %v, %v", resp, err)
		}
	})
	t.Run("LSE-12", func(t *testing.T) {
		if got := l.keys(1234); !slices.Equal(got, []string{"L/a", "L/b"}) {
			t.Error(got)
		}
		l.put("L/a", 0)
		l.put("L/b", 1235)
		if first, second := l.keys(1234), l.keys(1235); len(first) != 0 || !slices.Equal(second, []string{"L/b"}) {
			t.Errorf("%v and %v", first, second)
		}
		_, err := l.kv.Put(l.ctx, &pb.PutRequest{Key: []byte("L/c"), Lease: 99})
		wantStatus(t, err, codes.NotFound, "etcdserver: requested lease not found")
	})
	t.Run("LSE-9", func(t *testing.T) {
		l.grant(7, 30)
		resp, err := l.LeaseLeases(l.ctx, &pb.LeaseLeasesRequest{})
		if err != nil || len(resp.Leases) != 3 || resp.Leases[0].ID != 7 {
			t.Errorf("%v, %v", resp, err)
		}
	})
}

func TestLeaseRevoke(t *testing.T) {
	l := newLeaseTest(t)
	l.grant(5, 60)
	for _, k := range []string{"l/3", "l/1", "l/2"} {
		l.put(k, 5)
	}
	t.Run("LSE-4", func(t *testing.T) {
		resp, err := l.LeaseRevoke(l.ctx, &pb.LeaseRevokeRequest{ID: 5})
		if err != nil || resp.Header.Revision != 5 {
			t.Fatalf("%v, %v", resp, err)
		}
		all, err := l.kv.Range(l.ctx, &pb.RangeRequest{Key: []byte("l/"), RangeEnd: []byte("l0")})
		if err != nil || all.Count != 0 || all.Header.Revision != 5 {
			t.Errorf("%v, %v", all, err)
		}
		_, err = l.LeaseRevoke(l.ctx, &pb.LeaseRevokeRequest{ID: 5})
		wantStatus(t, err, codes.NotFound, "etcdserver: requested lease not found")
	})
	t.Run("REV-4 without keys", func(t *testing.T) {
		l.grant(6, 60)
		resp, err := l.LeaseRevoke(l.ctx, &pb.LeaseRevokeRequest{ID: 6})
		if err != nil || resp.Header.Revision != 5 {
			t.Errorf("%v, %v", resp, err)
		}
	})
}

func TestLeaseKeepAlive(t *testing.T) {
	l := newLeaseTest(t)
	l.grant(50, 100)
	l.put("a", 50)
	t.Run("LSE-5 LSE-7", func(t *testing.T) {
		stream, err := l.LeaseKeepAlive(l.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []int64{50, 777, 50} {
			if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		for _, want := range [][2]int64{{50, 100}, {777, 0}, {50, 100}} {
			resp, err := stream.Recv()
			if err != nil || resp.ID != want[0] || resp.TTL != want[1] || resp.Header.Revision != 2 {
				t.Errorf("want %v, got %v, %v", want, resp, err)
			}
		}
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("after the half-close: %v", err)
		}
	})
	t.Run("canceled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(l.ctx)
		stream, err := l.LeaseKeepAlive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := stream.Recv(); status.Code(err) != codes.Canceled {
			t.Error(err)
		}
	})
}
