package integration

import (
	"context"
	"math/rand"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/testutil"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	epb "go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	lockpb "go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
	framecfg "go.etcd.io/etcd/tests/v3/framework/config"
)

// GRPCAPI is the services of one connection.
type GRPCAPI struct {
	Cluster     pb.ClusterClient
	KV          pb.KVClient
	Lease       pb.LeaseClient
	Watch       pb.WatchClient
	Maintenance pb.MaintenanceClient
	Auth        pb.AuthClient
	Lock        lockpb.LockClient
	Election    epb.ElectionClient
}

// clientConfig is for a client of endpoints. tls is nil without TLS.
func clientConfig(cluster *ClusterConfig, tls *transport.TLSInfo, endpoints ...string) (*clientv3.Config, error) {
	cfg := &clientv3.Config{
		Endpoints:          endpoints,
		DialTimeout:        5 * time.Second,
		Logger:             zap.NewNop(),
		MaxCallSendMsgSize: cluster.ClientMaxCallSendMsgSize,
		MaxCallRecvMsgSize: cluster.ClientMaxCallRecvMsgSize,
	}
	if tls == nil {
		return cfg, nil
	}
	var err error
	cfg.TLS, err = tls.ClientConfig()
	return cfg, err
}

// NewClientV3 makes one more client of a member.
func NewClientV3(m *Member) (*clientv3.Client, error) {
	cfg, err := clientConfig(m.cluster, m.ClientTLSInfo, m.GRPCURL)
	if err != nil {
		return nil, err
	}
	return newClientV3(*cfg)
}

// NewClientV3 makes one more client of a member.
func (c *Cluster) NewClientV3(i int) (*clientv3.Client, error) { return NewClientV3(c.Members[i]) }

// ClusterClient makes a client of all members, which ends with the test.
func (c *Cluster) ClusterClient(tb testing.TB, opts ...framecfg.ClientOption) (*clientv3.Client, error) {
	cfg, err := clientConfig(c.Cfg, c.Cfg.ClientTLS, c.Endpoints()...)
	if err != nil {
		return nil, err
	}
	for _, opt := range opts {
		opt(cfg)
	}
	client, err := newClientV3(*cfg)
	if err != nil {
		return nil, err
	}
	tb.Cleanup(func() { client.Close() })
	return client, nil
}

// option makes a framecfg.ClientOption of a change of the client's settings.
func option(change func(*clientv3.Config)) framecfg.ClientOption {
	return func(c any) { change(c.(*clientv3.Config)) }
}

func WithAuth(name, password string) framecfg.ClientOption {
	return option(func(c *clientv3.Config) { c.Username, c.Password = name, password })
}

func WithAuthToken(token string) framecfg.ClientOption {
	return option(func(c *clientv3.Config) { c.Token = token })
}

func WithEndpoints(endpoints []string) framecfg.ClientOption {
	return option(func(c *clientv3.Config) { c.Endpoints = endpoints })
}

func WithDialTimeout(timeout time.Duration) framecfg.ClientOption {
	return option(func(c *clientv3.Config) { c.DialTimeout = timeout })
}

// WaitClientV3 waits until a read succeeds.
func WaitClientV3(t testutil.TB, kv clientv3.KV) { WaitClientV3WithKey(t, kv, "/") }

// WaitClientV3WithKey waits until a read of key succeeds.
func WaitClientV3WithKey(t testutil.TB, kv clientv3.KV, key string) {
	ctx, cancel := context.WithTimeout(context.Background(), RequestTimeout)
	defer cancel()
	for {
		_, err := kv.Get(ctx, key)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("timed out waiting for client: %v", err)
		case <-time.After(framecfg.TickDuration):
		}
	}
}

// MakeSingleNodeClients returns a function that makes clients of the first
// member and notes them in clients. It may be called concurrently.
func MakeSingleNodeClients(t testutil.TB, c *Cluster, clients *[]*clientv3.Client) func() *clientv3.Client {
	return makeClients(t, c, clients, func() int { return 0 })
}

// MakeMultiNodeClients is MakeSingleNodeClients with random members.
func MakeMultiNodeClients(t testutil.TB, c *Cluster, clients *[]*clientv3.Client) func() *clientv3.Client {
	return makeClients(t, c, clients, func() int { return rand.Intn(len(c.Members)) })
}

func makeClients(t testutil.TB, c *Cluster, clients *[]*clientv3.Client, choose func() int) func() *clientv3.Client {
	var mu sync.Mutex
	*clients = nil
	return func() *clientv3.Client {
		client, err := c.NewClientV3(choose())
		if err != nil {
			t.Fatalf("cannot create client: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		*clients = append(*clients, client)
		return client
	}
}

// CloseClients closes all clients.
func CloseClients(t testutil.TB, clients []*clientv3.Client) {
	for _, client := range clients {
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
