package etcdapi

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1alpha"

	"github.com/tarn-kv/tarn/store/etcdapi/concurrencypb"
)

// registerReflection serves the descriptors, in both versions: so grpcurl works
// without proto files.
func registerReflection(g *grpc.Server) {
	opts := reflection.ServerOptions{Services: g, DescriptorResolver: concurrencypb.Files}
	reflectionv1.RegisterServerReflectionServer(g, reflection.NewServerV1(opts))
	grpc_reflection_v1alpha.RegisterServerReflectionServer(g, reflection.NewServer(opts))
}
