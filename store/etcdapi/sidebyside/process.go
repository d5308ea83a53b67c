package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

const (
	startTimeout = time.Minute
	stopTimeout  = 10 * time.Second
)

// process is a running server. It is used by one goroutine.
type process struct {
	addr  string
	pid   int
	ready time.Duration // from the start to the first answer
	cmd   *exec.Cmd
	ended chan struct{}
	conns []*grpc.ClientConn
}

// startProcess starts a server on a directory and returns when it answers.
func startProcess(ctx context.Context, spec serverSpec, dir string) (*process, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	replace := strings.NewReplacer("{dir}", dir, "{port}", ports[0], "{port2}", ports[1])
	args := make([]string, len(spec.command))
	for i, word := range spec.command {
		args[i] = replace.Replace(word)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &process{addr: "127.0.0.1:" + ports[0], cmd: exec.Command(args[0], args[1:]...), ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, log, log
	// A group of its own: Ctrl-C is for the benchmark, which then ends its servers.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	begun := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.name, err)
	}
	p.pid = p.cmd.Process.Pid
	go func() {
		_ = p.cmd.Wait() // ProcessState tells how it ended
		close(p.ended)
	}()
	if err := p.awaitAnswer(ctx); err != nil {
		p.kill()
		return nil, fmt.Errorf("start %s: %w; its last words: %s", spec.name, err, lastLines(log.Name()))
	}
	p.ready = time.Since(begun)
	return p, nil
}

// awaitAnswer returns once a linearizable read has been answered.
func (p *process) awaitAnswer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for { // gRPC would wait for a second after the first refusal
		c, err := net.Dial("tcp", p.addr)
		if err == nil {
			c.Close()
			break
		}
		if err := p.wait(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	kv := pb.NewKVClient(p.conn(0))
	for {
		_, err := kv.Range(ctx, &pb.RangeRequest{Key: []byte("ready")})
		if err == nil {
			return nil
		}
		if e := p.wait(ctx, 2*time.Millisecond); e != nil {
			return errors.Join(e, err)
		}
	}
}

func (p *process) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.ended:
		return fmt.Errorf("it ended: %v", p.cmd.ProcessState)
	case <-time.After(d):
		return nil
	}
}

// conn returns the i-th client connection; each is made once.
func (p *process) conn(i int) *grpc.ClientConn {
	for len(p.conns) <= i {
		p.conns = append(p.conns, dial(p.addr))
	}
	return p.conns[i]
}

// stop asks the server to end, and kills one that does not.
func (p *process) stop() {
	p.closeConns()
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails if it has ended
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		p.kill()
	}
}

// kill ends the server at once, as kill -9 does.
func (p *process) kill() {
	p.closeConns()
	_ = p.cmd.Process.Kill() // fails if it has ended
	<-p.ended
}

func (p *process) closeConns() {
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// freePorts returns n ports that nobody listens on.
func freePorts(n int) ([]string, error) {
	ports := make([]string, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close()
		ports[i] = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func lastLines(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-3):], []byte(" | ")))
}
