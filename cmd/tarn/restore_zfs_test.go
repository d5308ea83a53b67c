//go:build zfs

package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tarn-kv/tarn/zfs/zfstest"
)

// fill makes the store of a stopped server larger, by values that can not be compressed.
func (s *zfsStore) fill(values int) {
	s.t.Helper()
	c := startChild(s.t, "--data-dir="+s.dir)
	cl := (&running{url: c.url}).client(s.t)
	for i := range values {
		value := make([]byte, 1<<20)
		rand.Read(value)
		if err := put(s.t, cl, fmt.Sprintf("/registry/configmaps/default/c%d", i), string(value)); err != nil {
			s.t.Fatal(err)
		}
	}
	if log, code := c.end(s.t, syscall.SIGTERM); code != exitOK {
		s.t.Fatalf("exit code %d\n%s", code, log)
	}
}

// wantCheck checks the data directory and returns what tarn check prints.
func (s *zfsStore) wantCheck() string {
	s.t.Helper()
	code, out, errs := tarn(s.t, nil, "check", s.dir)
	if code != exitOK {
		s.t.Fatalf("check: exit code %d: %s%s", code, out, errs)
	}
	return out
}

// TestZFSRestore: a snapshot of a running server is verified through .zfs, compared and restored, under
// a client that goes on; and back again.
func TestZFSRestore(t *testing.T) {
	s := newZFSStore(t)
	testRestoreUnderClients(t, s.dir, []string{"--data-dir=" + s.dir})
	if out, _ := s.snapshot("verify", "--all"); strings.Count(out, "OK ") != len(s.all()) {
		t.Errorf("of %q:\n%s", s.all(), out)
	}
}

// TestZFSRestoreAtRefquota: without room for the copy nothing is changed, and it says what to do.
func TestZFSRestoreAtRefquota(t *testing.T) {
	s := newZFSStore(t)
	s.fill(30)
	name, before := s.create(), s.wantCheck()
	zfstest.Run(t, "zfs", "set", "refquota=40M", s.dataset)
	code, _, errs := tarn(t, nil, "restore", "--data-dir="+s.dir, name)
	if code != exitFailed || !strings.Contains(errs, "refquota") || !strings.Contains(errs, "nothing was changed") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if after := s.wantCheck(); after != before {
		t.Errorf("changed:\n%s\ninstead of\n%s", after, before)
	}
	if left, err := filepath.Glob(filepath.Join(s.dir, "*restore*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
	if have := s.all(); !slices.Equal(have, []string{name}) {
		t.Errorf("snapshots %q", have)
	}
	zfstest.Run(t, "zfs", "set", "refquota=none", s.dataset)
	used := zfstest.Run(t, "zfs", "list", "-Hpo", "used", s.dataset)
	restore(t, 0, []string{"--data-dir=" + s.dir}, name)
	t.Logf("used before %s, after %s; saved by cloned blocks %s", used, zfstest.Run(t, "zfs", "list", "-Hpo", "used", s.dataset),
		zfstest.Run(t, "zpool", "get", "-Hpo", "value", "bclonesaved", s.pool.Name))
	s.wantCheck()
}

// TestZFSRestoreNotMounted: nothing is restored into the directory below a mount point.
func TestZFSRestoreNotMounted(t *testing.T) {
	s := newZFSStore(t)
	name := s.create()
	zfstest.Run(t, "zfs", "unmount", s.dataset)
	code, _, errs := tarn(t, nil, "restore", "--dataset="+s.dataset, "--data-dir="+s.dir, name)
	if code != exitFailed || !strings.Contains(errs, "zfs mount "+s.dataset) {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if code, _, _ = tarn(t, nil, "restore", "--data-dir="+s.dir, name); code == exitOK {
		t.Error("restored without the dataset")
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was made below the mount point: %v", err)
	}
	// Root can read the snapshot all the same.
	to := filepath.Join(t.TempDir(), "to")
	restore(t, 0, []string{"--dataset=" + s.dataset, "--data-dir=" + s.dir}, name, "--to-dir="+to)
	zfstest.Run(t, "zfs", "mount", s.dataset)
	s.wantCheck()
}

// TestZFSRestoreWithoutRights: the owner of the files can restore without rights on the dataset, and
// is told that there is no snapshot of the state before. Somebody else can not.
func TestZFSRestoreWithoutRights(t *testing.T) {
	const owner, other, group = 4321, 4322, 4323
	s := newZFSStore(t)
	err := filepath.WalkDir(s.dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, owner, group))
	})
	if err != nil {
		t.Fatal(err)
	}
	name := s.create()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(s.pool.Path("node"), "tarn")
	if text, err := os.ReadFile(self); err != nil || os.WriteFile(exe, text, 0o755) != nil {
		t.Fatal("copy the program: ", err)
	}
	t.Setenv(runMain, "1")
	if out, err := zfstest.TryAs(other, group, exe, "restore", "--data-dir="+s.dir, name); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("somebody else: %s, %v", out, err)
	}
	out, err := zfstest.TryAs(owner, group, exe, "restore", "--data-dir="+s.dir, name)
	if err != nil || !strings.Contains(out, "no snapshot of the present state was made") || !strings.Contains(out, "restored "+name) {
		t.Errorf("the owner: %s, %v", out, err)
	}
	if have := s.all(); !slices.Equal(have, []string{name}) {
		t.Errorf("snapshots %q", have)
	}
	out, err = zfstest.TryAs(owner, group, exe, "snapshot", "verify", "--data-dir="+s.dir, name)
	if err != nil || !strings.HasPrefix(out, "OK ") {
		t.Errorf("verify: %s, %v", out, err)
	}
	// What root restores still belongs to the owner.
	restore(t, 0, []string{"--data-dir=" + s.dir}, name)
	if out, err := zfstest.TryAs(owner, group, exe, "check", s.dir); err != nil {
		t.Errorf("check by the owner: %s, %v", out, err)
	}
}
