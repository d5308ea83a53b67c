package etcdapi

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// commonName is that of the certificate that a client has proved to have.
func commonName(state *tls.ConnectionState) (string, bool) {
	for _, chain := range state.VerifiedChains {
		if len(chain) > 0 {
			return chain[0].Subject.CommonName, true
		}
	}
	return "", false
}

// gatewayMetadata is what a header of HTTP begins with that is metadata for gRPC.
const gatewayMetadata = "Grpc-Metadata-"

// outgoing is the context for the call that an HTTP request stands for: with its token.
func outgoing(r *http.Request) context.Context {
	ctx := r.Context()
	for _, name := range []string{rpctypes.TokenFieldNameGRPC, rpctypes.TokenFieldNameSwagger} {
		if v := r.Header.Get(gatewayMetadata + name); v != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, name, v)
		}
	}
	if v := r.Header.Get("Authorization"); v != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameSwagger, v)
	}
	return ctx
}

type connKey struct{}

// withConn remembers a request's connection.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

const commonNameIgnored = "CommonName of client sending a request against gateway will be ignored and not used as expected"

// misleads reports whether a request comes with a certificate that names a user: over
// gRPC that would be who sends it, here it would be nobody (GW-6).
func (s *Server) misleads(r *http.Request) bool {
	if !s.cfg.ClientCertAuth || !s.store.Auth().Enabled() || !strings.HasPrefix(r.URL.Path, "/v3/") {
		return false
	}
	conn, ok := r.Context().Value(connKey{}).(*sortedConn)
	if !ok || conn.tls == nil {
		return false
	}
	name, _ := commonName(conn.tls)
	return name != ""
}

// adminPage refuses a request for a page of the role root that comes with neither the token of a
// user who has it nor, with Config.ClientCertAuth, such a user's certificate, while access
// control is on.
func (s *Server) adminPage(r *http.Request) error {
	ctx := r.Context()
	if conn, ok := ctx.Value(connKey{}).(*sortedConn); ok && conn.tls != nil {
		ctx = peer.NewContext(ctx, &peer.Peer{AuthInfo: credentials.TLSInfo{State: *conn.tls}})
	}
	if v := r.Header.Get("Authorization"); v != "" {
		ctx = metadata.NewIncomingContext(ctx, metadata.Pairs(rpctypes.TokenFieldNameSwagger, v))
	}
	ctx, err := s.identified(ctx)
	if err != nil {
		return err
	}
	return s.requireAdmin(ctx)
}
