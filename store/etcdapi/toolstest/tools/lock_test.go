package tools

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// The holder of a lock keeps others waiting until it ends.
func TestLock(t *testing.T) {
	s := start(t)
	first := s.follow("lock", "mutex")
	first.wait("mutex/")
	second := s.follow("lock", "mutex")
	waitFor(t, "the second waits", func() bool { return s.count("mutex/") == 2 })
	s.ctl("lock", "another", "true")
	if err := first.cmd.Process.Signal(interrupt); err != nil {
		t.Fatal(err)
	}
	second.wait("mutex/")
	if n := s.count("mutex/"); n != 1 {
		t.Errorf("%d hold or want the lock", n)
	}
}

// A command runs under the lock, knows the key of it, and gives its exit code.
func TestLockCommand(t *testing.T) {
	s := start(t)
	out := s.ctl("lock", "--ttl=30", "mutex", "--", "sh", "-c", "echo $ETCD_LOCK_KEY at $ETCD_LOCK_REV")
	if !strings.HasPrefix(out, "mutex/") || !strings.Contains(out, " at ") {
		t.Errorf("environment: %s", out)
	}
	_, _, err := s.run("", "lock", "mutex", "--", "sh", "-c", "exit 7")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("exit code: %v, want 7", err)
	}
	if n := s.count("mutex/"); n != 0 {
		t.Errorf("%d still hold the lock", n)
	}
}

// A new leader follows when the old one ends, and listeners hear of both.
func TestElect(t *testing.T) {
	s := start(t)
	listener := s.follow("elect", "-l", "post")
	first := s.follow("elect", "post", "first")
	first.wait("post/")
	listener.wait("first")
	second := s.follow("elect", "post", "second")
	waitFor(t, "there are two candidates", func() bool { return s.count("post/") == 2 })
	if err := first.cmd.Process.Signal(interrupt); err != nil {
		t.Fatal(err)
	}
	second.wait("post/")
	listener.wait("second")
}
