package difftest

import (
	"context"
	"errors"
	"fmt"
	"io"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Op is what a step does on one server.
type Op func(ctx context.Context, s *Session) Facts

// method is a unary RPC found by the type of its request.
type method struct {
	path  string
	reply protoreflect.FullName
}

var methods = unaryMethods(pb.File_rpc_proto, v3lockpb.File_v3lock_proto, v3electionpb.File_v3election_proto,
	healthpb.File_grpc_health_v1_health_proto)

func unaryMethods(files ...protoreflect.FileDescriptor) map[protoreflect.FullName]method {
	found := map[protoreflect.FullName]method{}
	for _, f := range files {
		for i := range f.Services().Len() {
			svc := f.Services().Get(i)
			for j := range svc.Methods().Len() {
				if m := svc.Methods().Get(j); !m.IsStreamingServer() {
					found[m.Input().FullName()] = method{fmt.Sprintf("/%s/%s", svc.FullName(), m.Name()), m.Output().FullName()}
				}
			}
		}
	}
	return found
}

// CallOption changes one call.
type CallOption func(*callOptions)

type callOptions struct {
	user string
	md   []string
	hide []string
}

// As sends the token that Login got for user.
func As(user string) CallOption { return func(o *callOptions) { o.user = user } }

// With adds a metadata pair.
func With(key, value string) CallOption {
	return func(o *callOptions) { o.md = append(o.md, key, value) }
}

// Hide leaves out facts that two correct servers may answer differently; the
// first argument says why.
func Hide(_ string, paths ...string) CallOption {
	return func(o *callOptions) { o.hide = append(o.hide, paths...) }
}

func (s *Session) options(ctx context.Context, opts []CallOption) (context.Context, callOptions) {
	var o callOptions
	for _, f := range opts {
		f(&o)
	}
	if len(o.md) > 0 {
		ctx = metadata.AppendToOutgoingContext(ctx, o.md...)
	}
	return s.as(ctx, o.user), o
}

// Call sends one unary request; the method follows from its type.
func Call(req proto.Message, opts ...CallOption) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		ctx, o := s.options(ctx, opts)
		_, err := s.invoke(ctx, &f, req)
		f.status(s, err)
		return f.without(o.hide)
	}
}

// invoke calls the method of req and adds the reply to f.
func (s *Session) invoke(ctx context.Context, f *Facts, req proto.Message) (proto.Message, error) {
	m, ok := methods[req.ProtoReflect().Descriptor().FullName()]
	if !ok {
		return nil, fmt.Errorf("no unary method takes a %T", req)
	}
	t, err := protoregistry.GlobalTypes.FindMessageByName(m.reply)
	if err != nil {
		return nil, err
	}
	reply := t.New().Interface()
	if err := s.Server.conn.Invoke(ctx, m.path, s.withSelf(req), reply); err != nil {
		return nil, err
	}
	f.message(s, "msg", reply)
	return reply, nil
}

// withSelf returns req with Self replaced by the server's member id.
func (s *Session) withSelf(req proto.Message) proto.Message {
	c := proto.Clone(req)
	m := c.ProtoReflect()
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.Kind() == protoreflect.Uint64Kind && !fd.IsList() && v.Uint() == Self {
			m.Set(fd, protoreflect.ValueOfUint64(s.Server.Member))
		}
		return true
	})
	return c
}

// Method calls a method by its full path with an empty request, known or not.
func Method(path string) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		f.status(s, s.Server.conn.Invoke(ctx, path, &pb.StatusRequest{}, &pb.CompactionResponse{}))
		return f
	}
}

// Stream sends one RangeStream request and compares every chunk.
func Stream(req *pb.RangeRequest) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		st, err := s.kv().RangeStream(ctx, req)
		for i := 0; err == nil; i++ {
			var m *pb.RangeStreamResponse
			if m, err = st.Recv(); err == nil {
				f.message(s, fmt.Sprintf("chunk[%d]", i), m)
			}
		}
		f.streamEnd(s, err)
		return f
	}
}

// StreamMerged is Stream without the borders between chunks: it compares the
// protobuf merge of all chunks.
func StreamMerged(req *pb.RangeRequest) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		merged := &pb.RangeResponse{}
		st, err := s.kv().RangeStream(ctx, req)
		for err == nil {
			var m *pb.RangeStreamResponse
			if m, err = st.Recv(); err == nil {
				proto.Merge(merged, m.RangeResponse)
			}
		}
		f.message(s, "merged", merged)
		f.streamEnd(s, err)
		return f
	}
}

func (f *Facts) streamEnd(s *Session, err error) {
	if errors.Is(err, io.EOF) {
		err = nil
	}
	f.status(s, err)
}

// KeepAlive opens one keepalive stream, sends the ids in order, half-closes it
// and compares all answers and the end of the stream.
func KeepAlive(ids ...int64) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		st, err := pb.NewLeaseClient(s.Server.conn).LeaseKeepAlive(ctx)
		for _, id := range ids {
			if err == nil {
				err = st.Send(&pb.LeaseKeepAliveRequest{ID: id})
			}
		}
		if err == nil {
			err = st.CloseSend()
		}
		for i := 0; err == nil; i++ {
			var m *pb.LeaseKeepAliveResponse
			if m, err = st.Recv(); err == nil {
				f.message(s, fmt.Sprintf("answer[%d]", i), m)
			}
		}
		f.streamEnd(s, err)
		return f
	}
}

// Login authenticates and keeps the token for As(user).
func Login(user, password string) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		m, err := s.invoke(ctx, &f, &pb.AuthenticateRequest{Name: user, Password: password})
		if err == nil {
			s.tokens[user] = m.(*pb.AuthenticateResponse).Token
		}
		f.status(s, err)
		return f
	}
}

// Quietly is Do without comparing anything but the code; for bulk preparation.
func Quietly(n int, req func(i int) proto.Message) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		var err error
		for i := 0; i < n && err == nil; i++ {
			var ignored Facts
			_, err = s.invoke(ctx, &ignored, req(i))
		}
		f.status(s, err)
		return f
	}
}

// Expect runs op on tarn only and compares with want, for requests that etcd
// does not survive.
func Expect(want Facts, op Op) Op {
	return func(ctx context.Context, s *Session) Facts {
		if s.Server.Peer != "" {
			return want
		}
		return op(ctx, s)
	}
}
