package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// asStranger runs f as a user who has no right to look into dirs.
func asStranger(t *testing.T, f func(), dirs ...string) {
	t.Helper()
	const nobody = 65534
	if os.Geteuid() == 0 {
		// The system asks for the rights of the thread, and a test is one goroutine.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := syscall.Setfsuid(nobody); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := syscall.Setfsuid(0); err != nil {
				t.Fatal(err)
			}
		}()
		f()
		return
	}
	for _, dir := range dirs {
		if err := os.Chmod(dir, 0); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(dir, 0o700)
	}
	f()
}

// openParents lets anybody come as far as to a directory of the test.
func openParents(t *testing.T, dir string) {
	t.Helper()
	for _, d := range []string{filepath.Dir(dir), filepath.Dir(filepath.Dir(dir))} {
		if err := os.Chmod(d, 0o755); err != nil && !os.IsPermission(err) {
			t.Fatal(err)
		}
	}
}

// Who may not read the data or the copies is told who may, once, by each command, and each path once.
func TestStrangerIsToldWhoMay(t *testing.T) {
	dir, flags, first, _ := copiesWorld(t)
	asStranger(t, func() { // not even as far as to the directory
		if _, errs := snapshotCommand(t, exitFailed, flags, "list"); strings.Count(errs, "run it as root, or as the user whom") != 1 {
			t.Error(errs)
		}
	}, filepath.Dir(dir))
	openParents(t, dir)
	root := dir + "-snapshots"
	commands := [][]string{
		{"snapshot", "list"}, {"snapshot", "show", first}, {"snapshot", "create"}, {"snapshot", "verify", "--all"},
		{"snapshot", "hold", first}, {"snapshot", "release", first}, {"snapshot", "destroy", first},
		{"snapshot", "prune", "--keep-last=1"}, {"snapshot", "diff", first},
		{"restore", "newest"}, {"restore", "newest", "--key=a"}, {"restore", filepath.Join(root, first)}, {"restore", "--continue"},
	}
	asStranger(t, func() {
		for _, command := range append(commands, []string{"check", dir}, []string{"check", filepath.Join(root, first)}) {
			if command[0] != "check" {
				command = append(command, flags...)
			}
			code, _, errs := tarn(t, nil, command...)
			if code == 0 || strings.Count(errs, "permission denied") != 1 || strings.Count(errs, "run it as root, or as the user whom") != 1 {
				t.Errorf("tarn %q: exit code %d: %s", command, code, errs)
			}
		}
	}, dir, root)
	// Seen, and not to be read.
	for _, d := range []string{dir, root} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	asStranger(t, func() {
		for _, command := range [][]string{{"snapshot", "list"}, {"snapshot", "create"}} {
			code, _, errs := tarn(t, nil, append(command, flags...)...)
			if code == 0 || strings.Count(errs, "run it as root, or as the user whom") != 1 || strings.Contains(errs, ": open "+dir+"/"+treeFile+": open ") {
				t.Errorf("tarn %q: exit code %d: %s", command, code, errs)
			}
		}
	}, filepath.Join(root, first), filepath.Join(dir, treeFile))
}

// The owner of a data directory beside which only root may make another is told so.
func TestOwnerWhoCanNotMakeTheRootOfTheCopies(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	newStore(t, dir)
	openParents(t, dir)
	if os.Geteuid() == 0 {
		for _, path := range []string{dir, filepath.Join(dir, "LOCK"), filepath.Join(dir, treeFile), filepath.Join(dir, "wal")} {
			if err := os.Chown(path, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
		logs, err := filepath.Glob(filepath.Join(dir, "wal", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range logs {
			if err := os.Chown(path, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
	} else if err := os.Chmod(filepath.Dir(dir), 0o500); err != nil {
		t.Fatal(err)
	} else {
		defer os.Chmod(filepath.Dir(dir), 0o700)
	}
	asStranger(t, func() {
		if _, errs := snapshotCommand(t, exitFailed, []string{"--data-dir=" + dir, "--copies"}, "create"); !strings.Contains(errs, "once as root") || !strings.Contains(errs, dir+"-snapshots") {
			t.Error(errs)
		}
	})
}

// A file where the directory of the copies should be is told by each command, with what to do.
func TestFileInPlaceOfTheCopies(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	newStore(t, dir)
	if err := os.WriteFile(dir+"-snapshots", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"list"}, {"create"}, {"verify", "--all"}, {"destroy", "x"}} {
		if _, errs := snapshotCommand(t, exitFailed, []string{"--data-dir=" + dir, "--copies"}, args...); !strings.Contains(errs, dir+"-snapshots is a file and no directory: move it away") {
			t.Errorf("%q: %s", args, errs)
		}
	}
}

// A data directory that is a file, or can not come to be one, is no data directory without snapshots.
func TestNoSuchDataDir(t *testing.T) {
	file := writeFile(t, "file", "")
	missing := filepath.Join(t.TempDir(), "none")
	for _, dir := range []string{file, filepath.Join(file, "below"), missing} {
		for _, args := range [][]string{
			{"snapshot", "list"}, {"snapshot", "create"}, {"snapshot", "verify", "--all"}, {"snapshot", "prune", "--keep-last=1"},
			{"snapshot", "show", "x"}, {"snapshot", "hold", "x"}, {"snapshot", "destroy", "x"}, {"snapshot", "diff", "x"}, {"restore", "newest"},
			{"backup", "push", "tank/x"},
		} {
			if dir == missing && args[0] == "backup" {
				continue // it could be on ZFS, and tells that it is not
			}
			code, out, errs := tarn(t, nil, append(args, "--data-dir="+dir)...)
			if code != exitNoSnapshot || out != "" || !strings.Contains(errs, "see whether") || !strings.Contains(errs, dir) {
				t.Errorf("tarn %q --data-dir=%s: exit code %d: %s%s", args, dir, code, out, errs)
			}
		}
	}
}
