//go:build zfs

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tarn-kv/tarn/zfs/zfstest"
)

// zfsStore is a data directory on a dataset of its own, with a store that no server has open.
type zfsStore struct {
	t            *testing.T
	pool         *zfstest.Pool
	dataset, dir string
}

func newZFSStore(t *testing.T) *zfsStore {
	pool := zfstest.New(t)
	s := &zfsStore{t, pool, pool.Dataset(t, "node"), filepath.Join(pool.Path("node"), "data")}
	c := startChild(t, "--data-dir="+s.dir)
	if err := put(t, (&running{url: c.url}).client(t), "key", "value"); err != nil {
		t.Fatal(err)
	}
	if log, code := c.end(t, syscall.SIGTERM); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, log)
	}
	return s
}

// snapshot runs a command of tarn snapshot that must succeed.
func (s *zfsStore) snapshot(args ...string) (stdout, stderr string) {
	s.t.Helper()
	code, out, errs := s.try(args...)
	if code != exitOK {
		s.t.Fatalf("tarn snapshot %s: exit code %d: %s", strings.Join(args, " "), code, errs)
	}
	return out, errs
}

func (s *zfsStore) try(args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	return tarn(s.t, nil, append([]string{"snapshot", args[0], "--data-dir=" + s.dir}, args[1:]...)...)
}

func (s *zfsStore) create(args ...string) string {
	s.t.Helper()
	out, _ := s.snapshot(append([]string{"create"}, args...)...)
	return strings.TrimSpace(out)
}

// all are the names of all snapshots, those of others too, in the order of their making.
func (s *zfsStore) all() []string {
	s.t.Helper()
	out := zfstest.Run(s.t, "zfs", "list", "-H", "-o", "name", "-t", "snapshot", "-s", "createtxg", s.dataset)
	var names []string
	for line := range strings.Lines(out) {
		_, name, _ := strings.Cut(strings.TrimSpace(line), "@")
		names = append(names, name)
	}
	return names
}

// What somebody uses is kept, by destroy with exit code 4 and by prune with the reason, and
// goes when it is free.
func TestZFSSnapshotInUse(t *testing.T) {
	s := newZFSStore(t)
	uses := []struct {
		name  string
		begin func(t *testing.T, snapshot string) (end func())
	}{
		{"held", func(t *testing.T, name string) func() {
			s.snapshot("hold", name)
			return func() { s.snapshot("release", name) }
		}},
		{"held by another tool", func(t *testing.T, name string) func() {
			zfstest.Run(t, "zfs", "hold", "zrepl_last_received_J_pull", s.dataset+"@"+name)
			return func() { zfstest.Run(t, "zfs", "release", "zrepl_last_received_J_pull", s.dataset+"@"+name) }
		}},
		{"origin of a clone", func(t *testing.T, name string) func() {
			clone := s.pool.Name + "/clone"
			zfstest.Run(t, "zfs", "clone", s.dataset+"@"+name, clone)
			return func() { zfstest.Run(t, "zfs", "destroy", clone) }
		}},
		{"being sent", func(t *testing.T, name string) func() { return sendSlowly(t, s.dataset+"@"+name) }},
		{"open file", func(t *testing.T, name string) func() {
			f, err := os.Open(filepath.Join(s.pool.Path("node"), ".zfs", "snapshot", name, "data", treeFile))
			if err != nil {
				t.Fatal(err)
			}
			return func() { f.Close() }
		}},
	}
	for _, use := range uses {
		t.Run(use.name, func(t *testing.T) {
			name := s.create()
			newer := s.create() // the newest is kept in any case
			end := use.begin(t, name)
			code, _, errs := s.try("destroy", name)
			if code != exitSnapshotKept || !strings.Contains(errs, name) {
				t.Errorf("destroy: exit code %d: %s", code, errs)
			}
			out, _ := s.snapshot("prune", "--keep-last=1")
			if !strings.Contains(out, "kept "+name+": ") {
				t.Errorf("prune does not say why it is kept:\n%s", out)
			}
			if have := s.all(); !slices.Contains(have, name) {
				t.Fatalf("it is gone, left are %q", have)
			}
			end()
			s.snapshot("destroy", name)
			if have := s.all(); !slices.Equal(have, []string{newer}) {
				t.Errorf("left are %q", have)
			}
			s.snapshot("destroy", newer)
		})
	}
}

// sendSlowly begins to send a snapshot to a reader that does not read on.
func sendSlowly(t *testing.T, snapshot string) (end func()) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	send := exec.Command("zfs", "send", snapshot)
	send.Stdout = w
	if err := send.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return func() {
		send.Process.Kill()
		r.Close()
		send.Wait()
	}
}

// With the dataset not mounted nothing is made in the directory below the mount point, and
// all is there again once it is mounted.
func TestZFSNotMounted(t *testing.T) {
	s := newZFSStore(t)
	name := s.create()
	zfstest.Run(t, "zfs", "unmount", s.dataset)
	for _, args := range [][]string{
		{"serve", "--data-dir=" + s.dir, "--dataset=" + s.dataset, "--listen-client-urls=http://127.0.0.1:0"},
		{"snapshot", "create", "--data-dir=" + s.dir, "--dataset=" + s.dataset},
	} {
		code, _, errs := tarn(t, nil, args...)
		if code == exitOK || !strings.Contains(errs, "zfs mount "+s.dataset) {
			t.Errorf("tarn %s: exit code %d: %s", args[0], code, errs)
		}
	}
	if entries, err := os.ReadDir(s.pool.Path("node")); err == nil && len(entries) > 0 {
		t.Errorf("below the mount point there is %v now", entries)
	}
	code, out, errs := tarn(t, nil, "snapshot", "list", "--dataset="+s.dataset)
	if code != exitOK || !strings.Contains(out, name) {
		t.Errorf("list: exit code %d: %s%s", code, out, errs)
	}
	if code, out, errs := tarn(t, nil, "snapshot", "verify", "--data-dir="+s.dir, "--dataset="+s.dataset, name); code != exitOK {
		t.Errorf("verify: exit code %d: %s%s", code, out, errs)
	}
	zfstest.Run(t, "zfs", "mount", s.dataset)
	c := startChild(t, "--data-dir="+s.dir, "--dataset="+s.dataset)
	if v := get(t, (&running{url: c.url}).client(t), "key"); v != "value" {
		t.Errorf("after mounting again the value is %q", v)
	}
	if log, code := c.end(t, syscall.SIGTERM); code != exitOK {
		t.Errorf("exit code %d\n%s", code, log)
	}
}
