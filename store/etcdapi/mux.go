package etcdapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/credentials"
)

// One port serves gRPC and HTTP. Each new connection has a goroutine until it is
// known what it speaks: after the TLS handshake, or after its first bytes. Then
// the connection goes to the gRPC server or the HTTP server, and the goroutine
// ends.

const (
	// helloTimeout is how long a connection may take to show what it speaks.
	helloTimeout = 10 * time.Second
	// acceptRetry is the pause after Accept failed for want of something, such
	// as file descriptors, that other connections may give back.
	acceptRetry = 100 * time.Millisecond

	alpnHTTP2 = "h2"
	alpnHTTP1 = "http/1.1"
)

// http2Start is how the client preface of HTTP/2 starts and no request of HTTP/1
// does. It is also no longer than the shortest request.
const http2Start = "PRI "

// Serve accepts clients on l until Stop is called, then returns nil. It is
// called once for each listener. TLS is spoken if l is a Listener with a https
// or unixs URL, or if l is another listener and Config.TLS is set. It returns an
// error when l fails, or when TLS is wanted and not configured.
func (s *Server) Serve(l net.Listener) error {
	config, err := s.tlsFor(l)
	if err != nil {
		l.Close()
		return err
	}
	if !s.addListener(l) {
		return nil
	}
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			go s.sortConn(conn, config)
		case s.stopping():
			return nil
		case outOfResources(err):
			s.log.Warn("a client connection could not be accepted; trying again", "listener", l.Addr(), "error", err)
			s.pause(acceptRetry)
		default:
			return fmt.Errorf("etcdapi: accept on %v: %w", l.Addr(), err)
		}
	}
}

func outOfResources(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (s *Server) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.stop:
	}
}

// addListener is false, and l closed, if the server is stopping.
func (s *Server) addListener(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping() {
		l.Close()
		return false
	}
	s.listeners = append(s.listeners, l)
	return true
}

func (s *Server) closeListeners() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		l.Close()
	}
}

// sortConn finds out what a connection speaks and hands it over.
func (s *Server) sortConn(raw net.Conn, config *tls.Config) {
	if !s.conns.add(raw) {
		raw.Close()
		return
	}
	defer s.conns.remove(raw)
	raw.SetDeadline(time.Now().Add(helloTimeout))
	conn := &sortedConn{Conn: newDirectConn(raw)}
	conn.answers.began = func() { s.stalls.add(conn) }
	conn.answers.ended = func() { s.stalls.remove(conn) }
	to, err := s.greet(conn, config)
	if err != nil {
		raw.Close()
		s.logRefused(raw, err)
		return
	}
	raw.SetDeadline(time.Time{})
	to.put(conn)
}

// greet does the TLS handshake, if config is not nil, and returns the server
// that the connection is for.
func (s *Server) greet(conn *sortedConn, config *tls.Config) (*connQueue, error) {
	if config != nil {
		secured := tls.Server(conn.Conn, config)
		if err := secured.Handshake(); err != nil {
			return nil, err
		}
		state := secured.ConnectionState()
		conn.Conn, conn.tls = secured, &state
		switch state.NegotiatedProtocol {
		case alpnHTTP2:
			return s.grpcIn, nil
		case alpnHTTP1:
			return s.httpIn, nil
		}
	}
	conn.first = make([]byte, len(http2Start))
	if _, err := io.ReadFull(conn.Conn, conn.first); err != nil {
		return nil, err
	}
	if string(conn.first) == http2Start {
		return s.grpcIn, nil
	}
	return s.httpIn, nil
}

// logRefused notes a connection that came to nothing. One that was only opened
// and closed is a TCP probe and not worth a line.
func (s *Server) logRefused(conn net.Conn, err error) {
	var notTLS tls.RecordHeaderError
	switch {
	case s.stopping(), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		s.log.Debug("a client connection was closed before it said anything", "remote", conn.RemoteAddr())
	case errors.As(err, &notTLS):
		s.log.Warn("refused a client that does not speak TLS; use https:// in its endpoint", "remote", conn.RemoteAddr())
	default:
		s.log.Warn("refused a client connection", "remote", conn.RemoteAddr(), "error", err)
	}
}

// sortedConn is a connection whose first bytes may have been read already.
type sortedConn struct {
	net.Conn
	first   []byte // to be read first
	tls     *tls.ConnectionState
	answers answers
}

// RemoteAddr is the client's address, from which whenSent finds the connection.
func (c *sortedConn) RemoteAddr() net.Addr { return &clientAddr{c.Conn.RemoteAddr(), &c.answers} }

func (c *sortedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if before := c.answers.progress.Load(); before != 0 && n > 0 {
		c.answers.progress.CompareAndSwap(before, time.Now().UnixNano()) // not after the last answer has ended
	}
	return n, err
}

func (c *sortedConn) Close() error {
	err := c.Conn.Close()
	c.answers.close()
	return err
}

func (c *sortedConn) Read(p []byte) (int, error) {
	if len(c.first) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.first)
	c.first = c.first[n:]
	return n, nil
}

// tlsFor is the TLS configuration for l, nil for plain text.
func (s *Server) tlsFor(l net.Listener) (*tls.Config, error) {
	secure := s.cfg.TLS != nil
	if own, ok := l.(*Listener); ok {
		secure = own.URL.Secure()
	}
	if !secure {
		return nil, nil
	}
	if s.cfg.TLS == nil {
		return nil, fmt.Errorf("etcdapi: serve %v: TLS is wanted but there is no certificate; set one, or use a http:// or unix:// URL", l.Addr())
	}
	base, cache := s.cfg.TLS, new(alpnCache)
	config := base.Clone()
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		current := base
		if base.GetConfigForClient != nil {
			c, err := base.GetConfigForClient(hello)
			if err != nil {
				return nil, err
			}
			if c != nil {
				current = c
			}
		}
		return cache.config(current, hello.SupportedProtos), nil
	}
	return config, nil
}

// alpnCache keeps a configuration per ALPN answer. They are kept because session
// tickets are valid for one configuration only.
type alpnCache struct {
	mu      sync.Mutex
	base    *tls.Config
	configs map[string]*tls.Config
}

// config is base with the protocol to speak with a client that offers the given
// ones. gRPC clients offer h2 alone (TLS-1). One that offers http/1.1 too is a
// browser, curl or the like, and wants the pages.
func (a *alpnCache) config(base *tls.Config, offered []string) *tls.Config {
	proto := alpnHTTP2
	if slices.Contains(offered, alpnHTTP1) {
		proto = alpnHTTP1
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.base != base {
		a.base, a.configs = base, make(map[string]*tls.Config)
	}
	c := a.configs[proto]
	if c == nil {
		c = base.Clone()
		c.GetConfigForClient = nil
		c.NextProtos = []string{proto}
		a.configs[proto] = c
	}
	return c
}

// handedOver are the transport credentials of connections whose handshake is
// done: it only tells gRPC about it.
type handedOver struct{}

// plainInfo says that a connection is not encrypted.
type plainInfo struct{ credentials.CommonAuthInfo }

func (plainInfo) AuthType() string { return "plain" }

func (handedOver) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if c, ok := conn.(*sortedConn); ok && c.tls != nil {
		return conn, credentials.TLSInfo{
			State:          *c.tls,
			CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity},
		}, nil
	}
	return conn, plainInfo{credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}, nil
}

func (handedOver) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("etcdapi: these credentials are for servers only")
}

func (handedOver) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

func (handedOver) Clone() credentials.TransportCredentials { return handedOver{} }

func (handedOver) OverrideServerName(string) error { return nil }
