// Package tools has tests of etcdctl and etcdutl beside those of etcd. They run
// with the binaries of TOOLSTEST_BIN, as ../README.md says.
package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience bounds what is waited for.
const patience = 30 * time.Second

// binary returns the path of a program in the directory of binaries.
func binary(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("TOOLSTEST_BIN")
	if dir == "" {
		t.Skip("the programs to test are not here: run this with go run . in the directory above")
	}
	return filepath.Join(dir, name)
}

// server is a running server.
type server struct {
	t   *testing.T
	url string
	dir string
	cmd *exec.Cmd
}

// start starts a server that ends with the test. extra are settings of etcd.
func start(t *testing.T, extra ...string) *server {
	t.Helper()
	return startProgram(t, binary(t, "etcd"), filepath.Join(t.TempDir(), "data"), extra...)
}

func startProgram(t *testing.T, program, dir string, extra ...string) *server {
	t.Helper()
	s := &server{t: t, url: "http://" + freeAddress(t), dir: dir}
	args := append([]string{"--data-dir=" + s.dir, "--listen-client-urls=" + s.url, "--advertise-client-urls=" + s.url,
		"--listen-peer-urls=http://" + freeAddress(t)}, extra...)
	s.cmd = launch(t, program, args...)
	s.waitReady()
	return s
}

// launch starts a program that is killed at the end of the test.
func launch(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(program), &log)
		}
	})
	return cmd
}

// stop ends the server cleanly; its data stays.
func (s *server) stop() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	s.cmd.Wait()
}

func (s *server) waitReady() {
	s.t.Helper()
	waitFor(s.t, "the server answers", func() bool {
		_, _, err := s.run("", "endpoint", "health")
		return err == nil
	})
}

// freeAddress returns an address on loopback where nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// waitFor waits until something is so.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s in vain until %s", patience, what)
		}
	}
}

// command is an etcdctl for the server.
func (s *server) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, binary(s.t, "etcdctl"), append([]string{"--endpoints=" + s.url}, args...)...)
}

// run runs etcdctl with an input and returns its outputs.
func (s *server) run(input string, args ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	var out, errors bytes.Buffer
	cmd := s.command(ctx, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errors
	err = cmd.Run()
	return out.String(), errors.String(), err
}

// ctl runs etcdctl, which must succeed, and returns its standard output
// without spaces around it.
func (s *server) ctl(args ...string) string {
	s.t.Helper()
	return s.ctlInput("", args...)
}

func (s *server) ctlInput(input string, args ...string) string {
	s.t.Helper()
	stdout, stderr, err := s.run(input, args...)
	if err != nil {
		s.t.Fatalf("etcdctl %s: %v\n%s%s", strings.Join(args, " "), err, stdout, stderr)
	}
	return strings.TrimSpace(stdout)
}

// expect runs etcdctl and compares its standard output; lines are separated by
// " | ".
func (s *server) expect(want string, args ...string) {
	s.t.Helper()
	if got := strings.ReplaceAll(s.ctl(args...), "\n", " | "); got != want {
		s.t.Errorf("etcdctl %s:\n got %s\nwant %s", strings.Join(args, " "), got, want)
	}
}

// refused runs etcdctl, which must fail with an error that holds want.
func (s *server) refused(want string, args ...string) {
	s.t.Helper()
	stdout, stderr, err := s.run("", args...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		s.t.Errorf("etcdctl %s was not refused (%v):\n%s", strings.Join(args, " "), err, stdout)
	} else if !strings.Contains(stderr, want) {
		s.t.Errorf("etcdctl %s:\n got %s\nwant %s", strings.Join(args, " "), stderr, want)
	}
}

// decode reads JSON from the output of a program.
func decode[T any](t *testing.T, output string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(output), &v); err != nil {
		t.Fatalf("%v in %s", err, output)
	}
	return v
}

// utl runs etcdutl, which must succeed, and returns its standard output
// without spaces around it.
func utl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(binary(t, "etcdutl"), args...).Output()
	if err != nil {
		var exit *exec.ExitError
		errors.As(err, &exit)
		t.Fatalf("etcdutl %s: %v\n%s", strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out))
}

// utlRefused runs etcdutl, which must fail with an error that holds want.
func utlRefused(t *testing.T, want string, args ...string) {
	t.Helper()
	out, err := exec.Command(binary(t, "etcdutl"), args...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), want) {
		t.Errorf("etcdutl %s: %v, %s; want an error with %s", strings.Join(args, " "), err, out, want)
	}
}

// realEtcd returns the path of an etcd, whatever the tests have as etcd.
func realEtcd(t *testing.T) string {
	t.Helper()
	path := binary(t, "etcd-proxy")
	if _, err := os.Stat(path); err != nil {
		return binary(t, "etcd")
	}
	return path
}

// count returns how many keys begin with a prefix.
func (s *server) count(prefix string) int {
	s.t.Helper()
	return len(strings.Fields(s.ctl("get", "--prefix", prefix, "--keys-only")))
}

// interrupt is what the shell sends for Ctrl-C.
const interrupt = syscall.SIGINT

// fill puts n keys with a prefix.
func (s *server) fill(prefix string, n int) {
	s.t.Helper()
	for i := range n {
		s.ctl("put", fmt.Sprintf("%s%d", prefix, i), fmt.Sprintf("value-%d", i))
	}
}
