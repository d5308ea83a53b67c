//go:build zfs

package main

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tarn-kv/tarn/zfs/zfstest"
)

// Users that every system has, in the place of those that a package makes.
const (
	serverUser = "daemon"
	backupUser = "nobody"
)

// The user of the backups, with what tarn init gives it and nothing else, can make backups
// of a running server and thin them out. It can not read the data, nor put back old ones.
func TestZFSBackupUser(t *testing.T) {
	pool := zfstest.New(t)
	dataset, dir := pool.Name+"/node", pool.Path("node")
	config := filepath.Join(t.TempDir(), "tarn.yaml")
	code, out, errs := tarn(t, nil, "init", dataset, "--mountpoint="+dir, "--user="+serverUser, "--backup-user="+backupUser, "--config-file="+config)
	if code != exitOK {
		t.Fatalf("init: exit code %d: %s%s", code, out, errs)
	}
	c := startChildAs(t, userOf(t, serverUser), "--config-file="+config)
	cl := (&running{url: c.url}).client(t)
	if err := put(t, cl, "key", "value"); err != nil {
		t.Fatal(err)
	}
	target := t.TempDir()
	u := userOf(t, backupUser)
	if err := os.Chown(target, int(u.Uid), -1); err != nil {
		t.Fatal(err)
	}
	at := []string{"--data-dir=" + dir, "--dataset=" + dataset}
	as := func(args ...string) string {
		t.Helper()
		code, out := asUser(t, args...)
		if code != exitOK {
			t.Errorf("%s can not do what it must: %s: exit code %d: %s", backupUser, strings.Join(args, " "), code, out)
		}
		return strings.TrimSpace(out)
	}
	first := lastLine(as(append([]string{"snapshot", "create", "--hold", "--endpoint=" + c.url, "first"}, at...)...))
	if strings.Contains(first, "-r0") || !strings.HasPrefix(first, "tarn-") {
		t.Errorf("the name of the snapshot does not tell a revision: %q", first)
	}
	second := lastLine(as(append([]string{"snapshot", "create", "--endpoint=" + c.url}, at...)...))
	for _, args := range [][]string{
		{"snapshot", "list"}, {"snapshot", "show", "first"}, {"backup", "push", target},
		{"snapshot", "release", "first"}, {"snapshot", "prune", "--keep-last=1"}, {"backup", "list", target},
	} {
		as(append(args, at...)...)
	}
	if left := zfstest.Run(t, "zfs", "list", "-Ho", "name", "-t", "snapshot", dataset); left != dataset+"@"+second {
		t.Errorf("after pruning there is %q", left)
	}
	// The name of its last snapshot is all that it can find out of a stopped server's files.
	if log, code := c.end(t, syscall.SIGTERM); code != exitOK {
		t.Errorf("exit code %d\n%s", code, log)
	}
	if out := as(append([]string{"snapshot", "create", "--endpoint=" + c.url}, at...)...); !strings.Contains(out, "its revision is unknown") {
		t.Errorf("it does not say that the revision is unknown: %s", out)
	}
	as(append([]string{"backup", "push", target}, at...)...)
	for _, args := range [][]string{
		{"check", dir}, append([]string{"snapshot", "verify", "newest"}, at...), append([]string{"restore", "newest"}, at...),
		{"serve", "--config-file=" + config},
	} {
		if code, out := asUser(t, args...); code == exitOK {
			t.Errorf("%s can run tarn %s: %s", backupUser, strings.Join(args, " "), out)
		}
	}
	if code, out, errs := tarn(t, nil, append([]string{"snapshot", "verify", "--all"}, at...)...); code != exitOK {
		t.Errorf("verify: exit code %d: %s%s", code, out, errs)
	}
	c = startChildAs(t, userOf(t, serverUser), "--config-file="+config)
	if v := get(t, (&running{url: c.url}).client(t), "key"); v != "value" {
		t.Errorf("the server has %q", v)
	}
}

func userOf(t *testing.T, name string) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), Groups: []uint32{}}
}

func lastLine(text string) string {
	return text[strings.LastIndex(text, "\n")+1:]
}
