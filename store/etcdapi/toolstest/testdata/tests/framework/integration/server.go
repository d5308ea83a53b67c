package integration

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/testutil"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
)

// startTimeout bounds how long a server may take to answer.
const startTimeout = 30 * time.Second

// smallestRequestLimit is the smallest limit of a request's size that a server
// may have, in bytes.
const smallestRequestLimit = 1024

// sockets counts the sockets of this process: the names must differ, as some
// tests have several servers in one directory.
var sockets atomic.Int32

// server is a process with its data directory and its address, which stay the
// same over restarts.
type server struct {
	t       testutil.TB
	cfg     *ClusterConfig
	dataDir string
	workDir string // a socket is named relative to it
	network string // "unix" or "tcp"
	address string // as for net.Dial
	url     string

	mu      sync.Mutex
	clients []*Member // whose bridges end and come back with the process
	cmd     *exec.Cmd
	done    chan struct{} // closed when the process has ended
	log     bytes.Buffer  // of the process; read after it has ended
}

// newServer chooses an address and makes a data directory.
func newServer(t testutil.TB, cfg *ClusterConfig) *server {
	s := &server{t: t, cfg: cfg, network: "unix", dataDir: filepath.Join(t.TempDir(), "data")}
	var err error
	if s.workDir, err = os.Getwd(); err != nil {
		t.Fatal(err)
	}
	host := "localhost"
	if cfg.UseIP {
		host = "127.0.0.1"
	}
	s.address = fmt.Sprintf("%s:%d", host, sockets.Add(1))
	if cfg.UseTCP {
		s.network = "tcp"
		free, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(free.Addr().String())
		s.address = net.JoinHostPort(host, port)
		free.Close()
	}
	s.url = s.scheme() + "://" + s.address
	return s
}

func (s *server) scheme() string {
	scheme := map[string]string{"unix": "unix", "tcp": "http"}[s.network]
	if s.cfg.ClientTLS != nil {
		scheme += "s"
	}
	return scheme
}

// args are the settings of the server, as etcd has them.
func (s *server) args() []string {
	args := []string{
		"--name=m0", "--data-dir=" + s.dataDir, "--listen-client-urls=" + s.url, "--advertise-client-urls=" + s.url,
		"--bcrypt-cost=4", // the least effort: tests are not worth more
		fmt.Sprintf("--listen-peer-urls=unix://localhost:%d", sockets.Add(1)), // nobody comes
	}
	add := func(set bool, name string, value any) {
		if set {
			args = append(args, fmt.Sprintf("--%s=%v", name, value))
		}
	}
	c := s.cfg
	add(c.AuthToken != "", "auth-token", c.AuthToken)
	add(c.QuotaBackendBytes != 0, "quota-backend-bytes", c.QuotaBackendBytes)
	add(c.MaxTxnOps != 0, "max-txn-ops", c.MaxTxnOps)
	add(c.MaxRequestBytes != 0, "max-request-bytes", max(c.MaxRequestBytes, smallestRequestLimit))
	add(c.GRPCKeepAliveMinTime != 0, "grpc-keepalive-min-time", c.GRPCKeepAliveMinTime)
	// Some tests set the interval through a variable of etcd's server.
	progress := cmp.Or(c.WatchProgressNotifyInterval, v3rpc.GetProgressReportInterval())
	add(true, "watch-progress-notify-interval", progress)
	add(c.Metrics != "", "metrics", c.Metrics)
	if info := c.ClientTLS; info != nil {
		add(true, "cert-file", info.CertFile)
		add(true, "key-file", info.KeyFile)
		add(info.TrustedCAFile != "", "trusted-ca-file", info.TrustedCAFile)
		add(info.ClientCertAuth, "client-cert-auth", true)
		add(len(info.CipherSuites) > 0, "cipher-suites", cipherSuites(info.CipherSuites))
	}
	return args
}

// cipherSuites are the names of TLS cipher suites, comma-separated.
func cipherSuites(ids []uint16) string {
	var names []string
	for _, id := range ids {
		names = append(names, tls.CipherSuiteName(id))
	}
	return strings.Join(names, ",")
}

// start starts the process, waits until it answers and opens the bridges to
// it. Nothing happens when it runs already.
func (s *server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		return nil
	}
	if err := s.launch(); err != nil {
		return err
	}
	for _, m := range s.clients {
		if m.bridgeAddress == "" {
			continue
		}
		if err := m.addBridge(m.bridgeAddress); err != nil {
			return err
		}
	}
	return nil
}

// launch starts the process and waits until it answers.
func (s *server) launch() error {
	cmd := exec.Command(filepath.Join(binDir(), "etcd"), s.args()...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.workDir, &s.log, &s.log
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	s.cmd, s.done = cmd, done
	go func() {
		defer close(done)
		cmd.Wait()
	}()
	deadline := time.After(startTimeout)
	for {
		select {
		case <-done:
			return fmt.Errorf("the server ended: %v\n%s", cmd.ProcessState, &s.log)
		case <-deadline:
			cmd.Process.Kill()
			<-done
			return fmt.Errorf("the server does not answer\n%s", &s.log)
		case <-time.After(10 * time.Millisecond):
		}
		if conn, err := net.Dial(s.network, s.path()); err == nil {
			return conn.Close()
		}
	}
}

// path is the address for net.Dial whatever the working directory is.
func (s *server) path() string {
	if s.network == "unix" {
		return filepath.Join(s.workDir, s.address)
	}
	return s.address
}

// stop ends the process; the data stays. Nothing happens when it has ended.
func (s *server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	select {
	case <-s.done:
		s.t.Errorf("the server ended by itself: %v\n%s", s.cmd.ProcessState, &s.log)
	default:
	}
	for _, m := range s.clients {
		m.closeBridge()
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Error(err)
	}
	<-s.done
	s.cmd = nil
}

// members asks the server for its list of members.
func (s *server) members() ([]*pb.Member, error) {
	cfg, err := clientConfig(s.cfg, s.cfg.ClientTLS, s.url)
	if err != nil {
		return nil, err
	}
	client, err := newClientV3(*cfg)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), RequestTimeout)
	defer cancel()
	list, err := client.MemberList(ctx)
	if err != nil {
		return nil, err
	}
	return list.Members, nil
}
