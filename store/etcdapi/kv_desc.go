package etcdapi

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// kvService serves etcdserverpb.KV. Its answers are raw, which the generated
// service description has no room for, so it has one of its own.
type kvService struct{ s *Server }

func (s *Server) registerKV(r grpc.ServiceRegistrar) {
	r.RegisterService(&kvDesc, &kvService{s: s})
}

var kvDesc = grpc.ServiceDesc{
	ServiceName: pb.KV_ServiceDesc.ServiceName,
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{
		kvMethod("Range", pb.KV_Range_FullMethodName, (*kvService).Range),
		kvMethod("Put", pb.KV_Put_FullMethodName, (*kvService).Put),
		kvMethod("DeleteRange", pb.KV_DeleteRange_FullMethodName, (*kvService).DeleteRange),
		kvMethod("Txn", pb.KV_Txn_FullMethodName, (*kvService).Txn),
		kvMethod("Compact", pb.KV_Compact_FullMethodName, (*kvService).Compact),
	},
	Streams: []grpc.StreamDesc{{
		StreamName:    "RangeStream",
		ServerStreams: true,
		Handler: func(srv any, stream grpc.ServerStream) error {
			req := new(pb.RangeRequest)
			if err := stream.RecvMsg(req); err != nil {
				return err
			}
			return toStatus(srv.(*kvService).RangeStream(req, stream))
		},
	}},
	Metadata: pb.KV_ServiceDesc.Metadata,
}

// kvMethod describes a method that takes one request and gives one raw response.
func kvMethod[T any, Req interface {
	*T
	proto.Message
}](name, fullName string, call func(*kvService, context.Context, Req) (raw, error)) grpc.MethodDesc {
	answer := func(srv any, ctx context.Context, req any) (any, error) {
		out, err := call(srv.(*kvService), ctx, req.(Req))
		if err != nil {
			return nil, toStatus(err)
		}
		return out, nil
	}
	handle := func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		req := Req(new(T))
		if err := decode(req); err != nil {
			return nil, err
		}
		if interceptor == nil {
			return answer(srv, ctx, req)
		}
		info := &grpc.UnaryServerInfo{Server: srv, FullMethod: fullName}
		return interceptor(ctx, req, info, func(ctx context.Context, req any) (any, error) {
			return answer(srv, ctx, req)
		})
	}
	return grpc.MethodDesc{MethodName: name, Handler: handle}
}
