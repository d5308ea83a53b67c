package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// probeLimit is how long the search for a reason may take.
const probeLimit = 2 * time.Second

// http2Hello is what an HTTP/2 client says first: the preface and empty settings.
// A server answers it with settings of its own.
const http2Hello = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// explain puts what a gRPC error means for a person before its text.
func (o *clientOptions) explain(ctx context.Context, err error) error {
	switch s := grpcstatus.Convert(err); s.Code() {
	case codes.Unavailable:
		ctx, cancel := context.WithTimeout(ctx, probeLimit)
		defer cancel()
		if why := o.probe(ctx); why != nil {
			return why
		}
		return fmt.Errorf("what answers there gave no answer to this (%s); if it is tarn serve, look at its log", s.Message())
	case codes.DeadlineExceeded:
		return fmt.Errorf("no answer in time (%s); try a longer --timeout, and look at the server's log", s.Message())
	default:
		if isStatus(err, rpctypes.ErrGRPCUserEmpty) {
			return errors.New("the server asks who you are; give a user's name and password with --user, or TARN_USER")
		}
		if isStatus(err, rpctypes.ErrGRPCPermissionDenied) {
			return errors.New("the user may not ask that: it is for users with the role root; give one with --user, or TARN_USER")
		}
		return err
	}
}

// probe connects once more to find out why a call could not be made: gRPC tells
// it as a text only. It returns nil if there is no reason to be found.
func (o *clientOptions) probe(ctx context.Context) error {
	conn, err := dialURL(ctx, o.endpoint)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("you may not connect there (%w); a socket is for its owner and group", err)
	case err != nil:
		return fmt.Errorf("no server is reachable there (%w); start one with tarn serve, or name its URL with --endpoint", err)
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		conn.SetDeadline(deadline)
	}
	if !o.endpoint.Secure() {
		return o.probePlain(ctx, conn)
	}
	if why := o.probeTLS(ctx, conn); why != nil {
		return fmt.Errorf("a server answers there, but TLS failed: %w", why)
	}
	return nil
}

// probePlain looks whether TLS is wanted.
func (o *clientOptions) probePlain(ctx context.Context, conn net.Conn) error {
	// Nothing is sent over it, so it does not matter who the server is.
	err := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx)
	if err != nil && !isAlert(err) {
		return nil
	}
	return fmt.Errorf("a server answers there, and it speaks TLS: write %ss:// in --endpoint, and name who issued its certificate with --cacert", o.endpoint.Scheme)
}

// probeTLS does what a client does up to the server's first answer.
func (o *clientOptions) probeTLS(ctx context.Context, conn net.Conn) error {
	config, err := o.tlsConfig()
	if err != nil {
		return err
	}
	config.ServerName, config.NextProtos = hostOf(o.endpoint), []string{"h2"}
	if host, _, err := net.SplitHostPort(config.ServerName); err == nil {
		config.ServerName = host
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return o.explainTLS(err)
	}
	// With TLS 1.3 a server looks at the client's certificate after the
	// client's handshake is done.
	if _, err = secured.Write([]byte(http2Hello)); err == nil {
		_, err = secured.Read(make([]byte, 1))
	}
	if isAlert(err) {
		return o.explainTLS(err)
	}
	return nil
}

// explainTLS says what to do about a handshake that failed.
func (o *clientOptions) explainTLS(err error) error {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var noTLS tls.RecordHeaderError
	switch {
	case errors.As(err, &noTLS):
		return fmt.Errorf("it does not speak TLS; write %s:// in --endpoint", strings.TrimSuffix(o.endpoint.Scheme, "s"))
	case errors.As(err, &authority) && o.caFile == "":
		return fmt.Errorf("%w; name who issued its certificate with --cacert", err)
	case errors.As(err, &authority):
		return fmt.Errorf("%w; its certificate is not from the authorities in %s (--cacert)", err, o.caFile)
	case errors.As(err, &name):
		return fmt.Errorf("%w; write a name in --endpoint that its certificate is for", err)
	case isAlert(err) && o.certFile == "":
		return fmt.Errorf("%w; if it demands a certificate of clients, give one with --cert and --key", err)
	case isAlert(err):
		return fmt.Errorf("%w; it does not accept the certificate in %s (--cert): it must be for client authentication, and from the server's --trusted-ca-file", err, o.certFile)
	default:
		return err
	}
}

// isAlert tells whether the other side gave up the TLS connection with a reason.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}
