package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// status is what etcdutl says about a snapshot.
type status struct {
	Hash      uint64
	Revision  int
	TotalKey  int
	TotalSize int
	Version   string
}

// A snapshot is read by etcdutl, restored by it, and served by an etcd with the
// same keys and the same hash.
func TestSnapshot(t *testing.T) {
	s := start(t)
	s.fill("k", 50)
	s.ctl("del", "k7")
	s.ctl("compaction", "20")
	lease := grant(s, 600)
	s.ctl("put", "leased", "x", "--lease="+lease)
	file := filepath.Join(t.TempDir(), "snapshot.db")
	if out := s.ctl("snapshot", "save", file); !strings.Contains(out, "Snapshot saved at "+file) {
		t.Errorf("save: %s", out)
	}
	st := decode[status](t, utl(t, "snapshot", "status", file, "-w", "json"))
	if st.Revision != 53 || st.TotalKey == 0 || st.Hash == 0 || st.Version != "3.7.0" {
		t.Errorf("status: %+v", st)
	}
	for _, form := range []string{"simple", "fields", "table"} {
		if out := utl(t, "snapshot", "status", file, "-w", form); !strings.Contains(out, "53") {
			t.Errorf("status in form %s: %s", form, out)
		}
	}
	hash := hashOfFile(t, file, 53)
	if hash != s.hashKV(53) {
		t.Errorf("hashkv of the file: %d, of the server: %d", hash, s.hashKV(53))
	}

	dir := filepath.Join(t.TempDir(), "restored")
	utl(t, "snapshot", "restore", file, "--data-dir="+dir)
	etcd := startProgram(t, realEtcd(t), dir)
	if got, want := etcd.ctl("get", "--prefix", "", "-w", "simple"), s.ctl("get", "--prefix", ""); got != want {
		t.Errorf("keys after the restore:\n got %s\nwant %s", got, want)
	}
	if got := etcd.hashKV(53); got != hash {
		t.Errorf("hash after the restore: %d, want %d", got, hash)
	}
	etcd.expect("found 1 leases | "+lease, "lease", "list")
}

// hashOfFile returns the hash of the keys of a snapshot at a revision. etcdutl
// changes the file that it takes the hash of, so it gets a copy.
func hashOfFile(t *testing.T, file string, revision int) uint64 {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(copied, content, 0o600); err != nil {
		t.Fatal(err)
	}
	out := utl(t, "hashkv", copied, fmt.Sprintf("--rev=%d", revision), "-w", "json")
	return decode[struct{ Hash uint64 }](t, out).Hash
}

// The restore can raise the revision, so that no client sees it go back.
func TestSnapshotRestoreBumped(t *testing.T) {
	s := start(t)
	s.fill("k", 3)
	file := filepath.Join(t.TempDir(), "snapshot.db")
	s.ctl("snapshot", "save", file)
	dir := filepath.Join(t.TempDir(), "restored")
	utl(t, "snapshot", "restore", file, "--data-dir="+dir, "--bump-revision=1000", "--mark-compacted")
	etcd := startProgram(t, realEtcd(t), dir)
	etcd.ctl("put", "next", "x")
	if out := etcd.ctl("get", "next", "-w", "fields"); !strings.Contains(out, `"ModRevision" : 1005`) {
		t.Errorf("revision after the restore:\n%s", out)
	}
	etcd.refused("required revision has been compacted", "get", "k0", "--rev=4")
}

// A file that was damaged is refused by its hash.
func TestSnapshotDamaged(t *testing.T) {
	s := start(t)
	s.fill("k", 3)
	file := filepath.Join(t.TempDir(), "snapshot.db")
	s.ctl("snapshot", "save", file)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	copy(content[len(content)/2:], "damage")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	utlRefused(t, "expected sha256", "snapshot", "restore", file, "--data-dir="+filepath.Join(t.TempDir(), "restored"))
}

// Snapshots of one state have one hash of keys, whenever they are made.
func TestSnapshotAfterRestart(t *testing.T) {
	s := start(t)
	s.fill("k", 10)
	hash := s.hashKV(11)
	s.stop()
	again := startProgram(t, binary(t, "etcd"), s.dir)
	if got := again.hashKV(11); got != hash {
		t.Errorf("hash after a restart: %d, want %d", got, hash)
	}
	file := filepath.Join(t.TempDir(), "snapshot.db")
	again.ctl("snapshot", "save", file)
	if got := hashOfFile(t, file, 11); got != hash {
		t.Errorf("hash of the snapshot: %d, want %d", got, hash)
	}
}
