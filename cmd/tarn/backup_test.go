package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// backupCommand runs tarn backup and wants an exit code.
func backupCommand(t *testing.T, want int, flags []string, args ...string) (stdout, stderr string) {
	t.Helper()
	args = append([]string{"backup"}, args...)
	code, stdout, stderr := tarn(t, nil, append(args, flags...)...)
	if code != want {
		t.Fatalf("tarn %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, stdout, stderr)
	}
	return stdout, stderr
}

// pretendedZFS runs zfs in the world of the test.
func pretendedZFS(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("zfs", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("zfs %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// wantWords reports which of the words a text lacks.
func wantWords(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in:\n%s", w, text)
		}
	}
}

// TestBackupCommands takes snapshots to a dataset and a directory, loses the data and gets
// it back from each.
func TestBackupCommands(t *testing.T) {
	w := newWorld(t)
	revision, id := newStore(t, w.dir)
	w.World.Dataset("backups")
	for range 2 {
		snapshotCommand(t, exitOK, w.flags, "create")
	}
	names := []string{}
	for _, s := range listJSON(t, w.flags).Snapshots {
		names = append(names, s.Name)
	}
	dir := filepath.Join(t.TempDir(), "files")
	for _, target := range []string{"tank/backups/tarn", "dir:" + dir} {
		out, _ := backupCommand(t, exitOK, w.flags, "push", "--dry-run", target)
		wantWords(t, out, "would send "+names[0]+", all of it", "would send "+names[1]+", what changed since "+names[0], "nothing was changed")
		out, _ = backupCommand(t, exitOK, w.flags, "push", target)
		wantWords(t, out, "sent "+names[0], "sent "+names[1], "the newest snapshot there is "+names[1])
		out, _ = backupCommand(t, exitOK, w.flags, "push", "--dry-run", target)
		wantWords(t, out, "all is there", "the newest snapshot there is "+names[1])
		out, _ = backupCommand(t, exitOK, w.flags, "push", target, "-o", "json")
		var v transferVerdict
		if err := json.Unmarshal([]byte(out), &v); err != nil || len(v.Sent) != 0 || v.Newest != names[1] || v.From != w.dataset {
			t.Errorf("%v in %s", err, out)
		}
		out, _ = backupCommand(t, exitOK, w.flags, "list", target)
		wantWords(t, out, names[0], names[1], "yes")
		out, _ = backupCommand(t, exitOK, w.flags, "verify", target)
		wantWords(t, out, "OK", "2 snapshot(s)", names[1])
	}
	out, _ := backupCommand(t, exitOK, w.flags, "list")
	wantWords(t, out, "tank/backups/tarn", dir, names[1])

	// The data is lost.
	if err := os.RemoveAll(w.dir); err != nil {
		t.Fatal(err)
	}
	for n, target := range []string{"tank/backups/tarn", dir} {
		to := "tank/back" + string(rune('a'+n))
		out, _ = backupCommand(t, exitOK, nil, "pull", target, "--to", to, "--dry-run")
		wantWords(t, out, "would receive "+names[1], "nothing was changed")
		out, _ = backupCommand(t, exitOK, nil, "pull", target, "--to", to)
		wantWords(t, out, "received "+names[1], "tarn restore newest --from "+to)
		into := filepath.Join(t.TempDir(), "new")
		// In the pretended world the data directory is one within the dataset.
		code, _, errs := tarn(t, nil, "restore", filepath.Join(pretendedZFS(t, "get", "-Ho", "value", "mountpoint", to), ".zfs", "snapshot", names[1], "store"), "--to-dir", into, "--bump-revision=0")
		if code != exitOK {
			t.Fatalf("restore from %s: exit code %d: %s", to, code, errs)
		}
		code, out, errs = tarn(t, nil, "check", into, "-o", "json")
		var v checkVerdict
		if err := json.Unmarshal([]byte(out), &v); code != exitOK || err != nil || v.Revision != revision || v.StoreID != id {
			t.Errorf("restored from %s: exit code %d, %v: %s%s", to, code, err, out, errs)
		}
	}
	out, _ = backupCommand(t, exitOK, w.flags, "forget", dir)
	wantWords(t, out, "keeps nothing for dir:"+dir)
	backupCommand(t, exitNoSnapshot, w.flags, "forget", dir)
}

func TestBackupExitCodes(t *testing.T) {
	w := newWorld(t)
	newStore(t, w.dir)
	w.World.Dataset("backups")
	w.World.Dataset("full")
	dir := filepath.Join(t.TempDir(), "files")
	_, errs := backupCommand(t, exitNoSnapshot, w.flags, "push", dir)
	wantWords(t, errs, "tarn snapshot create")
	snapshotCommand(t, exitOK, w.flags, "create")

	_, errs = backupCommand(t, exitUsage, w.flags, "push", "tank")
	wantWords(t, errs, "is a pool", "dir:PATH")
	_, errs = backupCommand(t, exitUsage, nil, "pull", dir)
	wantWords(t, errs, "--to is needed")
	backupCommand(t, exitUsage, nil, "pull")
	backupCommand(t, exitUsage, nil, "list", "a", "b")
	_, errs = backupCommand(t, exitNoSnapshot, w.flags, "push", "nopool/tarn")
	wantWords(t, errs, "import the pool")
	_, errs = backupCommand(t, exitNoSnapshot, w.flags, "list", "tank/backups/none")
	wantWords(t, errs, "there is no backup")
	_, errs = backupCommand(t, exitNoSnapshot, w.flags, "verify", t.TempDir())
	wantWords(t, errs, "there is no backup")
	_, errs = backupCommand(t, exitBackupRefused, w.flags, "push", "tank/full")
	wantWords(t, errs, "is mounted at")

	w.Fail("zfs receive", "cannot receive new filesystem stream: out of space", 1)
	_, errs = backupCommand(t, exitFailed, w.flags, "push", "tank/backups/tarn")
	wantWords(t, errs, "make room")

	backupCommand(t, exitOK, w.flags, "push", dir)
	files, err := filepath.Glob(filepath.Join(dir, "*.zfs"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.Truncate(files[0], 1000); err != nil {
		t.Fatal(err)
	}
	out, _ := backupCommand(t, exitBackupDamaged, w.flags, "verify", dir)
	wantWords(t, out, "DAMAGED: 0001-full-", "none can be restored")
	_, errs = backupCommand(t, exitBackupDamaged, nil, "pull", dir, "--to", "tank/back")
	wantWords(t, errs, "damaged")

	// What is added to a damaged chain could not be restored.
	_, errs = backupCommand(t, exitBackupDamaged, w.flags, "push", dir)
	wantWords(t, errs, "0001-full-", "Begin a new directory")
	_, errs = backupCommand(t, exitBackupRefused, w.flags, "push", files[0])
	wantWords(t, errs, "is a file", "name a directory")
	_, errs = backupCommand(t, exitBackupRefused, w.flags, "push", w.dataset)
	wantWords(t, errs, "the dataset itself")
	_, errs = backupCommand(t, exitBackupRefused, w.flags, "push", filepath.Join(w.dir, "b"))
	wantWords(t, errs, "another disk")

	plain := []string{"--data-dir=" + t.TempDir()}
	for _, args := range [][]string{{"push", dir}, {"list"}, {"forget", dir}} {
		_, errs = backupCommand(t, exitBackupNoZFS, plain, args...)
		wantWords(t, errs, "not on ZFS", "-snapshots", "rsync")
		help, _ := backupCommand(t, exitOK, nil, args[0], "--help")
		wantWords(t, strings.Join(strings.Fields(help), " "), "the data directory is not on ZFS")
	}
}

// TestBackupBrokenOff ends a push in the middle: exit code 5 says that it goes on.
func TestBackupBrokenOff(t *testing.T) {
	w := newWorld(t)
	newStore(t, w.dir)
	w.World.Dataset("backups")
	snapshotCommand(t, exitOK, w.flags, "create")
	ssh := t.TempDir()
	script := `#!/bin/sh
while [ $# -gt 0 ]; do case $1 in -o|-p|-l) shift 2;; --) shift; break;; *) exit 99;; esac; done
shift
case "$*" in *"zfs receive"*) head -c 5000 | sh -c "$*"; rm "$0"; ln -s ` + filepath.Join(ssh, "ssh2") + ` "$0"; echo "Connection reset by peer" >&2; exit 255;; esac
exec sh -c "$*"
`
	for name, text := range map[string]string{"ssh": script, "ssh2": strings.Replace(script, `"zfs receive"`, `"zfs never"`, 1)} {
		if err := os.WriteFile(filepath.Join(ssh, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", ssh+":"+os.Getenv("PATH"))
	target := "ssh://backup@nas/tank/backups/tarn"
	_, errs := backupCommand(t, exitBackupInterrupted, w.flags, "push", target)
	wantWords(t, errs, "Connection reset", "run it again")
	out, _ := backupCommand(t, exitOK, w.flags, "list", target)
	wantWords(t, out, "a transfer was interrupted")
	out, _ = backupCommand(t, exitOK, w.flags, "push", target)
	wantWords(t, out, "the rest of it")
}

// TestBackupUnderWay has a second push into a target while one writes to it.
func TestBackupUnderWay(t *testing.T) {
	w := newWorld(t)
	newStore(t, w.dir)
	w.World.Dataset("backups")
	snapshotCommand(t, exitOK, w.flags, "create")
	w.Fail("zfs receive", "cannot receive new filesystem stream: destination 'tank/backups/tarn' exists\nmust specify -F to overwrite it", 1)
	_, errs := backupCommand(t, exitBackupInterrupted, w.flags, "push", "tank/backups/tarn")
	wantWords(t, errs, "under way")
	if strings.Contains(errs, "-F") {
		t.Errorf("it advises to overwrite: %s", errs)
	}
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	_, errs = backupCommand(t, exitBackupInterrupted, w.flags, "push", dir.Name())
	wantWords(t, errs, "under way")
}

// TestBackupVerifyDiverged verifies a target that was written to.
func TestBackupVerifyDiverged(t *testing.T) {
	w := newWorld(t)
	newStore(t, w.dir)
	w.World.Dataset("backups")
	snapshotCommand(t, exitOK, w.flags, "create")
	const target = "tank/backups/tarn"
	backupCommand(t, exitOK, w.flags, "push", target)
	file := filepath.Join(pretendedZFS(t, "get", "-Ho", "value", "mountpoint", target), "of-somebody-else")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	backupCommand(t, exitBackupRefused, w.flags, "push", target)
	out, _ := backupCommand(t, exitBackupDamaged, w.flags, "verify", target)
	wantWords(t, out, "DAMAGED", "another history")
}

// TestRestoreFromBackup restores from a dataset that was pushed to, as a whole and one key.
func TestRestoreFromBackup(t *testing.T) {
	w := newWorld(t)
	dataset, dir := w.World.Dataset("whole")
	newStore(t, dir)
	w.World.Dataset("backups")
	flags := []string{"--dataset=" + dataset, "--data-dir=" + dir}
	snapshotCommand(t, exitOK, flags, "create")
	backupCommand(t, exitOK, flags, "push", "tank/backups/whole")
	pretendedZFS(t, "mount", "tank/backups/whole")
	other := filepath.Join(t.TempDir(), "other")
	code, out, errs := tarn(t, nil, "restore", "newest", "--from=tank/backups/whole", "--data-dir="+other)
	if code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	code, out, errs = tarn(t, nil, "restore", "newest", "--from=tank/backups/whole", "--key=/registry/pods/default/p1", "--raw")
	if code != exitOK || out != "x" {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
}
