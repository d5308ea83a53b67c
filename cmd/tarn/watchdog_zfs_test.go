//go:build zfs

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/zfs/zfstest"
)

// TestZFSWatchdogSuspended: a server that nobody writes to notices that its pool is suspended, says what it
// waits for and does not feed the watchdog of systemd; and after zpool clear it does again.
func TestZFSWatchdogSuspended(t *testing.T) {
	pool := zfstest.NewStarving(t, "-o", "failmode=wait")
	dataset := pool.Dataset(t, "node")
	n := listenNotify(t)
	const watchdog = 4 * time.Second
	c := startChildWith(t, func(cmd *exec.Cmd) {
		cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+n.path, fmt.Sprintf("WATCHDOG_USEC=%d", watchdog.Microseconds()))
	}, "--data-dir="+filepath.Join(pool.Path("node"), "data"), "--dataset="+dataset)
	n.await(t, "WATCHDOG=1")

	other := exec.Command("dd", "if=/dev/urandom", "of="+filepath.Join(pool.Path("node"), "other"), "bs=128k", "count=64", "conv=fsync")
	pool.Starve(t)
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	fed := false
	feed := func() {
		if !fed {
			fed = true
			pool.Feed(t)
			zfstest.Run(t, "zpool", "clear", pool.Name)
			other.Wait() // whether it has failed does not matter
		}
	}
	t.Cleanup(feed) // what hangs can not be ended
	n.await(t, "STATUS=hanging")
	if health := zfstest.Run(t, "zpool", "list", "-Ho", "health", pool.Name); health != "SUSPENDED" {
		t.Errorf("the pool is %s", health)
	}
	for _, m := range n.await(t, "STATUS=hanging") {
		if strings.Contains(m, "WATCHDOG=1") {
			t.Errorf("the watchdog is fed: %q", m)
		}
	}
	feed()
	n.await(t, "WATCHDOG=1")
	if log, code := c.end(t, syscall.SIGTERM); code != exitOK || !strings.Contains(log, "fed again") || !strings.Contains(log, "fdatasync of") {
		t.Errorf("exit code %d\n%s", code, log)
	}
}
