package etcdapi

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// healthService is grpc.health.v1 for the server as a whole, named "". A server
// that answers is serving, so nothing has to be kept (GRPC-16).
type healthService struct {
	grpc_health_v1.UnimplementedHealthServer
	s *Server
}

func (h healthService) now() *grpc_health_v1.HealthCheckResponse {
	st := grpc_health_v1.HealthCheckResponse_SERVING
	if h.s.stopping() {
		st = grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	return &grpc_health_v1.HealthCheckResponse{Status: st}
}

func (h healthService) Check(_ context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	if r.Service != "" {
		return nil, status.Error(codes.NotFound, "unknown service")
	}
	return h.now(), nil
}

func (h healthService) List(context.Context, *grpc_health_v1.HealthListRequest) (*grpc_health_v1.HealthListResponse, error) {
	return &grpc_health_v1.HealthListResponse{
		Statuses: map[string]*grpc_health_v1.HealthCheckResponse{"": h.now()},
	}, nil
}

// Watch sends the status and again when it changes, which is once, at the end.
func (h healthService) Watch(r *grpc_health_v1.HealthCheckRequest, stream grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	if r.Service != "" {
		unknown := &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN}
		if err := stream.Send(unknown); err != nil {
			return err
		}
	} else if err := stream.Send(h.now()); err != nil {
		return err
	}
	select {
	case <-stream.Context().Done():
		return status.FromContextError(stream.Context().Err()).Err()
	case <-h.s.stop:
		if r.Service == "" {
			if err := stream.Send(h.now()); err != nil {
				return err
			}
		}
		return errStopped
	}
}
