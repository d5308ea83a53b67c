package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Limits after which a server counts as hanging. They are far beyond what a
// busy machine needs.
const (
	startLimit   = 60 * time.Second
	stopLimit    = 60 * time.Second
	commandLimit = 60 * time.Second
)

// server is a server process with its data directory, over all its restarts.
// Its methods are called by one goroutine at a time, but for ended.
type server struct {
	program string
	args    []string
	data    string // data directory
	address string // host:port for clients
	logFile string
	disk    string // command that a faultserver starts with, if set

	cmd    *exec.Cmd
	stdin  io.Writer      // of a faultserver: takes commands
	stdout *bufio.Scanner // and answers each with a line
	exit   chan struct{}  // closed when the process has ended

	mu       sync.Mutex
	stopping bool  // the end of the process is wanted
	died     error // the process ended by itself
}

// newServer prepares a server below dir. Nothing is started.
func newServer(p plan, bins binaries, dir string) (*server, error) {
	s := &server{program: bins.tarn, data: filepath.Join(dir, "data"), logFile: filepath.Join(dir, "server.log")}
	var err error
	if s.address, err = freeAddress(); err != nil {
		return nil, err
	}
	if p.Faulty {
		s.program = bins.faultserver
	} else {
		s.args = []string{"serve"}
	}
	s.args = append(s.args, "--data-dir="+s.data, "--listen-client-urls=http://"+s.address)
	s.args = append(s.args, p.Settings...)
	return s, nil
}

// launch starts the process and does not wait for it to serve.
func (s *server) launch() error {
	log, err := os.OpenFile(s.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	defer log.Close()
	args := s.args
	if s.disk != "" {
		args = append(slices.Clone(args), "--disk="+s.disk)
	}
	cmd := exec.Command(s.program, args...)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// Of tarn these are unused. os.Pipe, as Wait would close cmd.StdoutPipe's under a reader.
	stdinR, stdinW, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	defer stdinR.Close()
	stdoutR, stdoutW, err := os.Pipe()
	if err != nil {
		stdinW.Close()
		return fmt.Errorf("start the server: %w", err)
	}
	defer stdoutW.Close()
	cmd.Stdin, cmd.Stdout = stdinR, stdoutW
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the server: %w", errors.Join(err, stdinW.Close(), stdoutR.Close()))
	}
	s.cmd, s.stdin, s.stdout, s.exit = cmd, stdinW, bufio.NewScanner(stdoutR), make(chan struct{})
	s.setStopping(false)
	go func(exit chan struct{}) {
		err := cmd.Wait()
		s.noteEnd(err)
		close(exit)
		stdinW.Close()
		stdoutR.Close()
	}(s.exit)
	return nil
}

func (s *server) setStopping(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = on
}

func (s *server) noteEnd(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopping && s.died == nil {
		s.died = fmt.Errorf("the server ended by itself: %v\nits log ends with:\n%s", err, s.logTail())
	}
}

// ended returns why the server ended by itself, if it did.
func (s *server) ended() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.died
}

// start runs the process and returns when it answers requests.
func (s *server) start(ctx context.Context) error {
	if err := s.launch(); err != nil {
		return err
	}
	return s.ready(ctx)
}

// ready waits until the server answers.
func (s *server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	conn, err := dial(s.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		_, err := pb.NewMaintenanceClient(conn).Status(ctx, &pb.StatusRequest{})
		if err == nil {
			return nil
		}
		select {
		case <-s.exit:
			return errors.Join(errors.New("the server ended before it served"), s.ended())
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w\nits log ends with:\n%s", err, s.logTail())
		case <-time.After(20 * time.Millisecond):
			conn.ResetConnectBackoff()
		}
	}
}

func dial(address string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to the server: %w", err)
	}
	return conn, nil
}

func (s *server) signal(sig os.Signal) error {
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to the server: %w", sig, err)
	}
	return nil
}

// stop ends the process with a signal and waits for its end.
func (s *server) stop(sig os.Signal) error {
	if s.cmd == nil {
		return nil
	}
	s.setStopping(true)
	if err := s.signal(sig); err != nil {
		return err
	}
	select {
	case <-s.exit:
		return nil
	case <-time.After(stopLimit):
		_ = s.signal(syscall.SIGKILL)
		<-s.exit
		return fmt.Errorf("the server did not end within %v after %v\nits log ends with:\n%s", stopLimit, sig, s.logTail())
	}
}

func (s *server) kill() error { return s.stop(syscall.SIGKILL) }

// command sends a line to a faultserver and waits until it is done.
func (s *server) command(line string) error {
	if _, err := io.WriteString(s.stdin, line+"\n"); err != nil {
		return fmt.Errorf("tell the server %q: %w", line, errors.Join(err, s.ended()))
	}
	answer := make(chan string, 1)
	go func() {
		s.stdout.Scan()
		answer <- s.stdout.Text()
	}()
	select {
	case text := <-answer:
		if text != "done" {
			return fmt.Errorf("tell the server %q: it answers %q", line, text)
		}
		return nil
	case <-time.After(commandLimit):
		return fmt.Errorf("tell the server %q: no answer\nits log ends with:\n%s", line, s.logTail())
	}
}

// logTail returns the last 2,000 bytes of the server's log.
func (s *server) logTail() string {
	b, err := os.ReadFile(s.logFile)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b[max(0, len(b)-2000):]))
}
