package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/zfs"
)

// TestRestoreAsRecorded: what tarn snapshot verify calls damaged by its record is not restored, and no key
// comes out of it.
func TestRestoreAsRecorded(t *testing.T) {
	snapshotWorlds(t, func(t *testing.T, dir string, flags []string) {
		name := createSnapshot(t, flags)
		from := openSource(t, dir, flags)
		wrong := zfs.Verification{Time: time.Now(), Revision: 6, Hash: 1}
		if err := from.SetProperty(t.Context(), name, zfs.PropVerified, wrong.String()); err != nil {
			t.Fatal(err)
		}
		snapshotCommand(t, exitSnapshotDamaged, flags, "verify", name)
		for _, args := range [][]string{{name}, {name, "--dry-run"}, {name, "--key=/registry/"}} {
			_, errs := restore(t, exitRestoreSnapshot, flags, args...)
			if !strings.Contains(errs, "when it was verified") {
				t.Errorf("%q: %s", args, errs)
			}
		}
	})
}

// TestRestoreChangedFiles: a copy whose bytes are not those that were copied is refused, by its name and by its path.
func TestRestoreChangedFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	newStore(t, dir)
	flags := []string{"--data-dir=" + dir, "--copies"}
	name := createSnapshot(t, flags)
	path := filepath.Join(dir+"-snapshots", name)
	if err := os.WriteFile(filepath.Join(path, "added"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, arg := range []string{name, path} {
		for _, more := range []string{"--dry-run", "--key=/registry/"} {
			if _, errs := restore(t, exitRestoreSnapshot, flags, arg, more); !strings.Contains(errs, "added") {
				t.Errorf("%s %s: %s", arg, more, errs)
			}
		}
	}
}

// TestRestoreDamagedSnapshotExit: reading a damaged snapshot has the code of a damaged snapshot.
func TestRestoreDamagedSnapshotExit(t *testing.T) {
	snapshotWorlds(t, func(t *testing.T, dir string, flags []string) {
		name := createSnapshot(t, flags)
		from := openSource(t, dir, flags)
		copied, cleanup, err := from.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		defer cleanup()
		if err := os.Truncate(filepath.Join(copied, treeFile), 9_000); err != nil {
			t.Fatal(err)
		}
		restore(t, exitRestoreSnapshot, flags, name, "--key=/registry/")
		restore(t, exitRestoreSnapshot, flags, name)
		snapshotCommand(t, exitRestoreSnapshot, flags, "diff", name)
	})
}

func TestRestorePathThatIsNone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	flags := []string{"--data-dir=" + dir}
	_, errs := restore(t, exitNoSnapshot, flags, "/nonexist/")
	if !strings.Contains(errs, "no such directory") {
		t.Error(errs)
	}
	file := filepath.Join(t.TempDir(), "snap.db")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"--dry-run", "--key=a"} {
		if _, errs = restore(t, exitRestoreSnapshot, flags, file, more); !strings.Contains(errs, "tarn import etcd "+file) {
			t.Error(errs)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the data directory was made")
	}
}

// TestRestoreToDirOutside: no state comes to be in the data directory, among the snapshots, or in the source.
func TestRestoreToDirOutside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	newStore(t, dir)
	flags := []string{"--data-dir=" + dir, "--copies"}
	name := createSnapshot(t, flags)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	newStore(t, other)
	for _, c := range [][2]string{
		{name, filepath.Join(dir, "sub", "sub")}, {name, filepath.Join(link, "sub")},
		{name, dir + "-snapshots"}, {name, filepath.Join(dir+"-snapshots", "x")}, {other, filepath.Join(other, "x")},
	} {
		_, errs := restore(t, exitRestoreTarget, flags, c[0], "--to-dir="+c[1])
		if !strings.Contains(errs, "outside") {
			t.Errorf("%q: %s", c, errs)
		}
	}
	restore(t, 0, flags, name, "--to-dir="+dir+"-drill")
}

// TestRestoreAmongForeignFiles: as a server does that begins a store in the wrong directory, it is told.
func TestRestoreAmongForeignFiles(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	newStore(t, source)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "index.html"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--data-dir=" + dir, "--copies"}
	for _, more := range []string{"--dry-run", "--in-place"} {
		if _, errs := restore(t, 0, flags, source, more); !strings.Contains(errs, "is it the right directory") || !strings.Contains(errs, "index.html") {
			t.Errorf("%s: %s", more, errs)
		}
	}
	if _, errs := restore(t, 0, flags, source, "--dry-run"); errs != "" {
		t.Errorf("now it holds a store: %s", errs)
	}
}

// TestRestoreByPathKnowsSnapshots: with a path as NAME, the data directory's own snapshots still tell what was handed
// out, and which store it held.
func TestRestoreByPathKnowsSnapshots(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	_, id := newStore(t, dir)
	old := filepath.Join(t.TempDir(), "old")
	if err := os.CopyFS(old, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--data-dir=" + dir, "--copies"}
	restore(t, 0, flags, old, "--bump-revision=1000000000000")
	createSnapshot(t, flags)
	if err := os.Truncate(filepath.Join(dir, treeFile), 9_000); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "wal")); err != nil {
		t.Fatal(err)
	}
	out, _ := restore(t, 0, flags, old, "--output=json", "--dry-run", "--bump-revision=2")
	var v restoreVerdict
	if err := json.Unmarshal([]byte(out), &v); err != nil || v.Revision <= 1_000_000_000_000 {
		t.Errorf("%v: %s", err, out)
	}
	other := filepath.Join(t.TempDir(), "other")
	newStore(t, other)
	_, errs := restore(t, exitRestoreTarget, flags, other)
	if !strings.Contains(errs, "--other-store") || !strings.Contains(errs, id) {
		t.Error(errs)
	}
	restore(t, 0, flags, other, "--other-store")
}

// TestKeysThatAreNotText: JSON keeps all bytes of a key.
func TestKeysThatAreNotText(t *testing.T) {
	const key = "bin\xff\xfe"
	dir := filepath.Join(t.TempDir(), "data")
	newStore(t, dir)
	flags := []string{"--data-dir=" + dir, "--copies"}
	before := createSnapshot(t, flags)
	s := serveDir(t, dir, "")
	if err := put(t, s.client(t), key, "x"); err != nil {
		t.Fatal(err)
	}
	s.end(t)
	after := createSnapshot(t, flags)
	printed, _ := restore(t, 0, flags, after, "--key=bin", "--prefix", "--output=json")
	compared, _ := snapshotCommand(t, 0, flags, "diff", before, after, "--output=json")
	for _, out := range []string{printed, compared} {
		var r struct{ KeyBase64 []byte }
		if err := json.Unmarshal([]byte(out), &r); err != nil || !bytes.Equal(r.KeyBase64, []byte(key)) {
			t.Errorf("%q, %v from %s", r.KeyBase64, err, out)
		}
	}
	if out, _ := restore(t, 0, flags, after, "--key=/registry/", "--output=json"); strings.Contains(out, "keyBase64") {
		t.Errorf("of text: %s", out)
	}
}

// TestRestoreFromDirOfServer: the advice is about the directory that is in use.
func TestRestoreFromDirOfServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	serveDir(t, dir, "")
	to := filepath.Join(t.TempDir(), "to")
	_, errs := restore(t, exitRestoreInUse, []string{"--data-dir=" + to}, dir+"/", "--to-dir="+to+"2")
	if strings.Contains(errs, "use --to-dir") || !strings.Contains(errs, "from which was to be restored") {
		t.Error(errs)
	}
	flags := []string{"--data-dir=" + dir, "--copies"}
	source := filepath.Join(t.TempDir(), "source")
	newStore(t, source)
	_, errs = restore(t, exitRestoreInUse, flags, source)
	if n := strings.Count(errs, "stop the server") + strings.Count(errs, "stop that process"); n != 1 {
		t.Errorf("told %d times: %s", n, errs)
	}
}

// TestRestoreOwnerNote: root is told whom a directory belongs to that it has made.
func TestRestoreOwnerNote(t *testing.T) {
	v := restoreVerdict{Dir: "d", NewDir: true, UID: 4321}
	want := ""
	if os.Geteuid() == 0 {
		want = fmt.Sprint("user ", v.UID)
	}
	if note := v.noteOwner(); !strings.Contains(note, want) || (note == "") != (want == "") {
		t.Errorf("%q", note)
	}
	v.fill(store.RestoreReport{Made: false})
	if note := v.noteOwner(); note != "" {
		t.Errorf("%q", note)
	}
}
