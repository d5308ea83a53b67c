//go:build zfs

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tarn-kv/tarn/zfs/zfstest"
)

// Users that every system has stand for those of the package.
const (
	initUser       = "nobody"
	initBackupUser = "daemon"
)

// initRun is one place for tarn init.
type initRun struct {
	t                      *testing.T
	dataset, mount, config string
}

func newInitRun(t *testing.T, pool *zfstest.Pool, name string) *initRun {
	return &initRun{t, pool.Name + "/" + name, pool.Path(name), filepath.Join(t.TempDir(), "etc", name+".yaml")}
}

// try runs tarn init with the flags that all these tests need.
func (r *initRun) try(args ...string) (code int, out, errs string) {
	r.t.Helper()
	return tarn(r.t, nil, append([]string{"init", r.dataset, "--user=" + initUser, "--backup-user=" + initBackupUser,
		"--mountpoint=" + r.mount, "--config-file=" + r.config}, args...)...)
}

func (r *initRun) must(args ...string) string {
	r.t.Helper()
	code, out, errs := r.try(args...)
	if code != exitOK {
		r.t.Fatalf("tarn init %q: exit code %d: %s", args, code, errs)
	}
	return out
}

func (r *initRun) refused(want string, args ...string) {
	r.t.Helper()
	if code, out, errs := r.try(args...); code != exitRefused || !strings.Contains(errs, want) {
		r.t.Errorf("tarn init %q: exit code %d: %s%s", args, code, out, errs)
	}
}

// commands are the lines that are no remarks.
func commands(out string) (lines []string) {
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// TestZFSInit: a dry run shows what is done and does nothing; a second run has nothing to do; what
// a person has changed is told and set back when asked for.
func TestZFSInit(t *testing.T) {
	r := newInitRun(t, zfstest.New(t), "tarn")
	dry := r.must("--refquota=128MiB", "--dry-run")
	if _, err := zfstest.Try("zfs", "list", r.dataset); err == nil {
		t.Fatal("a dry run made the dataset")
	}
	if out := r.must("--refquota=128MiB"); !slices.Equal(commands(out), commands(dry)) {
		t.Errorf("the dry run showed\n%s\nand this was done:\n%s", dry, out)
	}
	info, err := os.Stat(r.mount)
	if err != nil {
		t.Fatal(err)
	}
	nobody, err := lookupAccount("user", initUser)
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != nobody.uid || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory belongs to %d and has the mode %v", st.Uid, info.Mode())
	}
	if out := r.must(); !strings.HasPrefix(out, "# nothing to do") {
		t.Errorf("the second run: %s", out)
	}
	zfstest.Run(t, "zfs", "set", "recordsize=128K", r.dataset)
	zfstest.Run(t, "zfs", "allow", "-u", initBackupUser, "rollback", r.dataset)
	if out := r.must(); strings.Count(out, "# left alone: ") != 3 || len(commands(out)) > 0 {
		t.Errorf("after changes: %s", out)
	}
	if out := r.must("--reset"); len(commands(out)) != 3 {
		t.Errorf("reset: %s", out)
	}
	if out := r.must(); !strings.HasPrefix(out, "# nothing to do") {
		t.Errorf("after the reset: %s", out)
	}
	// An interrupted run is completed.
	zfstest.Run(t, "zfs", "inherit", "tarn-kv:setup", r.dataset)
	zfstest.Run(t, "zfs", "unallow", "-u", initBackupUser, r.dataset)
	if out := r.must(); len(commands(out)) != 3 {
		t.Errorf("after an interruption: %s", out)
	}
}

// TestZFSInitServes: the server that is started with the configuration file uses the dataset, and
// refuses to begin an empty store below its mount point.
func TestZFSInitServes(t *testing.T) {
	r := newInitRun(t, zfstest.New(t), "tarn")
	r.must()
	c := startChild(t, "--config-file="+r.config)
	if err := put(t, (&running{url: c.url}).client(t), "key", "value"); err != nil {
		t.Fatal(err)
	}
	if log, code := c.end(t, syscall.SIGTERM); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, log)
	}
	if out := r.must(); !strings.HasPrefix(out, "# nothing to do") {
		t.Errorf("with a store in it: %s", out)
	}
	zfstest.Run(t, "zfs", "unmount", r.dataset)
	code, _, errs := tarn(t, nil, "serve", "--config-file="+r.config, "--listen-client-urls=http://127.0.0.1:0")
	if code != exitRefused || !strings.Contains(errs, "zfs mount "+r.dataset) {
		t.Errorf("not mounted: exit code %d: %s", code, errs)
	}
	if names, err := dirNames(r.mount); err != nil || len(names) > 0 {
		t.Errorf("below the mount point there is %q, %v", names, err)
	}
	if out := r.must(); !slices.Contains(commands(out), "zfs mount "+r.dataset) {
		t.Errorf("init of what is not mounted: %s", out)
	}
	c = startChild(t, "--config-file="+r.config)
	if v := get(t, (&running{url: c.url}).client(t), "key"); v != "value" {
		t.Errorf("mounted again, the value is %q", v)
	}
	c.end(t, syscall.SIGTERM)
}

func TestZFSInitRefuses(t *testing.T) {
	pool := zfstest.New(t)
	r := newInitRun(t, pool, "tarn")
	if err := os.MkdirAll(filepath.Join(r.mount, "photos"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.refused("not empty (photos)")
	if err := os.RemoveAll(r.mount); err != nil {
		t.Fatal(err)
	}

	photos := newInitRun(t, pool, "photos")
	pool.Dataset(t, "photos")
	if err := os.WriteFile(filepath.Join(photos.mount, "one.jpg"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	photos.refused("files of something else")
	r.mount = photos.mount
	r.refused("is mounted at " + photos.mount)

	parent := newInitRun(t, pool, "homes")
	pool.Dataset(t, "homes")
	pool.Dataset(t, "homes/ann")
	parent.refused("homes/ann")

	zfstest.Run(t, "zfs", "create", "-V", "8M", "-s", pool.Name+"/disk")
	newInitRun(t, pool, "disk").refused("is a volume")
	newInitRun(t, pool, "no/such").refused("zfs create -p")
	for _, dataset := range []string{pool.Name, "no-such-pool/tarn"} {
		if code, _, errs := tarn(t, nil, "init", dataset, "--user="+initUser, "--backup-user=none"); code != exitRefused {
			t.Errorf("%s: exit code %d: %s", dataset, code, errs)
		}
	}
	if got := zfstest.Run(t, "zfs", "list", "-Ho", "name", "-t", "snapshot,bookmark", "-r", pool.Name); got != "" {
		t.Errorf("made: %s", got)
	}
	if got := zfstest.Run(t, "zfs", "get", "-Hro", "value", "-s", "local", "tarn-kv:setup,recordsize", pool.Name); got != "" {
		t.Errorf("set: %s", got)
	}

	zfstest.Run(t, "zpool", "export", pool.Name)
	zfstest.Run(t, "zpool", "import", "-d", pool.File, "-o", "readonly=on", "-o", "cachefile=none", pool.Name)
	newInitRun(t, pool, "tarn").refused("read-only")
}

// TestZFSInitEncrypted: below an encrypted dataset it works as elsewhere, and without the key it
// says which one is missing.
func TestZFSInitEncrypted(t *testing.T) {
	pool := zfstest.New(t)
	key := writeFile(t, "key", strings.Repeat("k", 32))
	parent := pool.Dataset(t, "safe", "-o", "encryption=on", "-o", "keyformat=raw", "-o", "keylocation=file://"+key)
	r := newInitRun(t, pool, "safe/tarn")
	r.config = filepath.Join(t.TempDir(), "tarn.yaml")
	zfstest.Run(t, "zfs", "unmount", parent)
	zfstest.Run(t, "zfs", "unload-key", parent)
	r.refused("zfs load-key " + parent)
	zfstest.Run(t, "zfs", "load-key", parent)
	zfstest.Run(t, "zfs", "mount", parent)
	r.must()
	if got := zfstest.Run(t, "zfs", "get", "-Ho", "value", "encryptionroot", r.dataset); got != parent {
		t.Errorf("the key is that of %s", got)
	}
	zfstest.Run(t, "zfs", "unmount", r.dataset)
	zfstest.Run(t, "zfs", "unmount", parent)
	zfstest.Run(t, "zfs", "unload-key", parent)
	r.refused("zfs load-key " + r.dataset)
}

// TestZFSBackupUserRights: the backup user can do what its commands need, and nothing else of what
// zfs offers, with the dataset mounted or not.
func TestZFSBackupUserRights(t *testing.T) {
	pool := zfstest.New(t)
	r := newInitRun(t, pool, "tarn")
	r.must()
	backup, err := lookupAccount("user", initBackupUser)
	if err != nil {
		t.Fatal(err)
	}
	d := r.dataset
	try := func(command string) error {
		_, err := zfstest.TryAs(uint32(backup.uid), uint32(backup.gid), "sh", "-c", command)
		return err
	}
	for _, command := range []string{
		"zfs snapshot -o tarn-kv:revision=1 " + d + "@a",
		"zfs snapshot " + d + "@b",
		"zfs set tarn-kv:verified=x " + d + "@a",
		"zfs set tarn-kv:last-push=x " + d,
		"zfs hold keep " + d + "@a", "zfs holds " + d + "@a", "zfs release keep " + d + "@a",
		"zfs bookmark " + d + "@a " + d + "#a",
		"zfs send " + d + "@b >/dev/null", "zfs send -w " + d + "@b >/dev/null", "zfs send -i '#a' " + d + "@b >/dev/null",
		"zfs list -t all " + d,
		"zfs destroy " + d + "@a", "zfs destroy '" + d + "#a'",
	} {
		if err := try(command); err != nil {
			t.Errorf("the backup user can not: %v", err)
		}
	}
	zfstest.Run(t, "zfs", "snapshot", d+"@kept")
	zfstest.Run(t, "zfs", "hold", "admin", d+"@kept")
	forbidden := []string{
		"zfs rollback -r " + d + "@b", "zfs rollback " + d + "@kept",
		"zfs destroy " + d + "@kept", // held
		"zfs rename " + d + "@b " + d + "@c", "zfs rename " + d + " " + pool.Name + "/x",
		"zfs clone " + d + "@b " + d + "/clone", "zfs clone " + d + "@b " + pool.Name + "/clone",
		"zfs create " + d + "/below", "zfs create " + pool.Name + "/beside",
		"zfs set sync=disabled " + d, "zfs set mountpoint=/x " + d, "zfs set readonly=on " + d, "zfs set refquota=none " + d,
		"zfs inherit recordsize " + d, "zfs set quota=1M " + pool.Name, "zfs set user:prop=x " + pool.Name,
		"zfs send " + d + "@b | zfs receive -u " + pool.Name + "/copy", "zfs send " + d + "@b | zfs receive -F " + d,
		"zfs allow -u " + initBackupUser + " rollback " + d, "zfs unallow -u " + initBackupUser + " " + d,
		"zfs promote " + d, "zfs share " + d,
		"zfs snapshot " + pool.Name + "@x", "zfs change-key -i " + d,
		"zpool export " + pool.Name, "zpool destroy " + pool.Name, "zpool scrub " + pool.Name,
		"ls " + r.mount + "/.zfs/snapshot/b/",
	}
	refused := func(when string) {
		t.Helper()
		for _, command := range forbidden {
			if err := try(command); err == nil {
				t.Errorf("%s, the backup user can: %s", when, command)
			}
		}
	}
	refused("mounted")
	for _, command := range []string{"zfs unmount " + d, "zfs unmount -f " + d, "zfs destroy " + d, "zfs destroy -rf " + d, "ls " + r.mount} {
		if err := try(command); err == nil {
			t.Fatalf("the backup user can: %s", command)
		}
	}
	zfstest.Run(t, "zfs", "unmount", d)
	refused("not mounted")
	zfstest.Run(t, "zfs", "release", "admin", d+"@kept")
	zfstest.Run(t, "zfs", "destroy", d+"@%")
	for _, command := range []string{"zfs mount " + d, "zfs destroy " + d, "zfs destroy -rf " + d} {
		if err := try(command); err == nil {
			t.Fatalf("without snapshots and not mounted, the backup user can: %s", command)
		}
	}
	// The server's user has no rights at all.
	nobody, err := lookupAccount("user", initUser)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"zfs snapshot " + d + "@s", "zfs set user:prop=x " + d, "zfs destroy " + d} {
		if _, err := zfstest.TryAs(uint32(nobody.uid), uint32(nobody.gid), "sh", "-c", command); err == nil {
			t.Errorf("the server's user can: %s", command)
		}
	}
}
