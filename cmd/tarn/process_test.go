package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// child is tarn in a process of its own.
type child struct {
	*exec.Cmd
	url    string
	stderr io.Closer   // the reading end of its log
	lines  chan string // of its log; closed at its end
}

var servingLine = regexp.MustCompile(`msg="serving clients".* address=(\S+)`)

// startChild runs tarn serve and waits until it serves.
func startChild(t *testing.T, args ...string) *child {
	t.Helper()
	return startChildAs(t, nil, args...)
}

// startChildAs is startChild as another user.
func startChildAs(t *testing.T, user *syscall.Credential, args ...string) *child {
	t.Helper()
	return startChildWith(t, func(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user} }, args...)
}

// startChildWith is startChild with something changed before it starts.
func startChildWith(t *testing.T, change func(*exec.Cmd), args ...string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"serve", "--listen-client-urls=http://127.0.0.1:0"}, args...)
	c := &child{Cmd: exec.Command(exe, args...), lines: make(chan string, 1000)}
	c.Env = append(os.Environ(), runMain+"=1")
	change(c.Cmd)
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stderr = stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.ProcessState == nil {
			c.Process.Kill()
			c.Wait()
		}
	})
	go c.read(stderr)
	for line := range c.lines {
		if m := servingLine.FindStringSubmatch(line); m != nil {
			c.url = "http://" + m[1]
			return c
		}
	}
	t.Fatal("the process ended before it served")
	return nil
}

func (c *child) read(stderr io.Reader) {
	defer close(c.lines)
	for scan := bufio.NewScanner(stderr); scan.Scan(); {
		c.lines <- scan.Text()
	}
}

// end sends a signal and returns the rest of the log and the exit code (-1: by
// the signal).
func (c *child) end(t *testing.T, sig os.Signal) (log string, code int) {
	t.Helper()
	if err := c.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for line := range c.lines {
		b.WriteString(line + "\n")
	}
	c.Wait()
	return b.String(), c.ProcessState.ExitCode()
}

func TestProcessSignals(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	config := writeFile(t, "tarn.yaml", "log-level: info\n")
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		c := startChild(t, "--data-dir="+dir, "--config-file="+config, "--snapshot-count=10000")
		cl := (&running{url: c.url}).client(t)
		if err := put(t, cl, "key", sig.String()); err != nil {
			t.Fatal(err)
		}
		watchAll(t, cl)
		if err := c.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for line := range c.lines {
			if strings.Contains(line, "SIGHUP") {
				break
			}
		}
		if log, code := c.end(t, sig); code != exitOK || !strings.Contains(log, "stopped") {
			t.Errorf("%v: exit code %d, log:\n%s", sig, code, log)
		}
	}
	c := startChild(t, "--data-dir="+dir)
	if v := get(t, (&running{url: c.url}).client(t), "key"); v != os.Interrupt.String() {
		t.Errorf("after the restarts the value is %q", v)
	}
}

// What was acknowledged is there after the process was killed.
func TestProcessKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	c := startChild(t, "--data-dir="+dir)
	if err := put(t, (&running{url: c.url}).client(t), "key", "value"); err != nil {
		t.Fatal(err)
	}
	c.end(t, os.Kill)
	if code, out, errs := tarn(t, nil, "check", dir); code != exitOK || !strings.HasPrefix(out, "OK\n") {
		t.Errorf("check after a kill: exit code %d: %s%s", code, out, errs)
	}
	c = startChild(t, "--data-dir="+dir)
	if v := get(t, (&running{url: c.url}).client(t), "key"); v != "value" {
		t.Errorf("after the kill the value is %q", v)
	}
}

// A server goes on when the reader of its log is gone.
func TestProcessLogReaderGone(t *testing.T) {
	c := startChild(t, "--data-dir="+filepath.Join(t.TempDir(), "data"))
	if err := c.stderr.Close(); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, c.url+"/debug/log-level", strings.NewReader("debug"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req) // which logs a line
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if err := put(t, (&running{url: c.url}).client(t), "key", "value"); err != nil {
		t.Error(err)
	}
	if _, code := c.end(t, syscall.SIGTERM); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}
