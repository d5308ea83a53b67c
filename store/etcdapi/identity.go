package etcdapi

import (
	"context"
	"crypto/tls"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/auth"
	"github.com/tarn-kv/tarn/store/etcdapi/concurrencypb"
)

// Who sends a request is found out once per request, or per message of the streams
// that carry requests, and travels in the context. What the sender may do is checked
// where it is done. While access control is off all of it is one look at a flag.

// bearer is what may stand before a token.
const bearer = "Bearer "

// identified returns ctx with its sender, which is nobody if it shows nothing.
//
// ErrGRPCInvalidAuthToken is returned for a token that is not valid (AUT-10).
func (s *Server) identified(ctx context.Context) (context.Context, error) {
	st := s.store.Auth()
	if !st.Enabled() {
		return ctx, nil
	}
	c, err := s.caller(ctx, st)
	if err != nil {
		return nil, err
	}
	return auth.WithCaller(ctx, c), nil
}

func (s *Server) caller(ctx context.Context, st *auth.State) (auth.Caller, error) {
	token := metadata.ValueFromIncomingContext(ctx, rpctypes.TokenFieldNameGRPC)
	if len(token) == 0 {
		token = metadata.ValueFromIncomingContext(ctx, rpctypes.TokenFieldNameSwagger)
	}
	if len(token) > 0 {
		c, ok := s.tokens.lookup(strings.TrimPrefix(token[0], bearer), st.Revision())
		if !ok {
			return auth.Caller{}, rpctypes.ErrGRPCInvalidAuthToken
		}
		return c, nil
	}
	if name, ok := s.certificateName(ctx); ok {
		return auth.Caller{User: name, Revision: st.Revision()}, nil
	}
	return auth.Caller{}, nil
}

// certificateName is the CommonName of the client's certificate, which is its user
// name with Config.ClientCertAuth (AUT-14). The JSON gateway's connection has none.
func (s *Server) certificateName(ctx context.Context) (string, bool) {
	if !s.cfg.ClientCertAuth {
		return "", false
	}
	p, _ := peer.FromContext(ctx)
	if p == nil {
		return "", false
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return "", false
	}
	return commonName(&info.State)
}

// warnUnusedNames logs that the certificates which clients must show are nobody's name here.
func (s *Server) warnUnusedNames() {
	if s.cfg.TLS != nil && s.cfg.TLS.ClientAuth == tls.RequireAndVerifyClientCert && !s.cfg.ClientCertAuth {
		s.log.Warn("access control is on, and clients must show a certificate, but its CommonName is not taken for a user: " +
			"who sends no name and password is refused; set --client-cert-auth to take it, as in etcd")
	}
}

// ownIdentity has the methods that the interceptors do not identify the sender of: one is how
// to become somebody, and the streams of requests look at each message.
var ownIdentity = map[string]bool{
	pb.Auth_Authenticate_FullMethodName:    true,
	pb.Watch_Watch_FullMethodName:          true,
	pb.Lease_LeaseKeepAlive_FullMethodName: true,

	// These make requests of their own, whose sender is found out for each.
	concurrencypb.Lock_Lock_FullMethodName:         true,
	concurrencypb.Lock_Unlock_FullMethodName:       true,
	concurrencypb.Election_Campaign_FullMethodName: true,
	concurrencypb.Election_Proclaim_FullMethodName: true,
	concurrencypb.Election_Leader_FullMethodName:   true,
	concurrencypb.Election_Observe_FullMethodName:  true,
	concurrencypb.Election_Resign_FullMethodName:   true,
}

// identifiedCall is identified for a call that an interceptor sees. The services that etcd
// has no access control for (health, reflection) take no notice of tokens.
func (s *Server) identifiedCall(ctx context.Context, method string) (context.Context, error) {
	if !s.store.Auth().Enabled() || ownIdentity[method] || strings.HasPrefix(method, "/grpc.") {
		return ctx, nil
	}
	return s.identified(ctx)
}

// requireUser refuses nobody, while access control is on.
func (s *Server) requireUser(ctx context.Context) error {
	st := s.store.Auth()
	if !st.Enabled() {
		return nil
	}
	return toStatus(st.Known(auth.CallerOf(ctx)))
}

// requireAdmin refuses everybody without the role root, while access control is on.
func (s *Server) requireAdmin(ctx context.Context) error {
	st := s.store.Auth()
	if !st.Enabled() {
		return nil
	}
	return toStatus(st.Admin(auth.CallerOf(ctx)))
}

// openReader is store.NewReader for a range that the sender may read. Whether it may is
// checked when the revision is pinned, but comes before what is wrong with the
// revision (RNG-18).
func (s *Server) openReader(ctx context.Context, r *pb.RangeRequest) (*store.Reader, error) {
	reader, err := s.store.NewReader(ctx, r.Revision)
	if denied := s.store.PermitRead(ctx, store.KeyRange{Key: r.Key, End: r.RangeEnd}); denied != nil {
		if err == nil {
			reader.Close()
		}
		return nil, denied
	}
	return reader, err
}
