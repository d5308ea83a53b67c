package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOSFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x", "y")
	if err := OS.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := OS.MkdirAll(dir); err != nil {
		t.Errorf("again: %v", err)
	}
	name := filepath.Join(dir, "b")
	f, err := OS.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := OS.Create(name); !errors.Is(err, fs.ErrExist) {
		t.Errorf("create twice: got %v", err)
	}
	if _, err := f.WriteAt([]byte("hello"), 3); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if n, err := f.Size(); n != 8 || err != nil {
		t.Errorf("size %d, %v", n, err)
	}
	r, err := OS.OpenRead(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.WriteAt([]byte("x"), 0); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("write to a file open for reading: got %v", err)
	}
	if err := OS.Rename(name, filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if err := OS.SyncDir(dir); err != nil {
		t.Fatal(err)
	}
	if names, err := OS.List(dir); err != nil || len(names) != 1 || names[0] != "a" {
		t.Errorf("list: %v, %v", names, err)
	}
	if err := OS.MkdirAll(filepath.Join(dir, "a")); err == nil {
		t.Error("a directory was made over a file")
	}
}

func TestOSPreallocate(t *testing.T) {
	dir := t.TempDir()
	usage, err := OS.Usage(dir)
	if err != nil {
		t.Fatal(err)
	}
	if usage.Total == 0 || usage.Type == "" {
		t.Errorf("usage: %+v", usage)
	}
	f, err := OS.Create(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Preallocate(1 << 20); err != nil {
		t.Fatal(err)
	}
	n, err := f.Size()
	if err != nil || n != 0 && n != 1<<20 || n != 0 && !Preallocates(usage.Type) {
		t.Errorf("on %s: size %d, %v", usage.Type, n, err)
	}
}

func TestOSPunchHole(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	content := bytes.Repeat([]byte{'x'}, 1<<20)
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = OS.PunchHole(name, f, 256<<10, 512<<10)
	if errors.Is(err, ErrNoHoles) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	clear(content[256<<10 : 768<<10])
	if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the file does not have zeros in the hole alone: %d bytes, %v", len(got), err)
	}
	r, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := OS.PunchHole(name, r, 0, 4096); err == nil || errors.Is(err, ErrNoHoles) || !strings.Contains(err.Error(), name) {
		t.Errorf("in a file open for reading: %v", err)
	}
}

func TestIsNoSpace(t *testing.T) {
	for err, want := range map[error]bool{
		&fs.PathError{Op: "write", Path: "x", Err: unix.ENOSPC}: true,
		fmt.Errorf("put: %w", unix.EDQUOT):                      true,
		unix.EIO:                                                false,
		nil:                                                     false,
	} {
		if IsNoSpace(err) != want {
			t.Errorf("IsNoSpace(%v) is not %v", err, want)
		}
	}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	if who, locked := Locked(dir); locked {
		t.Fatalf("locked by %q before Lock", who)
	}
	l, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	me := fmt.Sprintf("pid %d", os.Getpid())
	if who, locked := Locked(dir); !locked || !strings.Contains(who, me) || !strings.Contains(who, os.Args[0]) {
		t.Errorf("holder %q, locked %v", who, locked)
	}
	_, err = Lock(dir)
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), me) || !strings.Contains(err.Error(), dir) {
		t.Errorf("second Lock: got %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if who, locked := Locked(dir); locked {
		t.Errorf("still locked by %q", who)
	}
	l, err = Lock(dir)
	if err != nil {
		t.Fatalf("after Close: %v", err)
	}
	l.Close()
}

// The lock file tells a server from others, whatever the command line is, and one without that is told
// as what it is: not known.
func TestLockHolder(t *testing.T) {
	dir, args := t.TempDir(), os.Args
	defer func() { os.Args = args }()
	os.Args = []string{"tarn\nserver feed", strings.Repeat("long ", 100)}
	l, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if h, locked := HolderOf(dir); !locked || !h.Offline || h.Instance != "" || strings.Contains(h.Who, "\n") {
		t.Errorf("no server: %+v, %v", h, locked)
	}
	l.Close()
	seen := map[string]bool{}
	for range 2 {
		l, instance, err := LockForServer(dir)
		if err != nil {
			t.Fatal(err)
		}
		h, locked := HolderOf(dir)
		if !locked || h.Offline || h.Instance != instance || len(instance) != 32 || seen[instance] {
			t.Errorf("a server %s: %+v, %v", instance, h, locked)
		}
		seen[instance] = true
		for _, text := range []string{"", "pid 1, command: old\n", "pid 1\nserver fe"} {
			if err := os.WriteFile(filepath.Join(dir, LockName), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if h, locked := HolderOf(dir); !locked || h.Offline || h.Instance != "" || h.Who == "" {
				t.Errorf("%q: %+v, %v", text, h, locked)
			}
		}
		l.Close()
	}
}

// TestLockEndsWithTheProcess takes the lock in a process that is then killed.
func TestLockEndsWithTheProcess(t *testing.T) {
	const env = "VFS_TEST_LOCK"
	if dir := os.Getenv(env); dir != "" {
		if _, err := Lock(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("locked")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until killed
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestLockEndsWithTheProcess$")
	cmd.Env = append(os.Environ(), env+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, len("locked"))
	if _, err := out.Read(line); err != nil || string(line) != "locked" {
		t.Errorf("child: %q, %v", line, err)
	}
	if _, err := Lock(dir); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint("pid ", cmd.Process.Pid)) {
		t.Errorf("while the child holds it: got %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	l, err := Lock(dir)
	if err != nil {
		t.Fatalf("after the child's end: %v", err)
	}
	l.Close()
}
