package etcdapi

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/tarn-kv/tarn/store/etcdapi/concurrencypb"
)

// openToAll are the methods that nobody in particular may call.
var openToAll = map[string]bool{
	pb.Auth_AuthStatus_FullMethodName:   true,
	pb.Auth_Authenticate_FullMethodName: true,
}

// Every method of every service, also one that is added later, refuses nobody.
func TestEveryMethodAsksWhoItIs(t *testing.T) {
	a := newAuthTest(t, Config{})
	for service, info := range a.s.grpc.GetServiceInfo() {
		if strings.HasPrefix(service, "grpc.") {
			continue // health and reflection, as in etcd
		}
		for _, m := range info.Methods {
			method := fmt.Sprintf("/%s/%s", service, m.Name)
			t.Run("AUT-10"+method, func(t *testing.T) {
				err := callMethod(t, a, a.ctx, method, m)
				switch {
				case openToAll[method]:
					if status.Convert(err).Message() == textNobody {
						t.Error("nobody may not call it")
					}
				case method == pb.Watch_Watch_FullMethodName: // its answer is a message, see TestAuthWatch
				case status.Convert(err).Message() != textNobody:
					t.Errorf("nobody got %v", err)
				}
				if method == pb.Auth_Authenticate_FullMethodName || method == pb.Watch_Watch_FullMethodName {
					return
				}
				code := codes.Unauthenticated
				if !strings.HasPrefix(service, "etcdserverpb.") {
					code = codes.Unknown // as all errors of Lock and Election
				}
				wantStatus(t, callMethod(t, a, withToken(a.ctx, "nonsense.1"), method, m), code, textBadToken)
			})
		}
	}
}

// callMethod calls a method with a request that is well-formed enough, and returns its
// first error.
func callMethod(t *testing.T, a *authTest, ctx context.Context, method string, m grpc.MethodInfo) error {
	t.Helper()
	if method == pb.Watch_Watch_FullMethodName {
		return nil
	}
	req, resp := messagesOf(t, method)
	fill(req)
	if !m.IsServerStream && !m.IsClientStream {
		return a.conn.Invoke(ctx, method, req, resp)
	}
	stream, err := a.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: m.IsServerStream, ClientStreams: m.IsClientStream}, method)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(req); err != nil {
		return err
	}
	return stream.RecvMsg(resp)
}

func messagesOf(t *testing.T, method string) (req, resp proto.Message) {
	t.Helper()
	service, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	for _, f := range []protoreflect.FileDescriptor{pb.File_rpc_proto, concurrencypb.File_v3lock_proto, concurrencypb.File_v3election_proto} {
		s := f.Services().ByName(protoreflect.FullName(service).Name())
		if s == nil || string(s.FullName()) != service {
			continue
		}
		m := s.Methods().ByName(protoreflect.Name(name))
		make := func(d protoreflect.MessageDescriptor) proto.Message {
			typ, err := findMessage(d)
			if err != nil {
				typ, err = protoregistry.GlobalTypes.FindMessageByName(d.FullName())
			}
			if err != nil {
				t.Fatal(err)
			}
			return typ.New().Interface()
		}
		return make(m.Input()), make(m.Output())
	}
	t.Fatalf("no description of %s: add its proto file here", method)
	return nil, nil
}

// fill sets keys and names, so that a request is not refused for want of them.
func fill(m proto.Message) {
	switch r := m.(type) {
	case *pb.MemberAddRequest:
		r.PeerURLs = []string{"http://127.0.0.1:1"}
	case *pb.TxnRequest:
		r.Success = []*pb.RequestOp{putOp("k")}
	case *pb.AuthUserGetRequest:
		r.Name = "root"
	case *concurrencypb.ProclaimRequest:
		r.Leader = &concurrencypb.LeaderKey{Key: []byte("k")}
	case *concurrencypb.ResignRequest:
		r.Leader = &concurrencypb.LeaderKey{Key: []byte("k")}
	}
	f := m.ProtoReflect()
	if key := f.Descriptor().Fields().ByName("key"); key != nil && key.Kind() == protoreflect.BytesKind {
		f.Set(key, protoreflect.ValueOfBytes([]byte("k")))
	}
}

func TestTokenMetadata(t *testing.T) {
	a := newAuthTest(t, Config{})
	token := a.token("u")
	for name, md := range map[string][]string{
		"token":         {"token", token},
		"authorization": {"authorization", token},
		"bearer":        {"authorization", "Bearer " + token},
		"token first":   {"token", token, "authorization", "nonsense"},
	} {
		t.Run("GRPC-10/"+name, func(t *testing.T) {
			wantStatus(t, a.get(metadata.AppendToOutgoingContext(a.ctx, md...), "a"), codes.OK, "")
		})
	}
}

// secureAuthTest has a server that asks for client certificates.
func secureAuthTest(t *testing.T, cfg Config) (a *authTest, ca *testCA, address string) {
	t.Helper()
	ca = newTestCA(t)
	cfg.TLS, cfg.BcryptCost, cfg.Store = ca.server(ca.demand), MinBcryptCost, openStore(t, t.TempDir())
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, s, l)
	conn := dial(t, l.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(ca.client(x509.ExtKeyUsageClientAuth))))
	a = connectAuth(t, s, l.Addr().String(), conn)
	a.addUser(a.ctx, "client") // the CommonName of the client's certificate
	a.enable()
	return a, ca, l.Addr().String()
}

func TestCertificateName(t *testing.T) {
	t.Run("AUT-14", func(t *testing.T) {
		a, _, _ := secureAuthTest(t, Config{ClientCertAuth: true})
		wantStatus(t, a.get(a.ctx, "a"), codes.PermissionDenied, textDenied)
		root := a.as("root")
		a.grant(root, "client", "r")
		wantStatus(t, a.get(a.ctx, "a"), codes.OK, "")
		wantStatus(t, a.get(root, "secret"), codes.OK, "") // a token comes first
		wantStatus(t, a.get(withToken(a.ctx, "x.1"), "a"), codes.Unauthenticated, textBadToken)
		w := a.newWatch()
		w.create(&pb.WatchCreateRequest{Key: []byte("a")})
		if r := w.next(); r.Canceled {
			t.Errorf("watch: %v", r)
		}
	})
	t.Run("not asked for", func(t *testing.T) {
		log := new(logBuffer)
		a, ca, _ := secureAuthTest(t, Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
		wantStatus(t, a.get(a.ctx, "a"), codes.InvalidArgument, textNobody)
		const warning = "its CommonName is not taken for a user"
		if !strings.Contains(log.String(), warning) {
			t.Errorf("no warning when access control is switched on: %s", log)
		}
		for _, named := range []bool{false, true} { // and at a start
			log := new(logBuffer)
			s, err := New(Config{Store: a.s.store, TLS: ca.server(ca.demand), ClientCertAuth: named, Logger: slog.New(slog.NewTextHandler(log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Stop(testContext(t)); err != nil {
				t.Error(err)
			}
			if strings.Contains(log.String(), warning) == named {
				t.Errorf("at a start with ClientCertAuth %v: %s", named, log)
			}
		}
	})
}

func TestAuthWatch(t *testing.T) {
	a := newAuthTest(t, Config{})
	open := func(ctx context.Context) *watcher {
		s, err := a.watch.Watch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return &watcher{t: a.kvTest, Watch_WatchClient: s}
	}
	refused := func(w *watcher, key, end, reason string) {
		t.Helper()
		w.create(&pb.WatchCreateRequest{Key: []byte(key), RangeEnd: []byte(end)})
		if r := w.next(); !r.Created || !r.Canceled || r.WatchId != -1 || r.CancelReason != reason {
			t.Errorf("got %v, want reason %q", r, reason)
		}
	}
	t.Run("WCH-18", func(t *testing.T) {
		refused(open(a.ctx), "a", "", "rpc error: code = InvalidArgument desc = "+textNobody)
		refused(open(withToken(a.ctx, "x.1")), "a", "", "rpc error: code = Unauthenticated desc = "+textBadToken)
		w := open(a.as("u"))
		refused(w, "a", "d", "rpc error: code = PermissionDenied desc = "+textDenied)
		w.create(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte("c")})
		if r := w.next(); r.Canceled {
			t.Fatalf("%v", r)
		}
		if _, err := a.kv.Put(a.as("root"), &pb.PutRequest{Key: []byte("b")}); err != nil {
			t.Fatal(err)
		}
		if r := w.next(); len(r.Events) != 1 {
			t.Errorf("%v", r)
		}
		// The token is looked at for each watch: it is gone now.
		if _, err := a.auth.UserChangePassword(a.as("root"), &pb.AuthUserChangePasswordRequest{Name: "u", Password: "u-pw"}); err != nil {
			t.Fatal(err)
		}
		refused(w, "a", "", "rpc error: code = Unauthenticated desc = "+textBadToken)
	})
}

// Waiting for a lock takes longer than users and roles stay as they are.
func TestLockOutlivesChanges(t *testing.T) {
	a := newAuthTest(t, Config{})
	root := a.as("root")
	a.permit(root, "r", authpb.READWRITE, "lock/", "lock0")
	for id := int64(1); id <= 2; id++ {
		if _, err := a.lease.LeaseGrant(root, &pb.LeaseGrantRequest{ID: id, TTL: 1000}); err != nil {
			t.Fatal(err)
		}
	}
	locks := concurrencypb.NewLockClient(a.conn)
	u := a.as("u")
	first, err := locks.Lock(u, &concurrencypb.LockRequest{Name: []byte("lock"), Lease: 1})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := locks.Lock(u, &concurrencypb.LockRequest{Name: []byte("lock"), Lease: 2})
		done <- err
	}()
	a.until("the second waits", func() bool { return a.s.store.Status().Watchers >= 2 })
	a.addUser(root, "later")
	if _, err := locks.Unlock(root, &concurrencypb.UnlockRequest{Key: first.Key}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := locks.Lock(u, &concurrencypb.LockRequest{Name: []byte("other"), Lease: 1}); status.Convert(err).Message() != textDenied {
		t.Errorf("got %v", err)
	}
}
