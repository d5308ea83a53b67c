package etcdapi

import (
	"context"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tarn-kv/tarn/store"
)

// Metadata of requests. "hasleader" needs no look: the only member always has a
// leader, itself (GRPC-10). "token" and "authorization" are ignored as long as
// access control is off (AUT-1), see identity.go.
const clientVersionKey = "client-api-version"

func (s *Server) interceptUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	m := s.calls.methods[info.FullMethod]
	s.procs.begin(s.calls.beginUnary())
	defer s.calls.endUnary()
	m.received.Add(1)
	defer s.finish(m, m.begin(), &err)
	if err := s.countClient(ctx, "unary"); err != nil {
		return nil, err
	}
	if ctx, err = s.identifiedCall(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	resp, err = handler(ctx, req)
	if err == nil {
		m.sent.Add(1)
	}
	return resp, err
}

func (s *Server) interceptStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	m := s.calls.methods[info.FullMethod]
	defer s.finish(m, m.begin(), &err)
	ctx := stream.Context()
	if err := s.countClient(ctx, "stream"); err != nil {
		return err
	}
	if ctx, err = s.identifiedCall(ctx, info.FullMethod); err != nil {
		return err
	}
	return handler(srv, &countedStream{ServerStream: stream, m: m, ctx: ctx})
}

func (m *methodCalls) begin() time.Time {
	m.started.Add(1)
	if m.seconds == nil {
		return time.Time{}
	}
	return time.Now()
}

// finish ends a call. A panic ends that call with INTERNAL and not the server,
// unless it came from the store: changes are applied under its locks by the
// goroutine of the request, so a lock may still be held or a change half made.
// Then the process ends; what was acknowledged is on disk, and a restart serves
// it again.
func (s *Server) finish(m *methodCalls, start time.Time, err *error) {
	if p := recover(); p != nil {
		s.log.Error("a request handler failed; please report this with the stack",
			"service", m.service, "method", m.method, "panic", p, "stack", string(debug.Stack()))
		if panickedInStore() {
			panic(p)
		}
		*err = status.Error(codes.Internal, "the server failed to handle the request; its log has the details")
	}
	m.handled[errorCode(*err)].Add(1)
	if m.seconds != nil {
		m.seconds.Observe(time.Since(start).Seconds())
	}
}

var storePackage = reflect.TypeFor[store.Store]().PkgPath()

// panickedInStore tells, while a panic is handled, whether a function of the
// store was running.
func panickedInStore() bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.HasPrefix(f.Function, storePackage+".") {
			return true
		}
		if !more {
			return false
		}
	}
}

// errorCode is the code that gRPC sends for a handler's error.
func errorCode(err error) codes.Code {
	st, ok := status.FromError(err)
	if !ok {
		st = status.FromContextError(err)
	}
	if int(st.Code()) >= codeCount {
		return codes.Unknown
	}
	return st.Code()
}

func (s *Server) countClient(ctx context.Context, typ string) error {
	version := "unknown"
	if v := metadata.ValueFromIncomingContext(ctx, clientVersionKey); len(v) > 0 {
		version = v[0]
	}
	if !utf8.ValidString(version) {
		return errInvalidClientAPIVersion
	}
	s.calls.client(clientKind{typ: typ, version: version})
	return nil
}

// countedStream counts the messages of a stream.
type countedStream struct {
	grpc.ServerStream
	m   *methodCalls
	ctx context.Context // with the sender
}

func (c *countedStream) Context() context.Context { return c.ctx }

func (c *countedStream) RecvMsg(msg any) error {
	err := c.ServerStream.RecvMsg(msg)
	if err == nil {
		c.m.received.Add(1)
	}
	return err
}

func (c *countedStream) SendMsg(msg any) error {
	err := c.ServerStream.SendMsg(msg)
	if err == nil {
		c.m.sent.Add(1)
	}
	return err
}
