package etcdapi

import (
	"math"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
)

const (
	// recvOverhead is what a message may be larger than the largest request, so
	// that a request slightly too large gets the error that names the limit and
	// not a transport error (GRPC-1).
	recvOverhead = 512 << 10

	// A kube-apiserver opens 60 to 100 connections, and most are idle: what each
	// holds counts more than the system calls saved by large buffers. Large
	// messages bypass the read buffer; write buffers are shared by all
	// connections and only held while writing.
	readBufferSize  = 4 << 10
	writeBufferSize = 32 << 10

	// Static windows for what clients send. They hold a whole ordinary object,
	// and they switch off the estimator that would send a ping with nearly
	// every message to measure the bandwidth.
	streamWindow = 256 << 10
	connWindow   = 1 << 20

	// streamWorkers goroutines take calls, so that their stacks are grown once and
	// not for each call: a tenth of the processor time of a put. Each open watch
	// keeps one; when all are taken, a call gets a goroutine of its own.
	streamWorkers = 128
)

// grpcOptions are the settings of GRPC-1 to GRPC-7.
func (s *Server) grpcOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(handedOver{}),
		grpc.ForceServerCodecV2(&countingCodec{CodecV2: newCodec(), calls: s.calls}),
		grpc.MaxRecvMsgSize(s.cfg.MaxRequestBytes + recvOverhead),
		grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.MaxConcurrentStreams(s.cfg.MaxStreams),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime:             s.cfg.KeepAliveMinTime,
			PermitWithoutStream: false,
		}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time:    s.cfg.KeepAliveTime,
			Timeout: s.cfg.KeepAliveTimeout,
		}),
		grpc.ConnectionTimeout(helloTimeout),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.ReadBufferSize(readBufferSize),
		grpc.WriteBufferSize(writeBufferSize),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.WaitForHandlers(true), // the store is closed after Stop
		grpc.UnaryInterceptor(s.interceptUnary),
		grpc.StreamInterceptor(s.interceptStream),
	}
}

func (s *Server) newGRPCServer() *grpc.Server {
	g := grpc.NewServer(s.grpcOptions()...)
	s.registerKV(g)
	s.registerWatch(g)
	etcdserverpb.RegisterLeaseServer(g, leaseService{s: s})
	etcdserverpb.RegisterMaintenanceServer(g, maintenanceService{s: s})
	etcdserverpb.RegisterClusterServer(g, clusterService{s: s})
	etcdserverpb.RegisterAuthServer(g, authService{s: s})
	s.registerLock(g)
	s.registerElection(g)
	grpc_health_v1.RegisterHealthServer(g, healthService{s: s})
	registerReflection(g)
	return g
}

// countingCodec counts the bytes of messages for the etcd_network_client_grpc_*
// metrics.
type countingCodec struct {
	encoding.CodecV2
	calls *calls
}

func (c *countingCodec) Marshal(v any) (mem.BufferSlice, error) {
	out, err := c.CodecV2.Marshal(v)
	if err == nil {
		c.calls.sentBytes.Add(uint64(out.Len()))
	}
	return out, err
}

func (c *countingCodec) Unmarshal(data mem.BufferSlice, v any) error {
	c.calls.receivedBytes.Add(uint64(data.Len()))
	return c.CodecV2.Unmarshal(data, v)
}
