package vfs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// What is no regular file is refused at once: nobody ever opens the other end of the pipe.
func TestOnlyRegularFiles(t *testing.T) {
	dir := t.TempDir()
	pipe, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "file")
	if err := errors.Join(unix.Mkfifo(pipe, 0o600), os.WriteFile(file, []byte("text"), 0o600), os.Symlink(file, filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipe, dir, "/dev/zero"} {
		if _, err := ReadFile(name); !errors.Is(err, ErrNotRegular) {
			t.Errorf("ReadFile %s: %v", name, err)
		}
		if _, err := OS.OpenRead(name); !errors.Is(err, ErrNotRegular) {
			t.Errorf("OpenRead %s: %v", name, err)
		}
	}
	for _, flag := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR} {
		if _, err := OpenRegular(pipe, flag, 0); !errors.Is(err, ErrNotRegular) {
			t.Errorf("flag %d: %v", flag, err)
		}
	}
	for _, name := range []string{file, filepath.Join(dir, "link")} {
		if text, err := ReadFile(name); err != nil || string(text) != "text" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "data", LockName), 0o600); err != nil {
		t.Fatal(err)
	}
	if who, locked := Locked(filepath.Join(dir, "data")); locked {
		t.Errorf("a pipe as the lock file is held by %s", who)
	}
	if _, err := Lock(filepath.Join(dir, "data")); !errors.Is(err, ErrNotRegular) {
		t.Errorf("Lock: %v", err)
	}
}

// Who takes a directory while another one takes the lock's file away does not get the file that nobody
// else finds any more.
func TestLockOfAFileThatIsRemoved(t *testing.T) {
	dir := t.TempDir()
	first, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	// What a second process has opened before the first one removes the name.
	waiting, err := os.OpenFile(filepath.Join(dir, LockName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	if err := errors.Join(os.Remove(filepath.Join(dir, LockName)), first.Close()); err != nil {
		t.Fatal(err)
	}
	if ok, err := isNamed(waiting, filepath.Join(dir, LockName)); ok || err != nil {
		t.Errorf("the removed file counts as the lock: %v", err)
	}
	second, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if ok, err := isNamed(waiting, filepath.Join(dir, LockName)); ok || err != nil {
		t.Errorf("the removed file counts as the lock beside the new one: %v", err)
	}
	if _, err := Lock(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("a third one: %v", err)
	}
}
