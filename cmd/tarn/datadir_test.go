package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// A directory that can not be one is a mistake in the settings.
func TestDataDirIsNone(t *testing.T) {
	dir := t.TempDir()
	file, dangling := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "nowhere"), dangling); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, dir, want string }{
		{"a file", file, file + " is a file and not a directory"},
		{"below a file", filepath.Join(file, "data"), file + " is a file and not a directory"},
		{"a link to nowhere", dangling, "nowhere, which does not exist"},
		{"below a link to nowhere", filepath.Join(dangling, "a", "b"), dangling + " is a link"},
	} {
		code, _, errs := tarn(t, nil, "serve", "--listen-client-urls=http://127.0.0.1:0", "--data-dir="+tt.dir)
		if code != exitUsage || !strings.Contains(errs, "--data-dir") || !strings.Contains(errs, tt.want) {
			t.Errorf("%s: exit code %d: %s", tt.name, code, errs)
		}
	}
	if err := canBeDir(filepath.Join(dir, "new", "deep")); err != nil {
		t.Errorf("a directory that is to be made: %v", err)
	}
}

// A service that nobody told where its data are makes no store in the root directory.
func TestServiceWithoutDataDir(t *testing.T) {
	t.Chdir("/")
	code, _, errs := tarn(t, nil, "serve", "--listen-client-urls=http://127.0.0.1:0")
	if code != exitUsage || !strings.Contains(errs, "tarn init POOL/NAME") || !strings.Contains(errs, installedConfigFile) {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, err := os.Stat("/" + defaultDataDir); err == nil {
		t.Errorf("there is /%s", defaultDataDir)
	}
}

// A start that fails for an address leaves nothing behind, not even what it had
// bound before.
func TestFailedStartLeavesNoStore(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	data, socket := filepath.Join(dir, "data"), filepath.Join(dir, "s")
	code, _, errs := tarn(t, nil, "serve", "--data-dir="+data,
		"--listen-client-urls=unix://"+socket, "--listen-metrics-urls=http://"+taken.Addr().String())
	if code != exitFailed || !strings.Contains(errs, "address already in use") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("the start left %v, %v", left, err)
	}
}

// Of two servers with the same settings the second says who has the directory.
func TestSecondServerNamesTheHolder(t *testing.T) {
	c := startChild(t, "--data-dir="+filepath.Join(t.TempDir(), "data"))
	dir := strings.TrimPrefix(c.Args[len(c.Args)-1], "--data-dir=")
	code, _, errs := tarn(t, nil, "serve", "--data-dir="+dir, "--listen-client-urls="+c.url)
	if code != exitInUse || !strings.Contains(errs, "pid ") || strings.Count(errs, "stop that process") != 1 {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// A socket can be in a data directory that is not there yet.
func TestSocketInDataDir(t *testing.T) {
	o := testOptions(t)
	o.listenClient = mustURLs(t, "unix://"+filepath.Join(o.dataDir, "tarn.sock"))
	r := start(t, o, nil)
	if code, _, errs := tarn(t, nil, "status", "--endpoint="+o.listenClient[0].String()); code != exitOK {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if strings.Contains(r.log.String(), "is it the right directory") {
		t.Errorf("the server warns of its own socket: %s", r.log)
	}
}

func TestDataDirOfEtcd(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "member"), 0o700); err != nil {
		t.Fatal(err)
	}
	code, _, errs := tarn(t, nil, "serve", "--data-dir="+dir, "--listen-client-urls=http://127.0.0.1:0")
	_, says, _ := strings.Cut(errs, "tarn: ") // behind the log
	if code != exitRefused || !strings.Contains(says, "etcd") || strings.Contains(says, "store-id") {
		t.Errorf("exit code %d: %s", code, says)
	}
}

func TestDataDirWarnings(t *testing.T) {
	const foreign, writable = "is it the right directory", "chmod go-w"
	for _, tt := range []struct {
		name  string
		files []string
		mode  os.FileMode
		want  string
	}{
		{"empty", nil, 0o700, ""},
		{"readable", nil, 0o755, ""},
		{"an empty file system", []string{"lost+found", "LOCK"}, 0o700, ""},
		{"something else's", []string{"index.html"}, 0o700, foreign},
		{"a store and more", []string{"tree.db", "notes"}, 0o700, ""},
		{"left of a restore", []string{"tree.db", "restore-staging"}, 0o700, "restore that did not come to its end"},
		{"amid the exchange of a restore", []string{"restore-journal.json", "before-restore-1", "restore-staging"}, 0o700, ""},
		{"group", nil, 0o770, writable},
		{"world", nil, 0o702, writable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, log := testOptions(t), &syncBuffer{}
			o.dataDir = t.TempDir()
			for _, name := range tt.files {
				if err := os.WriteFile(filepath.Join(o.dataDir, name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(o.dataDir, tt.mode); err != nil {
				t.Fatal(err)
			}
			newServing(o, nil, log).sayWhatIsOddInDir()
			if tt.want == "" && log.String() != "" || !strings.Contains(log.String(), tt.want) {
				t.Errorf("log %q", log)
			}
			if tt.want != "" && !strings.Contains(log.String(), o.dataDir) {
				t.Errorf("the log does not name the directory: %q", log)
			}
		})
	}
}

// TestRestoreSnapshot is the way that docs/running.md describes.
func TestRestoreSnapshot(t *testing.T) {
	r := start(t, testOptions(t), nil)
	c := r.client(t)
	if err := put(t, c, "lake", "tarn"); err != nil {
		t.Fatal(err)
	}
	var snapshot []byte
	stream, err := etcdserverpb.NewMaintenanceClient(c).Snapshot(t.Context(), &etcdserverpb.SnapshotRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		part, err := stream.Recv()
		if err != nil {
			break
		}
		snapshot = append(snapshot, part.Blob...)
	}
	if err := put(t, c, "lake", "another"); err != nil {
		t.Fatal(err)
	}
	r.end(t)

	o := testOptions(t)
	if err := errors.Join(os.Mkdir(o.dataDir, 0o700), os.WriteFile(filepath.Join(o.dataDir, "tree.db"), snapshot, 0o600)); err != nil {
		t.Fatal(err)
	}
	serve := []string{"serve", "--listen-client-urls=http://127.0.0.1:0", "--data-dir=" + o.dataDir}
	if code, _, errs := tarn(t, nil, serve...); code != exitDamaged {
		t.Errorf("a missing log: exit code %d: %s", code, errs)
	}
	o.allowMissingLog = true
	restored := start(t, o, nil)
	if v := get(t, restored.client(t), "lake"); v != "tarn" {
		t.Errorf("the restored value is %q", v)
	}
	if !strings.Contains(restored.log.String(), "take the setting away") {
		t.Errorf("no warning: %s", restored.log)
	}
	restored.end(t)

	o.allowMissingLog = false
	if v := get(t, start(t, o, nil).client(t), "lake"); v != "tarn" {
		t.Errorf("after a start without the setting the value is %q", v)
	}
}
