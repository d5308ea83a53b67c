package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// stepLimit is long enough for any step on a slow machine.
const stepLimit = time.Minute

var buildTarn = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tarn-installed-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "tarn")
	build := exec.Command("go", "build", "-o", path, "./cmd/tarn")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build tarn: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := buildTarn(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// server runs one tarn after another on the same data and addresses.
type server struct {
	t       *testing.T
	dir     string
	sockets []*os.File // handed over; none: each server opens its own
	address string     // TCP
	path    string     // unix socket
	cmd     *exec.Cmd
	log     strings.Builder
}

// newServer makes the addresses. With handed, the listening sockets are here, as systemd has them.
func newServer(t *testing.T, handed bool) *server {
	dir := t.TempDir()
	s := &server{t: t, dir: dir, path: filepath.Join(dir, "s")}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	s.address = tcp.Addr().String()
	if !handed {
		return s
	}
	unix, err := net.Listen("unix", s.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close() })
	for _, l := range []interface{ File() (*os.File, error) }{tcp.(*net.TCPListener), unix.(*net.UnixListener)} {
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		s.sockets = append(s.sockets, f)
	}
	return s
}

func (s *server) endpoints() string { return "http://" + s.address + ",unix:" + s.path }

// start returns at once: whoever connects to a socket of ours waits.
func (s *server) start() {
	s.t.Helper()
	bin, err := buildTarn()
	if err != nil {
		s.t.Fatal(err)
	}
	args := []string{bin, "serve", "--data-dir=" + filepath.Join(s.dir, "data")}
	if s.sockets == nil {
		args = append(args, "--listen-client-urls=http://"+s.address+",unix://"+s.path)
	}
	// The variable holds the process's own number, which only a shell knows before exec.
	s.cmd = exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ exec "$@"`, "sh"}, args...)...)
	s.cmd.Stderr = &s.log
	if s.sockets != nil {
		s.cmd.ExtraFiles = s.sockets
		s.cmd.Env = append(os.Environ(), fmt.Sprintf("LISTEN_FDS=%d", len(s.sockets)), "LISTEN_FDNAMES=client:client")
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.cmd.Process.Kill() })
}

// awaitAnswer returns when the server has answered a new connection.
func (s *server) awaitAnswer() {
	s.t.Helper()
	k := newKnocker("http://"+s.address, new(dials), nil)
	for begin := time.Now(); time.Since(begin) < stepLimit; time.Sleep(10 * time.Millisecond) {
		if k.knock(stepLimit) == nil {
			return
		}
	}
	s.t.Fatalf("no answer\n%s", s.log.String())
}

func (s *server) stop() {
	s.t.Helper()
	s.cmd.Process.Signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		s.t.Fatalf("the server has ended with %v\n%s", err, s.log.String())
	}
}

// settings are a small load.
func (s *server) settings() settings {
	return settings{endpoints: s.endpoints(), journal: filepath.Join(s.dir, "journal"), ready: filepath.Join(s.dir, "ready"),
		writers: 4, readers: 2, watches: 100, pause: 5 * time.Millisecond, limit: stepLimit}
}

// loadDuring runs a load, calls what is to be done meanwhile, and returns what the load says.
func (s *server) loadDuring(do func()) error {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	o := s.settings()
	ended := make(chan error, 1)
	go func() { ended <- runLoad(ctx, o) }()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(o.ready); err == nil {
			break
		}
		select {
		case err := <-ended:
			return fmt.Errorf("before the load was ready: %w", err)
		default:
		}
		if time.Since(begin) > stepLimit {
			s.t.Fatalf("the load is not ready\n%s", s.log.String())
		}
	}
	do()
	cancel()
	return <-ended
}
