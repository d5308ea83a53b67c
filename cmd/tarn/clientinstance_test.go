package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarn-kv/tarn/store/vfs"
	"github.com/tarn-kv/tarn/zfs"
)

// copyOfRunning is a server, and another one on a copy of its data: the same store, and the same ID.
func copyOfRunning(t *testing.T, dir string) (ours, drill *running) {
	t.Helper()
	other := filepath.Join(t.TempDir(), "drill")
	if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	ours, drill = serveDir(t, dir, ""), serveDir(t, other, "")
	if err := put(t, drill.client(t), "only there", "x"); err != nil {
		t.Fatal(err)
	}
	return ours, drill
}

// Neither the data nor the revision of another server comes into a snapshot, not even those of a copy of
// the same store.
func TestSnapshotOfOtherServer(t *testing.T) {
	snapshotWorlds(t, func(t *testing.T, dir string, flags []string) {
		ours, drill := copyOfRunning(t, dir)
		copies := flags[1] == "--copies"
		want := exitOK
		if copies {
			want = exitFailed
		}
		out, errs := snapshotCommand(t, want, flags, "create", "--endpoint="+drill.url)
		if !strings.Contains(errs, "another server than the one that has the data directory "+dir) || !strings.Contains(errs, drill.url) {
			t.Errorf("create prints %s%s", out, errs)
		}
		switch {
		case copies:
			if left, _ := filepath.Glob(dir + "-snapshots/*"); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		case !strings.HasSuffix(out, "-r0\n"), !strings.Contains(errs, "its revision is unknown"):
			t.Errorf("create prints %s%s", out, errs)
		}
		out, errs = snapshotCommand(t, exitOK, flags, "create", "--endpoint="+ours.url, "-o=json")
		var s zfs.Snapshot
		if err := json.Unmarshal([]byte(out), &s); err != nil || s.Revision != 6 || errs != "" {
			t.Errorf("create prints %s%s, %v", out, errs, err)
		}
	})
}

// A directory that is in use by no server is not asked for at the endpoint.
func TestSnapshotWhileNoServerHasTheDirectory(t *testing.T) {
	snapshotWorlds(t, func(t *testing.T, dir string, flags []string) {
		withoutPatience(t)
		other := start(t, testOptions(t), nil)
		lock, err := vfs.Lock(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		want := exitOK
		if flags[1] == "--copies" {
			want = exitFailed
		}
		_, errs := snapshotCommand(t, want, flags, "create", "--endpoint="+other.url)
		if !strings.Contains(errs, "that is no server") {
			t.Errorf("create prints %s", errs)
		}
	})
}

// A server of an older version, or one that was started on a full disk, has no instance in its lock file.
func TestSnapshotWhenTheInstanceIsUnknown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := serveDir(t, dir, "")
	if err := os.WriteFile(filepath.Join(dir, vfs.LockName), []byte("pid 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs := snapshotCommand(t, exitOK, []string{"--data-dir=" + dir, "--copies"}, "create", "--endpoint="+s.url)
	if !strings.Contains(errs, "could not be told") {
		t.Errorf("create prints %s", errs)
	}
}

// Keys are not put into another server than the one that has the data directory, unasked.
func TestRestoreKeyPutIntoOtherServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	newStore(t, dir)
	ours, drill := copyOfRunning(t, dir)
	flags := []string{"--data-dir=" + dir, "--copies"}
	name := createSnapshot(t, flags, "--endpoint="+ours.url)
	args := []string{name, "--key=/registry/pods/default/p1", "--put", "--overwrite", "--endpoint=" + drill.url}
	_, errs := restore(t, exitRestoreTarget, flags, args...)
	if !strings.Contains(errs, "nothing was written") || !strings.Contains(errs, "--other-store") {
		t.Error(errs)
	}
	out, _ := restore(t, exitOK, flags, append(args, "--other-store")...)
	if !strings.Contains(out, "1 key(s) were put into "+drill.url+" (cluster ") {
		t.Error(out)
	}
	// Nobody has the directory: the server can be on another machine.
	ours.end(t)
	restore(t, exitOK, flags, args...)
}

// A copy is refused that would leave the server less than it needs.
func TestSnapshotLeavesRoom(t *testing.T) {
	for _, running := range []bool{true, false} {
		dir := filepath.Join(t.TempDir(), "data")
		newStore(t, dir)
		opts := snapshotCreateOptions{sourceOptions: defaultSourceOptions(), server: defaultClientOptions(), output: outputText}
		opts.dataDir, opts.copies = dir, true
		if running {
			opts.server.endpoint = mustURLs(t, serveDir(t, dir, "").url)[0]
		} else if shared, err := vfs.SharesBlocks(dir, filepath.Join(dir, treeFile)); shared || err != nil {
			continue
		}
		free := uint64(256 << 20)
		opts.usage = func(string) (vfs.Usage, error) { return vfs.Usage{Total: math.MaxInt64, Free: free}, nil }
		err := runSnapshotCreate(t.Context(), opts, process{stdout: &syncBuffer{}, stderr: &syncBuffer{}})
		if err == nil || !strings.Contains(err.Error(), "the server needs") || !strings.Contains(err.Error(), "no snapshot is made") {
			t.Errorf("server running %v: %v", running, err)
		}
		if left, _ := filepath.Glob(dir + "-snapshots/*"); len(left) > 0 {
			t.Errorf("left %v", left)
		}
		free *= 2
		if err := runSnapshotCreate(t.Context(), opts, process{stdout: &syncBuffer{}, stderr: &syncBuffer{}}); err != nil {
			t.Errorf("server running %v: %v", running, err)
		}
	}
}
