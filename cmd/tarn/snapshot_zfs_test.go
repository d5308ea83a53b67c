//go:build zfs

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tarn-kv/tarn/zfs/zfstest"
)

func TestZFSSnapshotCommands(t *testing.T) {
	pool := zfstest.New(t)
	dataset := pool.Dataset(t, "tarn")
	dir := filepath.Join(pool.Path("tarn"), "store")
	testSnapshotCommands(t, dir, dataset, []string{"--data-dir=" + dir})
}

// Copies work on ZFS, too, for those without rights on the dataset.
func TestZFSSnapshotCopies(t *testing.T) {
	pool := zfstest.New(t)
	pool.Dataset(t, "tarn")
	dir := filepath.Join(pool.Path("tarn"), "data")
	testSnapshotCommands(t, dir, dir, []string{"--data-dir=" + dir, "--copies"})
}

func TestZFSSnapshotOfRunningServer(t *testing.T) {
	pool := zfstest.New(t)
	pool.Dataset(t, "tarn")
	o := testOptions(t)
	o.dataDir = pool.Path("tarn")
	r := start(t, o, nil)
	if err := put(t, r.client(t), "/registry/pods/default/a", "one"); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--data-dir=" + o.dataDir}
	out, errs := snapshotCommand(t, 0, flags, "create", "--endpoint="+r.url)
	if errs != "" {
		t.Error(errs)
	}
	if err := put(t, r.client(t), "/registry/pods/default/a", "two"); err != nil {
		t.Fatal(err)
	}
	opts := defaultSourceOptions()
	opts.dataDir = o.dataDir
	if got := readSnapshot(t, opts, strings.TrimSpace(out)); got != "one" {
		t.Errorf("the snapshot holds %q", got)
	}
}

// nobody is a user without rights but those that a test gives.
const nobody = 65534

// asUser runs a command of tarn as nobody.
func asUser(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Dir = "/"
	cmd.Env = []string{runMain + "=1", "PATH=/usr/bin:/bin"} // as for an ordinary user: no sbin
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(out)
}

// TestZFSSnapshotRights takes, lists, holds and destroys as a user with the rights
// that the manual names, and as one without.
func TestZFSSnapshotRights(t *testing.T) {
	pool := zfstest.New(t)
	dataset := pool.Dataset(t, "tarn")
	dir := pool.Path("tarn")
	newStore(t, dir)
	if err := exec.Command("chown", "-R", strconv.Itoa(nobody), dir).Run(); err != nil {
		t.Fatal(err)
	}
	flag := "--data-dir=" + dir
	code, out := asUser(t, "snapshot", "create", flag)
	if code != exitFailed || !strings.Contains(out, "permission denied") || !strings.Contains(out, "zfs allow") {
		t.Errorf("create without rights: exit code %d: %s", code, out)
	}
	if code, out = asUser(t, "snapshot", "list", flag); code != 0 || !strings.Contains(out, "has no snapshots") {
		t.Errorf("list without rights: exit code %d: %s", code, out)
	}
	zfstest.Run(t, "zfs", "allow", "-u", strconv.Itoa(nobody), "snapshot,mount,hold,release,userprop,destroy", dataset)
	for _, args := range [][]string{
		{"create", "mine"}, {"create", "--hold"}, {"hold", "mine"}, {"release", "mine"}, {"list"}, {"show", "mine"}, {"destroy", "mine"}, {"prune", "--keep-last=1"},
	} {
		if code, out := asUser(t, append(append([]string{"snapshot"}, args...), flag)...); code != 0 {
			t.Errorf("%q: exit code %d: %s", args, code, out)
		}
	}
	if list := listJSON(t, []string{flag}); len(list.Snapshots) != 1 || list.Snapshots[0].StoreID == "" {
		t.Errorf("left %+v", list)
	}
}
