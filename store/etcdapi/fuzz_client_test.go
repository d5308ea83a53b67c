package etcdapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// asJSON is added to a method's number for its JSON form.
const asJSON = 0x80

// lastWatch is the ID of the watch in each stream that tells its end.
const lastWatch = 1 << 40

var lastKey = []byte("\xff\xfflast")

// serviceTable has the handlers of the services that are registered with it.
type serviceTable map[string]handler // by the method's full name

type handler struct {
	service any
	unary   grpc.MethodHandler
	stream  grpc.StreamHandler
}

func (st serviceTable) RegisterService(desc *grpc.ServiceDesc, service any) {
	for _, m := range desc.Methods {
		st["/"+desc.ServiceName+"/"+m.MethodName] = handler{service: service, unary: m.Handler}
	}
	for _, m := range desc.Streams {
		st["/"+desc.ServiceName+"/"+m.StreamName] = handler{service: service, stream: m.Handler}
	}
}

// fuzzClient makes the calls that a script says: for each the number of its method, the
// length of the message in two bytes, and the message. Calls that take several
// messages split theirs: a byte of length before each.
type fuzzClient struct {
	t       *testing.T
	ctx     context.Context // of the whole script: hanging ends it; with the token of the last login
	cancel  context.CancelFunc
	s       *Server
	methods serviceTable
	streams sync.WaitGroup // watches under way
	watches []*lastSeen
}

func newFuzzClient(t *testing.T, s *Server) *fuzzClient {
	ctx, cancel := context.WithCancel(testContext(t))
	c := &fuzzClient{t: t, ctx: ctx, cancel: cancel, s: s, methods: serviceTable{}}
	s.registerKV(c.methods)
	s.registerWatch(c.methods)
	pb.RegisterLeaseServer(c.methods, leaseService{s: s})
	pb.RegisterMaintenanceServer(c.methods, maintenanceService{s: s})
	pb.RegisterClusterServer(c.methods, clusterService{s: s})
	pb.RegisterAuthServer(c.methods, authService{s: s})
	s.registerLock(c.methods)
	s.registerElection(c.methods)
	return c
}

func (c *fuzzClient) run(script []byte) {
	for len(script) >= 3 {
		n := min(int(script[1])<<8|int(script[2]), len(script)-3)
		body := script[3 : 3+n]
		m := fuzzMethod(int(script[0] &^ asJSON))
		if script[0]&asJSON != 0 {
			c.call(m, c.fromJSON(m, body))
		} else {
			c.call(m, split(m, body))
		}
		script = script[3+n:]
	}
}

// end waits until the watches have got everything, and ends them.
func (c *fuzzClient) end() {
	put, err := proto.Marshal(&pb.PutRequest{Key: lastKey})
	if err != nil {
		c.t.Fatal(err)
	}
	if len(c.watches) > 0 && c.unary(c.ctx, fuzzMethod(2), put) == nil {
		for _, w := range c.watches {
			c.await(w.event, "the last event")
		}
	}
	c.cancel()
	c.streams.Wait()
}

// split cuts the messages of a call out of its bytes.
func split(m protoreflect.MethodDescriptor, body []byte) (messages [][]byte) {
	if !m.IsStreamingClient() {
		return [][]byte{body}
	}
	for len(body) > 0 {
		n := min(int(body[0]), len(body)-1)
		messages = append(messages, body[1:1+n])
		body = body[1+n:]
	}
	return messages
}

// fromJSON are the messages that the gateway makes of a body, up to the first bad one.
func (c *fuzzClient) fromJSON(m protoreflect.MethodDescriptor, body []byte) (messages [][]byte) {
	for name, method := range c.s.gateway.methods {
		if method.name != fullName(m) || len(messages) > 0 {
			continue
		}
		if !m.IsStreamingServer() {
			req := method.request.New().Interface()
			if unmarshalJSON(body, req) != nil {
				return nil
			}
			return [][]byte{c.marshal(name, req)}
		}
		collect := &collector{c: c}
		for d := json.NewDecoder(bytes.NewReader(body)); sendJSON(collect, method, d) == nil; {
		}
		messages = collect.messages
	}
	return messages
}

func (c *fuzzClient) marshal(what string, m any) []byte {
	out, err := newCodec().Marshal(m)
	if err != nil {
		c.t.Errorf("%s: encode: %v", what, err)
	}
	defer out.Free()
	return out.Materialize()
}

// collector is the stream that the gateway sends messages on.
type collector struct {
	grpc.ClientStream
	c        *fuzzClient
	messages [][]byte
}

func (s *collector) SendMsg(m any) error {
	s.messages = append(s.messages, s.c.marshal("JSON", m))
	return nil
}

func fullName(m protoreflect.MethodDescriptor) string {
	return fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())
}

// call makes one call. One that can wait for other clients goes on until the end.
func (c *fuzzClient) call(m protoreflect.MethodDescriptor, messages [][]byte) {
	ctx := c.ctx // with the token of now
	run := func() error {
		if m.IsStreamingClient() || m.IsStreamingServer() {
			return (&fuzzStream{c: c, ctx: ctx, m: m, messages: messages, each: func(proto.Message) {}}).run()
		}
		return c.unary(ctx, m, messages[0])
	}
	switch {
	case m.Name() == "Watch":
		c.watch(m, messages)
	case len(messages) == 0:
	case slices.Contains(fuzzWaits, string(m.Name())):
		c.streams.Go(func() {
			if err := run(); status.Code(err) != codes.Canceled { // how end ends it
				c.wantEnd(m, err)
			}
		})
	default:
		c.wantEnd(m, run())
	}
}

func (c *fuzzClient) unary(ctx context.Context, m protoreflect.MethodDescriptor, message []byte) error {
	var broken error
	h := c.methods[fullName(m)]
	resp, err := h.unary(h.service, ctx, func(v any) error {
		broken = c.decode(message, v)
		return broken
	}, c.s.interceptUnary)
	if broken != nil {
		return nil
	}
	if err == nil {
		if r, ok := c.answer(m, resp).(*pb.AuthenticateResponse); ok {
			c.ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("token", r.Token))
		}
	}
	return err
}

// decode decodes as the server does, and compares with protobuf's own code.
func (c *fuzzClient) decode(message []byte, v any) error {
	got := newCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(message)}, v)
	want := v.(proto.Message).ProtoReflect().New().Interface()
	err := proto.Unmarshal(message, want)
	if (got == nil) != (err == nil) || err == nil && !proto.Equal(v.(proto.Message), want) {
		c.t.Errorf("% x is decoded as %v, %v; want %v, %v", message, v, got, want, err)
	}
	return got
}

// answer encodes as the server does and checks that protobuf's own code makes the same
// bytes of what they say. The gateway can make JSON of it.
func (c *fuzzClient) answer(m protoreflect.MethodDescriptor, resp any) proto.Message {
	b := c.marshal(fullName(m), resp)
	msg := newMessage(m.Output())
	if err := proto.Unmarshal(b, msg); err != nil {
		c.t.Errorf("%s: the answer % x: %v", m.Name(), b, err)
		return msg
	}
	if again, err := (proto.MarshalOptions{Deterministic: true}).Marshal(msg); err != nil || !bytes.Equal(again, b) {
		c.t.Errorf("%s: the answer is\n% x, and protobuf makes it\n% x (%v)", m.Name(), b, again, err)
	}
	if _, err := gatewayOut.Marshal(msg); err != nil && !errors.Is(err, proto.Error) {
		c.t.Errorf("%s: the answer in JSON: %v", m.Name(), err)
	}
	return msg
}

// wantEnd checks how a call has ended.
func (c *fuzzClient) wantEnd(m protoreflect.MethodDescriptor, err error) {
	st := status.Convert(err)
	switch st.Code() {
	case codes.Unknown:
		// etcd has no better code for some.
		if from, _, _ := strings.Cut(st.Message(), ": "); !slices.Contains([]string{"etcdserver", "auth", "election", "lock", "mutex", `"leader" field must be provided`}, from) {
			c.t.Errorf("%s: %v", m.Name(), err)
		}
	case codes.Internal, codes.DeadlineExceeded, codes.Unavailable:
		c.t.Errorf("%s: %v", m.Name(), err)
	}
}

// fuzzStream is the server's side of a stream whose client sends some messages and then
// nothing more.
type fuzzStream struct {
	c        *fuzzClient
	ctx      context.Context
	m        protoreflect.MethodDescriptor
	messages [][]byte
	broken   bool // a message could not be decoded

	mu    sync.Mutex // for what is sent, which can be after the handler has returned
	ended bool
	each  func(proto.Message)
}

func (s *fuzzStream) run() error {
	name := fullName(s.m)
	h := s.c.methods[name]
	err := s.c.s.interceptStream(h.service, s, &grpc.StreamServerInfo{FullMethod: name}, h.stream)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.broken {
		return nil
	}
	return err
}

func (s *fuzzStream) RecvMsg(v any) error {
	if len(s.messages) == 0 {
		return io.EOF
	}
	b := s.messages[0]
	s.messages = s.messages[1:]
	err := s.c.decode(b, v)
	if err != nil {
		s.broken = true
	}
	return err
}

func (s *fuzzStream) SendMsg(v any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return io.EOF
	}
	s.each(s.c.answer(s.m, v))
	return nil
}

func (s *fuzzStream) Context() context.Context     { return s.ctx }
func (s *fuzzStream) SetHeader(metadata.MD) error  { return nil }
func (s *fuzzStream) SendHeader(metadata.MD) error { return nil }
func (s *fuzzStream) SetTrailer(metadata.MD)       {}
