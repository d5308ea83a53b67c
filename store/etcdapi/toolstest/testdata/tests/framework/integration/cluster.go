// Package integration takes the place of etcd's package of that name below the
// integration tests. A cluster here is one server process; all its members are
// names for that server, each with a client of its own.
package integration

import (
	"math/rand"
	"os"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/testutil"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// How long tests wait for a request, as they do with etcd's own package.
const (
	RequestWaitTimeout = 5 * time.Second
	RequestTimeout     = 20 * time.Second
)

// ElectionTicks is a unit of time that tests wait in.
var ElectionTicks = 10

// ClusterConfig is what tests ask for. What concerns members, raft or the
// inside of the server has no effect.
type ClusterConfig struct {
	Size      int
	PeerTLS   *transport.TLSInfo
	ClientTLS *transport.TLSInfo

	AuthToken string

	QuotaBackendBytes    int64
	BackendBatchInterval time.Duration

	MaxTxnOps       uint
	MaxRequestBytes uint

	SnapshotCount          uint64
	SnapshotCatchUpEntries uint64

	GRPCKeepAliveMinTime        time.Duration
	GRPCKeepAliveInterval       time.Duration
	GRPCKeepAliveTimeout        time.Duration
	GRPCAdditionalServerOptions []grpc.ServerOption

	ClientMaxCallSendMsgSize int
	ClientMaxCallRecvMsgSize int

	UseIP     bool
	UseBridge bool
	UseTCP    bool

	EnableLeaseCheckpoint   bool
	LeaseCheckpointInterval time.Duration
	LeaseCheckpointPersist  bool

	WatchProgressNotifyInterval time.Duration
	MaxLearners                 int
	DisableStrictReconfigCheck  bool
	CorruptCheckTime            time.Duration
	Metrics                     string
}

// Cluster is one server under the names of several members.
type Cluster struct {
	Cfg     *ClusterConfig
	Members []*Member

	server *server
	mu     sync.Mutex
}

// NewCluster starts a server with an empty data directory and a client for
// each member of cfg.
func NewCluster(t testutil.TB, cfg *ClusterConfig) *Cluster {
	t.Helper()
	assertInTestContext(t)
	c := &Cluster{Cfg: cfg, server: newServer(t, cfg)}
	if err := c.server.start(); err != nil {
		t.Fatal(err)
	}
	for i := range cfg.Size {
		m, err := newMember(c.server, cfg, i)
		if err != nil {
			t.Fatal(err)
		}
		c.Members = append(c.Members, m)
	}
	c.server.clients = c.Members
	return c
}

// Terminate closes the clients, stops the server and removes its data.
func (c *Cluster) Terminate(t testutil.TB) {
	for _, m := range c.Members {
		if m.Client != nil {
			m.Client.Close()
		}
	}
	for _, m := range c.Members {
		m.Terminate(t)
	}
}

// TakeClient leaves the client of a member to the caller, who closes it.
func (c *Cluster) TakeClient(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Members[i].Client = nil
}

// Client returns the client of a member.
func (c *Cluster) Client(i int) *clientv3.Client { return c.Members[i].Client }

// RandClient returns the client of some member.
func (c *Cluster) RandClient() *clientv3.Client {
	return c.Members[rand.Intn(len(c.Members))].Client
}

// Endpoints returns where the members are served.
func (c *Cluster) Endpoints() []string {
	var endpoints []string
	for _, m := range c.Members {
		endpoints = append(endpoints, m.GRPCURL)
	}
	return endpoints
}

// WaitLeader returns 0: the only server leads from its start.
func (c *Cluster) WaitLeader(tb testing.TB) int { return c.WaitMembersForLeader(tb, c.Members) }

// WaitMembersForLeader returns 0 as WaitLeader does.
func (c *Cluster) WaitMembersForLeader(tb testing.TB, _ []*Member) int {
	tb.Helper()
	WaitClientV3(tb, c.Members[0].Client)
	return 0
}

// GetLearnerMembers returns the members that do not vote.
func (c *Cluster) GetLearnerMembers() ([]*pb.Member, error) {
	members, err := c.server.members()
	var learners []*pb.Member
	for _, m := range members {
		if m.IsLearner {
			learners = append(learners, m)
		}
	}
	return learners, err
}

// What tests of several real members use. Such tests are not run, but are
// compiled with the others.
const severalMembers = "a cluster of several members was asked for"

func (c *Cluster) AddMember(t testutil.TB) types.URLs { t.Fatal(severalMembers); return nil }

func (c *Cluster) AddAndLaunchLearnerMember(t testutil.TB) { t.Fatal(severalMembers) }

func (c *Cluster) MustNewMember(t testutil.TB) *Member { t.Fatal(severalMembers); return nil }

func (c *Cluster) InitializeMemberWithResponse(t testutil.TB, _ *Member, _ *clientv3.MemberAddResponse) {
	t.Fatal(severalMembers)
}

func (c *Cluster) RemoveMember(t testutil.TB, _ *clientv3.Client, _ uint64) error {
	t.Fatal(severalMembers)
	return nil
}

func (c *Cluster) Launch(t testutil.TB) { t.Fatal(severalMembers) }

func (c *Cluster) WaitMembersMatch(t testutil.TB, _ []*pb.Member) { t.Fatal(severalMembers) }

func (c *Cluster) WaitNoLeader() { panic(severalMembers) }

func (c *Cluster) WaitMembersNoLeader([]*Member) { panic(severalMembers) }

// binDir is the directory with the server's binary, named etcd.
func binDir() string { return os.Getenv("TOOLSTEST_BIN") }
