package etcdapi

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/tarn-kv/tarn/store/etcdapi/concurrencypb"
)

// gatewayIdle is after how long without a request the gateway's connection to
// the gRPC server, which stays within the process, is given up.
const gatewayIdle = time.Minute

var (
	gatewayIn  = protojson.UnmarshalOptions{DiscardUnknown: true}
	gatewayOut = protojson.MarshalOptions{UseProtoNames: true}
)

// gateway is the JSON form of the gRPC services (GW-1 to GW-5). It knows the
// methods from their descriptors, and calls them over a connection within the
// process, so that limits, errors and metrics are those of gRPC.
type gateway struct {
	s       *Server
	methods map[string]gatewayMethod // by path
	conn    *grpc.ClientConn         // connects when it is first needed
	budget  *listBudget              // of answers as JSON
}

type gatewayMethod struct {
	name            string // as in gRPC, with the service
	stream          grpc.StreamDesc
	request, answer protoreflect.MessageType
}

func newGateway(s *Server) (*gateway, error) {
	g := &gateway{s: s, methods: make(map[string]gatewayMethod), budget: newListBudget(s.cfg.ListBudget, s.log)}
	for _, f := range []protoreflect.FileDescriptor{etcdserverpb.File_rpc_proto, concurrencypb.File_v3lock_proto, concurrencypb.File_v3election_proto} {
		if err := g.addFile(f); err != nil {
			return nil, err
		}
	}
	conn, err := grpc.NewClient("passthrough:///gateway",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(g.dial),
		grpc.WithIdleTimeout(gatewayIdle),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)))
	if err != nil {
		return nil, fmt.Errorf("JSON gateway: %w", err)
	}
	g.conn = conn
	return g, nil
}

// addFile learns the methods of a proto file.
func (g *gateway) addFile(f protoreflect.FileDescriptor) error {
	for i := range f.Services().Len() {
		methods := f.Services().Get(i).Methods()
		for j := range methods.Len() {
			if err := g.add(methods.Get(j)); err != nil {
				return err
			}
		}
	}
	return nil
}

// findMessage finds the type of a message.
func findMessage(m protoreflect.MessageDescriptor) (protoreflect.MessageType, error) {
	if t, err := concurrencypb.Types.FindMessageByName(m.FullName()); err == nil {
		return t, nil
	}
	return protoregistry.GlobalTypes.FindMessageByName(m.FullName())
}

// add learns a method's paths from its HTTP rule. RangeStream has none (RS-12).
func (g *gateway) add(m protoreflect.MethodDescriptor) error {
	rule, ok := proto.GetExtension(m.Options(), annotations.E_Http).(*annotations.HttpRule)
	if !ok || rule == nil {
		return nil
	}
	request, err := findMessage(m.Input())
	if err != nil {
		return fmt.Errorf("JSON gateway: %s: %w", m.FullName(), err)
	}
	answer, err := findMessage(m.Output())
	if err != nil {
		return fmt.Errorf("JSON gateway: %s: %w", m.FullName(), err)
	}
	method := gatewayMethod{
		name:    fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name()),
		stream:  grpc.StreamDesc{ClientStreams: m.IsStreamingClient(), ServerStreams: m.IsStreamingServer()},
		request: request, answer: answer,
	}
	for _, r := range append([]*annotations.HttpRule{rule}, rule.AdditionalBindings...) {
		g.methods[r.GetPost()] = method
	}
	return nil
}

// dial gives the gRPC server one end of a pipe.
func (g *gateway) dial(context.Context, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go g.s.grpcIn.put(&sortedConn{Conn: theirs})
	return ours, nil
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Base64 makes four bytes of three.
	r.Body = http.MaxBytesReader(w, r.Body, 2*int64(g.s.cfg.MaxRequestBytes+recvOverhead))
	path := r.URL.Path
	if rest, old := strings.CutPrefix(path, "/v3beta/"); old {
		path = "/v3/" + rest
	}
	m, ok := g.methods[path]
	switch {
	case g.s.misleads(r):
		http.Error(w, commonNameIgnored, http.StatusBadRequest)
	case !g.s.mayChange(r):
		writeError(w, status.Error(codes.PermissionDenied, refusedPage))
	case !ok:
		writeError(w, status.Error(codes.NotFound, http.StatusText(http.StatusNotFound)))
	case r.Method != http.MethodPost:
		writeError(w, status.Error(codes.Unimplemented, http.StatusText(http.StatusMethodNotAllowed)))
	case m.stream.ServerStreams:
		g.serveStream(w, r, m)
	default:
		g.serveCall(w, r, m)
	}
}

func (g *gateway) serveCall(w http.ResponseWriter, r *http.Request, m gatewayMethod) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		writeError(w, status.Error(codes.InvalidArgument, err.Error()))
		return
	}
	req := m.request.New().Interface()
	if err := unmarshalJSON(body, req); err != nil {
		writeError(w, err)
		return
	}
	leave, err := g.room(r.Context(), w, req)
	if err != nil {
		writeError(w, status.FromContextError(err).Err())
		return
	}
	defer leave()
	resp := m.answer.New().Interface()
	if err := g.conn.Invoke(outgoing(r), m.name, req, resp); err != nil {
		writeError(w, err)
		return
	}
	out, err := gatewayOut.Marshal(resp)
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(out)
}

func unmarshalJSON(body []byte, m proto.Message) error {
	if len(body) == 0 {
		return nil
	}
	if err := gatewayIn.Unmarshal(body, m); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return nil
}
