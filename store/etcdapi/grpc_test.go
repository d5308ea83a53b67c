package etcdapi

import (
	"context"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tarn-kv/tarn/store"
)

func TestLargeMessages(t *testing.T) {
	_, addr := startServer(t, Config{})
	client := etcdserverpb.NewClusterClient(dial(t, addr))
	t.Run("GRPC-1", func(t *testing.T) {
		req := &etcdserverpb.MemberAddRequest{PeerURLs: []string{strings.Repeat("x", 3<<20)}}
		_, err := client.MemberAdd(testContext(t), req)
		if st := status.Convert(err); st.Code() != codes.ResourceExhausted || !strings.Contains(st.Message(), "received message larger than max (") || !strings.Contains(st.Message(), " vs. 2097152)") {
			t.Error(err)
		}
	})
	t.Run("GRPC-1 below", func(t *testing.T) {
		req := &etcdserverpb.MemberAddRequest{PeerURLs: []string{strings.Repeat("x", 2_097_152-100)}}
		_, err := client.MemberAdd(testContext(t), req)
		wantStatus(t, err, codes.InvalidArgument, "etcdserver: given member URLs are invalid")
	})
}

func TestInterceptors(t *testing.T) {
	s, addr := startServer(t, Config{})
	const method = "/etcdserverpb.Lease/LeaseLeases"
	call := func(ctx context.Context, h grpc.UnaryHandler) error {
		_, err := s.interceptUnary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: method}, h)
		return err
	}
	t.Run("panic", func(t *testing.T) {
		err := call(testContext(t), func(context.Context, any) (any, error) { panic("broken") })
		if status.Code(err) != codes.Internal {
			t.Error(err)
		}
		if n := s.calls.methods[method].handled[codes.Internal].Load(); n != 1 {
			t.Errorf("counted %d", n)
		}
		if n := s.calls.unary.Load(); n != 0 {
			t.Errorf("%d calls in flight", n)
		}
	})
	t.Run("panic in the store", func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("the server goes on with a store in an unknown state")
			}
		}()
		call(testContext(t), func(context.Context, any) (any, error) {
			var none *store.Store
			return none.Status(), nil
		})
	})
	t.Run("GRPC-10 client-api-version", func(t *testing.T) {
		ok := func(context.Context, any) (any, error) { return nil, nil }
		ctx := metadata.NewIncomingContext(testContext(t), metadata.Pairs(clientVersionKey, "3.\xff"))
		wantStatus(t, call(ctx, ok), codes.InvalidArgument, "etcdserver: invalid client api version")
		ctx = metadata.NewIncomingContext(testContext(t), metadata.Pairs(clientVersionKey, "3.7"))
		if err := call(ctx, ok); err != nil {
			t.Error(err)
		}
		if n := s.calls.versions[clientKind{"unary", "3.7"}].Load(); n != 1 {
			t.Errorf("counted %d", n)
		}
		for i := range 3 * maxClientVersions {
			v := strings.Repeat("v", i+1)
			if err := call(metadata.NewIncomingContext(testContext(t), metadata.Pairs(clientVersionKey, v)), ok); err != nil {
				t.Error(err)
			}
		}
		if n := len(s.calls.versions); n > maxClientVersions+2 {
			t.Errorf("clients made %d label values", n)
		}
	})
	t.Run("GRPC-10 hasleader AUT-1 token", func(t *testing.T) {
		ctx := metadata.AppendToOutgoingContext(testContext(t), "hasleader", "true", "token", "abc.1", "authorization", "Bearer x")
		if _, err := etcdserverpb.NewLeaseClient(dial(t, addr)).LeaseLeases(ctx, &etcdserverpb.LeaseLeasesRequest{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("GRPC-15 unknown", func(t *testing.T) {
		conn := dial(t, addr)
		err := conn.Invoke(testContext(t), "/etcdserverpb.KV/Nope", &etcdserverpb.StatusRequest{}, &etcdserverpb.StatusResponse{})
		wantStatus(t, err, codes.Unimplemented, "unknown method Nope for service etcdserverpb.KV")
	})
	t.Run("GRPC-15 registered", func(t *testing.T) {
		services := s.grpc.GetServiceInfo()
		for _, name := range []string{"etcdserverpb.KV", "etcdserverpb.Watch", "etcdserverpb.Lease", "etcdserverpb.Cluster",
			"etcdserverpb.Maintenance", "etcdserverpb.Auth", "v3lockpb.Lock", "v3electionpb.Election"} {
			if _, ok := services[name]; !ok {
				t.Errorf("no service %s", name)
			}
		}
	})
}
