//go:build zfs

// Package zfstest gives tests a real ZFS pool to use up and throw away. It needs root and
// the ZFS kernel module, so it is built with the tag zfs only: make test-zfs runs such tests
// here, make test-zfs-vm in a virtual machine. By convention they are called TestZFS…, and
// are in files called …_zfs_test.go.
package zfstest

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// DefaultSize is the size of a pool in bytes, of which ZFS keeps some for itself. The file is
// sparse: what is not written takes no space.
const DefaultSize = 512 << 20

// Pool is a pool on one sparse file, which no start of the system imports.
type Pool struct {
	Name string
	// Dir is the parent of all mount points: dataset NAME/a/b is mounted at Dir/a/b.
	Dir string
	// File is what the pool is on.
	File string
}

// New makes a pool of DefaultSize bytes for the time of one test.
func New(t testing.TB) *Pool {
	t.Helper()
	return NewSized(t, DefaultSize)
}

// NewSized makes a pool of size bytes, at least 64 MiB, for the time of one test. args are
// more arguments for zpool create, such as "-o", "failmode=continue".
func NewSized(t testing.TB, size int64, args ...string) *Pool {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("a test on real ZFS must run as root: use make test-zfs-vm, or leave the tag zfs out")
	}
	return newIn(t, t.TempDir(), size, args...)
}

// Starving is a pool that loses its device when told to.
type Starving struct {
	*Pool
	hungry string
}

// NewStarving makes a pool whose file is on a file system with much less room than the pool
// believes to have.
func NewStarving(t testing.TB, args ...string) *Starving {
	t.Helper()
	dir := t.TempDir()
	Run(t, "mount", "-t", "tmpfs", "-o", "size=128m,mode=755", "tarn-test", dir)
	t.Cleanup(func() { Run(t, "umount", dir) })
	return &Starving{newIn(t, dir, DefaultSize, args...), filepath.Join(dir, "hungry")}
}

// Starve makes all writes of the pool to its device fail from now on, as if it were gone.
func (s *Starving) Starve(t testing.TB) {
	t.Helper()
	f, err := os.Create(s.hungry)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size >= 512; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
}

// Feed brings the device back. A pool that was suspended goes on only after zpool clear.
func (s *Starving) Feed(t testing.TB) {
	t.Helper()
	if err := os.Remove(s.hungry); err != nil {
		t.Fatal(err)
	}
}

func newIn(t testing.TB, dir string, size int64, args ...string) *Pool {
	t.Helper()
	// Other users than root go through it to the mount points.
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	id := make([]byte, 4)
	if _, err := rand.Read(id); err != nil {
		t.Fatal(err)
	}
	p := &Pool{
		Name: "tarn-test-" + hex.EncodeToString(id),
		Dir:  filepath.Join(dir, "mnt"),
		File: filepath.Join(dir, "vdev"),
	}
	f, err := os.Create(p.File)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	create := []string{"create", "-o", "cachefile=none", "-o", "ashift=12", "-O", "mountpoint=" + p.Dir}
	create = append(create, args...)
	Run(t, "zpool", append(create, p.Name, p.File)...)
	t.Cleanup(func() {
		if _, err := output(nil, "zpool", "destroy", "-f", p.Name); err != nil {
			t.Errorf("the pool is left behind: %v", err)
		}
	})
	return p
}

// Dataset makes the dataset name in the pool, which is mounted at Dir/name. args are more
// arguments for zfs create, such as "-o", "recordsize=16K". It returns the full name.
func (p *Pool) Dataset(t testing.TB, name string, args ...string) string {
	t.Helper()
	dataset := p.Name + "/" + name
	Run(t, "zfs", append(append([]string{"create"}, args...), dataset)...)
	return dataset
}

// Path is where the dataset name of the pool is mounted.
func (p *Pool) Path(name string) string { return filepath.Join(p.Dir, name) }

// Run runs a program, normally zfs or zpool, and returns what it prints without the last
// line's end. A failure ends the test.
func Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := output(nil, name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Try runs a program as Run does, and returns its failure with what it printed.
func Try(name string, args ...string) (string, error) { return output(nil, name, args...) }

// TryAs runs a program as another user and as nothing else than that, and returns its
// failure with what it printed.
func TryAs(uid, gid uint32, name string, args ...string) (string, error) {
	return output(&syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid, Groups: []uint32{}}}, name, args...)
}

func output(attr *syscall.SysProcAttr, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", &Failure{Args: cmd.Args, Output: strings.TrimSpace(string(out)), Err: err}
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// Failure is returned for a program that could not be run or failed.
type Failure struct {
	Args   []string
	Output string // of both streams
	Err    error
}

func (f *Failure) Error() string {
	return strings.Join(f.Args, " ") + ": " + f.Err.Error() + ": " + f.Output
}

func (f *Failure) Unwrap() error { return f.Err }
