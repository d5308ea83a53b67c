package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"syscall"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// dials counts attempts to connect. gRPC does not tell of those that fail: it tries again.
type dials struct {
	made, refused, failed atomic.Int64
}

// dial connects to an address as gRPC gives it: host and port, or unix: and a path.
func (d *dials) dial(ctx context.Context, address string) (net.Conn, error) {
	network, address := splitAddress(address)
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	switch {
	case err == nil:
		d.made.Add(1)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		d.refused.Add(1)
	case ctx.Err() == nil:
		d.failed.Add(1)
	}
	return conn, err
}

// client is a client of etcd with connections of its own.
func (d *dials) client(endpoint string, secure *tls.Config) (*clientv3.Client, error) {
	if !isSecure(endpoint) {
		secure = nil
	}
	return clientv3.New(clientv3.Config{
		Endpoints:   []string{endpoint},
		TLS:         secure,
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(d.dial)},
		Logger:      zap.NewNop(),
	})
}

func isSecure(endpoint string) bool { return strings.HasPrefix(endpoint, "https:") }

// splitAddress takes an endpoint, with or without scheme, apart for net.Dial.
func splitAddress(endpoint string) (network, address string) {
	if path, ok := strings.CutPrefix(endpoint, "unix:"); ok {
		return "unix", strings.TrimPrefix(path, "//")
	}
	_, address, ok := strings.Cut(endpoint, "://")
	if !ok {
		address = endpoint
	}
	return "tcp", address
}
