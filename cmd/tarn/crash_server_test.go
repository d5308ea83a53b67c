package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// buildTarn builds the binary as it is shipped: a kill must hit what people run.
// In a virtual machine without Go it is this test, which can be tarn as well.
func buildTarn(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		return exe
	}
	bin := filepath.Join(t.TempDir(), "tarn")
	cmd := exec.Command("go", "build", "-o", bin, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build tarn: %v\n%s", err, out)
	}
	return bin
}

// crashServer is a running tarn serve.
type crashServer struct {
	cmd   *exec.Cmd
	conn  *grpc.ClientConn
	addr  chan string   // gets the address once it serves; closed at its end
	ended chan struct{} // closed when its log has ended

	mu    sync.Mutex
	lines []string
}

const crashLogLines = 100

// asTarn is the environment of tarn: what a test is set by is nothing to it.
var asTarn = []string{runMain + "=1"}

func startCrashServer(t *testing.T, bin, dir string) *crashServer {
	t.Helper()
	s := &crashServer{addr: make(chan string, 1), ended: make(chan struct{})}
	s.cmd = exec.Command(bin, "serve", "--data-dir="+dir, "--listen-client-urls=http://127.0.0.1:0",
		"--checkpoint-bytes=262144", "--log-level=info")
	s.cmd.Env = asTarn
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.kill(t) })
	go s.read(stderr)
	return s
}

// read keeps the end of the log.
func (s *crashServer) read(stderr io.Reader) {
	defer close(s.ended)
	defer close(s.addr)
	for scan := bufio.NewScanner(stderr); scan.Scan(); {
		line := scan.Text()
		if m := servingLine.FindStringSubmatch(line); m != nil {
			s.addr <- m[1]
		}
		s.mu.Lock()
		s.lines = append(s.lines, line)
		if len(s.lines) > crashLogLines {
			s.lines = s.lines[1:]
		}
		s.mu.Unlock()
	}
}

func (s *crashServer) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "log of the server:\n" + strings.Join(s.lines, "\n")
}

// dial waits until the server serves.
func (s *crashServer) dial(t *testing.T, opts ...grpc.DialOption) {
	t.Helper()
	select {
	case addr, ok := <-s.addr:
		if !ok {
			t.Fatalf("the server ended before it served; %s", s.log())
		}
		opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
		conn, err := grpc.NewClient("passthrough:///"+addr, opts...)
		if err != nil {
			t.Fatal(err)
		}
		s.conn = conn
	case <-time.After(crashStepLimit):
		t.Fatalf("the server does not begin to serve; %s", s.log())
	}
}

func (s *crashServer) kill(t *testing.T) { s.stop(t, syscall.SIGKILL) }

// stop sends a signal and waits for the end of the process.
func (s *crashServer) stop(t *testing.T, sig os.Signal) {
	t.Helper()
	if s.cmd.ProcessState != nil {
		return
	}
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Errorf("end the server: %v", err)
	}
	select {
	case <-s.ended:
	case <-time.After(crashStepLimit):
		t.Errorf("the server does not end on %v; %s", sig, s.log())
		s.cmd.Process.Kill()
	}
	err := s.cmd.Wait()
	if sig == syscall.SIGTERM && err != nil {
		t.Errorf("clean stop: %v; %s", err, s.log())
	}
	if s.conn != nil {
		s.conn.Close()
	}
}

// checkWithBinary runs tarn check. A directory in which no store was made yet gives nil.
func checkWithBinary(bin, dir string) (*checkVerdict, error) {
	var out, errs bytes.Buffer
	cmd := exec.Command(bin, "check", "--output=json", dir)
	cmd.Env = asTarn
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if strings.Contains(errs.String(), "holds no store") {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s%s", err, out.String(), errs.String())
	}
	v := &checkVerdict{}
	if err := json.Unmarshal(out.Bytes(), v); err != nil {
		return nil, err
	}
	if !v.OK {
		return nil, fmt.Errorf("exit code 0, but %s", out.String())
	}
	return v, nil
}

// compareHash: the server has the records that the check has read.
func compareHash(ctx context.Context, conn *grpc.ClientConn, v *checkVerdict) error {
	// For the compact revision the server answers with the hash of before.
	if v == nil || v.Revision == v.CompactRevision {
		return nil
	}
	resp, err := etcdserverpb.NewMaintenanceClient(conn).HashKV(ctx, &etcdserverpb.HashKVRequest{Revision: v.Revision})
	if err != nil {
		return fmt.Errorf("hash at revision %d: %w", v.Revision, err)
	}
	if resp.CompactRevision == v.CompactRevision && resp.Hash != *v.Hash {
		return fmt.Errorf("hash at revision %d, compacted %d: check says %08x, the server %08x", v.Revision, v.CompactRevision, *v.Hash, resp.Hash)
	}
	return nil
}
