package integration

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/testutil"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/pkg/v3/grpctesting"
	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/tests/v3/framework/testutils"
)

// Member is a name for the server of a cluster, with a client.
type Member struct {
	// ServerConfig holds the name and URLs; the rest of it is empty.
	config.ServerConfig

	// Server is always nil: the server is another process. Tests that look
	// into it are not run, but are compiled with the others.
	Server      *etcdserver.EtcdServer
	LogObserver *testutils.LogObserver

	GRPCURL       string
	ClientTLSInfo *transport.TLSInfo // nil without TLS
	Client        *clientv3.Client
	IsLearner     bool

	// ServerClient is Client: there is no way into the server without its API.
	ServerClient *clientv3.Client

	cluster *ClusterConfig
	server  *server
	bridge  Bridge
	// bridgeAddress stays the same over restarts; empty without a bridge.
	bridgeAddress string
	id            types.ID
}

// newMember gives the server one more name. With a bridge, the client goes
// through it.
func newMember(s *server, cfg *ClusterConfig, number int) (*Member, error) {
	m := &Member{GRPCURL: s.url, ClientTLSInfo: cfg.ClientTLS, cluster: cfg, server: s}
	m.Name = fmt.Sprintf("m%d", number)
	m.DataDir = s.dataDir
	m.ElectionTicks = ElectionTicks
	m.QuotaBackendBytes, m.MaxRequestBytes = cfg.QuotaBackendBytes, cfg.MaxRequestBytes
	if cfg.UseBridge {
		if err := m.addBridge(fmt.Sprintf("localhost:%d%d", sockets.Add(1), number)); err != nil {
			return nil, err
		}
	}
	var err error
	if m.Client, err = NewClientV3(m); err != nil {
		return nil, err
	}
	m.ServerClient = m.Client
	return m, m.identify()
}

// identify asks the server for its ID and URLs.
func (m *Member) identify() error {
	members, err := m.server.members()
	if err != nil {
		return err
	}
	if len(members) != 1 {
		return fmt.Errorf("the server lists %d members, not one", len(members))
	}
	m.id = types.ID(members[0].ID)
	if m.PeerURLs, err = types.NewURLs(members[0].PeerURLs); err != nil {
		return err
	}
	m.ClientURLs, err = types.NewURLs(members[0].ClientURLs)
	return err
}

// addBridge puts a bridge at a socket of the working directory.
func (m *Member) addBridge(address string) error {
	listener, err := transport.NewUnixListener(filepath.Join(m.server.workDir, address))
	if err != nil {
		return err
	}
	m.bridge = newBridge(dialer{m.server.network, m.server.path()}, listener)
	m.bridgeAddress = address
	m.GRPCURL = m.server.scheme() + "://" + address
	return nil
}

// closeBridge ends the connections through the bridge. A bridge whose server is
// gone ends at the next connection, so it is closed with the server.
func (m *Member) closeBridge() {
	if m.bridge != nil {
		m.bridge.Close()
		m.bridge = nil
	}
}

type dialer struct{ network, address string }

func (d dialer) Dial() (net.Conn, error) { return net.Dial(d.network, d.address) }

// Bridge returns what the client's connections go through. It is nil unless
// the cluster was asked to use bridges.
func (m *Member) Bridge() Bridge { return m.bridge }

// ID returns the server's member ID.
func (m *Member) ID() types.ID { return m.id }

// URL returns where the member is served.
func (m *Member) URL() string { return m.GRPCURL }

// GRPCPortNumber returns what stands behind the colon of the address.
func (m *Member) GRPCPortNumber() string {
	_, port, _ := net.SplitHostPort(m.server.address)
	return port
}

// Stop ends the server; the data stays.
func (m *Member) Stop(testutil.TB) { m.server.stop() }

// Close is Stop for a member that is not started again.
func (m *Member) Close() { m.server.stop() }

// Restart starts the server with the data that it had, and with the limits
// that the member has now.
func (m *Member) Restart(testutil.TB) error {
	m.cluster.QuotaBackendBytes, m.cluster.MaxRequestBytes = m.QuotaBackendBytes, m.MaxRequestBytes
	return m.server.start()
}

// StopNotify returns a channel that is closed when the server has ended.
func (m *Member) StopNotify() <-chan struct{} { return m.server.done }

// Terminate ends the server and removes its data.
func (m *Member) Terminate(t testutil.TB) {
	m.Close()
	if err := os.RemoveAll(m.DataDir); err != nil && t != nil {
		t.Fatal(err)
	}
}

// WaitOK waits until the server answers.
func (m *Member) WaitOK(t testutil.TB) { WaitClientV3(t, m.Client) }

// WaitStarted is WaitOK.
func (m *Member) WaitStarted(t testutil.TB) { m.WaitOK(t) }

// Metric returns the value of the first metric whose line begins with name
// and holds all labels; it is empty when there is none.
func (m *Member) Metric(name string, labels ...string) (string, error) {
	dial := func(context.Context, string, string) (net.Conn, error) {
		return net.Dial(m.server.network, m.server.path())
	}
	client := &http.Client{Timeout: RequestTimeout, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	response, err := client.Get("http://" + m.server.address + "/metrics")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		line := lines.Text()
		match := strings.HasPrefix(line, name)
		for _, label := range labels {
			match = match && strings.Contains(line, label)
		}
		if _, value, ok := strings.Cut(line, " "); ok && match {
			return value, nil
		}
	}
	return "", nil
}

// RecordedRequests is always empty: nothing records in another process.
func (m *Member) RecordedRequests() []grpctesting.RequestInfo { return nil }

// ElectionTimeout is a span that tests wait.
func (m *Member) ElectionTimeout() time.Duration { return time.Second }

// What tests of several members or of the server's inside use; see
// severalMembers.
func (m *Member) Launch() error { panic(severalMembers) }

func (m *Member) ReadyNotify() <-chan struct{} { panic(severalMembers) }

func (m *Member) Pause() { panic(severalMembers) }

func (m *Member) Resume() { panic(severalMembers) }

func (m *Member) Clone(testutil.TB) *Member { panic(severalMembers) }

func (m *Member) InjectPartition(testutil.TB, ...*Member) { panic(severalMembers) }

func (m *Member) RecoverPartition(testutil.TB, ...*Member) { panic(severalMembers) }

// MemberConfig, MustNewMember and CheckLeaderTransition are as Launch.
type MemberConfig struct {
	Name      string
	UseBridge bool
}

func MustNewMember(t testutil.TB, _ MemberConfig) *Member { t.Fatal(severalMembers); return nil }

func CheckLeaderTransition(*Member, uint64) uint64 { panic(severalMembers) }

// NewLocalListener listens on a socket in the working directory.
func NewLocalListener(t testutil.TB) net.Listener {
	listener, err := transport.NewUnixListener(fmt.Sprintf("localhost:%d", sockets.Add(1)))
	if err != nil {
		t.Fatal(err)
	}
	return listener
}
