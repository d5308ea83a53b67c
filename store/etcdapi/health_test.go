package etcdapi

import (
	"errors"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	hpb "google.golang.org/grpc/health/grpc_health_v1"
	rpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
)

func TestHealthService(t *testing.T) {
	s, addr := startServer(t, Config{})
	client := hpb.NewHealthClient(dial(t, addr))
	ctx := testContext(t)
	t.Run("GRPC-16 Check", func(t *testing.T) {
		resp, err := client.Check(ctx, &hpb.HealthCheckRequest{})
		if err != nil || resp.Status != hpb.HealthCheckResponse_SERVING {
			t.Errorf("%v, %v", resp, err)
		}
		_, err = client.Check(ctx, &hpb.HealthCheckRequest{Service: "etcdserverpb.KV"})
		wantStatus(t, err, codes.NotFound, "unknown service")
	})
	t.Run("GRPC-16 List", func(t *testing.T) {
		resp, err := client.List(ctx, &hpb.HealthListRequest{})
		if err != nil || len(resp.Statuses) != 1 || resp.Statuses[""].Status != hpb.HealthCheckResponse_SERVING {
			t.Errorf("%v, %v", resp, err)
		}
	})
	t.Run("Watch", func(t *testing.T) {
		stream, err := client.Watch(ctx, &hpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := stream.Recv()
		if err != nil || resp.Status != hpb.HealthCheckResponse_SERVING {
			t.Fatalf("%v, %v", resp, err)
		}
		if err := s.Stop(testContext(t)); err != nil {
			t.Fatal(err)
		}
		resp, err = stream.Recv()
		if err != nil || resp.Status != hpb.HealthCheckResponse_NOT_SERVING {
			t.Fatalf("at the end: %v, %v", resp, err)
		}
		if _, err = stream.Recv(); status.Code(err) != codes.Unavailable {
			t.Error(err)
		}
	})
}

// TestReflection is GRPC-17. The messages of v1 and v1alpha are the same on the
// wire.
func TestReflection(t *testing.T) {
	_, addr := startServer(t, Config{})
	conn := dial(t, addr)
	desc := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	for _, version := range []string{"v1", "v1alpha"} {
		t.Run("GRPC-17 "+version, func(t *testing.T) {
			stream, err := conn.NewStream(testContext(t), desc, "/grpc.reflection."+version+".ServerReflection/ServerReflectionInfo")
			if err != nil {
				t.Fatal(err)
			}
			ask := func(req *rpb.ServerReflectionRequest) *rpb.ServerReflectionResponse {
				resp := new(rpb.ServerReflectionResponse)
				if err := errors.Join(stream.SendMsg(req), stream.RecvMsg(resp)); err != nil {
					t.Fatal(err)
				}
				return resp
			}
			for _, service := range []string{"etcdserverpb.KV", "etcdserverpb.Watch", "etcdserverpb.Lease", "etcdserverpb.Cluster",
				"etcdserverpb.Maintenance", "etcdserverpb.Auth", "v3lockpb.Lock", "v3electionpb.Election"} {
				resp := ask(&rpb.ServerReflectionRequest{MessageRequest: &rpb.ServerReflectionRequest_FileContainingSymbol{
					FileContainingSymbol: service,
				}})
				if len(resp.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
					t.Errorf("%s: %v", service, resp)
				}
			}
			resp := ask(&rpb.ServerReflectionRequest{MessageRequest: &rpb.ServerReflectionRequest_ListServices{}})
			if n := len(resp.GetListServicesResponse().GetService()); n < 8 {
				t.Errorf("%d services", n)
			}
		})
	}
}
