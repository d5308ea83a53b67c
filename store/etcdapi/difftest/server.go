package difftest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// startTimeout bounds the time from process start to the first answer.
const startTimeout = 30 * time.Second

// Server is one server process with its data directory and a connection to it.
// It is used by one goroutine at a time.
type Server struct {
	Name    string // "etcd" or "tarn"; in a self-check "etcd" and "etcd2"
	Dir     string // data directory, log file beside it
	Client  string // host:port of the client URL
	Metrics string // host:port of the metrics URL, empty if none was asked for
	Peer    string // host:port of etcd's peer URL, empty for tarn
	Member  uint64 // own member id, learned at start
	Cluster uint64 // own cluster id, learned at start
	Boots   int    // successful starts of this data directory

	bin   string
	flags []string
	cmd   *exec.Cmd
	conn  *grpc.ClientConn
}

// NewServer prepares a server over a data directory below parent. Nothing is
// started. flags are given to the process after the harness's own flags.
func NewServer(name, bin, parent string, isEtcd bool, flags []string) (*Server, error) {
	s := &Server{Name: name, Dir: filepath.Join(parent, name+".data"), bin: bin, flags: flags}
	var err error
	if s.Client, err = freeAddress(); err != nil {
		return nil, err
	}
	if isEtcd {
		if s.Peer, err = freeAddress(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// The ports given out lie below the range from which the system takes ports for
// outgoing connections, so that none is taken while its server restarts.
const firstPort, lastPort = 15_000, 32_000

var nextPort atomic.Int64

func init() { nextPort.Store(firstPort + rand.Int64N(lastPort-firstPort)) }

// freeAddress returns a loopback address that nobody listens on and that this
// process has not given out before.
func freeAddress() (string, error) {
	var last error
	for range lastPort - firstPort {
		port := firstPort + nextPort.Add(1)%(lastPort-firstPort)
		address := fmt.Sprintf("127.0.0.1:%d", port)
		l, err := net.Listen("tcp", address)
		if err == nil {
			return address, l.Close()
		}
		last = err
	}
	return "", fmt.Errorf("find a free port from %d to %d: %w", firstPort, lastPort, last)
}

func (s *Server) arguments() []string {
	args := []string{"--data-dir", s.Dir, "--listen-client-urls", "http://" + s.Client}
	if s.Peer == "" {
		args = append([]string{"serve"}, args...)
	} else {
		args = append(args, "--name", "default", "--advertise-client-urls", "http://"+s.Client,
			"--listen-peer-urls", "http://"+s.Peer, "--initial-advertise-peer-urls", "http://"+s.Peer,
			"--initial-cluster", "default=http://"+s.Peer, "--log-level", "error", "--unsafe-no-fsync")
	}
	if s.Metrics != "" {
		args = append(args, "--listen-metrics-urls", "http://"+s.Metrics)
	}
	return append(args, s.flags...)
}

// Start runs the process and returns when it answers requests. The error holds
// the end of the server's log.
func (s *Server) Start(ctx context.Context) error {
	log, err := os.OpenFile(s.Dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", s.Name, err)
	}
	defer log.Close()
	s.cmd = exec.Command(s.bin, s.arguments()...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", s.Name, err)
	}
	s.conn, err = grpc.NewClient("passthrough:///"+s.Client,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)))
	if err != nil {
		return fmt.Errorf("connect to %s: %w", s.Name, err)
	}
	if err := s.learn(ctx); err != nil {
		return fmt.Errorf("%s does not answer: %w\nlog ends with:\n%s", s.Name, err, s.LogTail())
	}
	s.Boots++
	return nil
}

// learn waits until the server answers and notes its ids.
func (s *Server) learn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		st, err := pb.NewMaintenanceClient(s.conn).Status(ctx, &pb.StatusRequest{})
		if err == nil && st.Leader != 0 && s.settled(st) {
			s.Member, s.Cluster = st.Header.MemberId, st.Header.ClusterId
			return nil
		}
		if isAuthError(err) && s.Member != 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
			s.conn.ResetConnectBackoff()
		}
	}
}

// settled reports whether etcd has finished its start: it serves before its
// version monitor has raised the storage version from 3.5.0 to its own.
func (s *Server) settled(st *pb.StatusResponse) bool {
	return s.Peer == "" || strings.HasPrefix(st.StorageVersion, "3.7.")
}

func isAuthError(err error) bool {
	return err != nil && strings.Contains(err.Error(), "user name is empty")
}

// Stop ends the process with SIGTERM, or with SIGKILL if kill is set, waits for
// it and closes the connection. A server that is not running is left alone.
func (s *Server) Stop(kill bool) error {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
	if s.cmd == nil {
		return nil
	}
	signal := syscall.SIGTERM
	if kill {
		signal = syscall.SIGKILL
	}
	// The process may have ended by itself: Wait reports how.
	_ = s.cmd.Process.Signal(signal)
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	defer func() { s.cmd = nil }()
	select {
	case err := <-ended:
		// etcd answers SIGTERM by raising it again after its clean-up.
		if kill || err == nil || strings.Contains(err.Error(), "signal: terminated") {
			return nil
		}
		return fmt.Errorf("%s ended: %w\nlog ends with:\n%s", s.Name, err, s.LogTail())
	case <-time.After(30 * time.Second):
		_ = s.cmd.Process.Kill()
		<-ended
		return fmt.Errorf("%s did not end within 30 s after SIGTERM\nlog ends with:\n%s", s.Name, s.LogTail())
	}
}

// LogTail returns the last 2,000 bytes of the server's log.
func (s *Server) LogTail() string {
	b, err := os.ReadFile(s.Dir + ".log")
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-2000):])
}

// terminate sends SIGTERM and leaves waiting to Stop.
func (s *Server) terminate() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
