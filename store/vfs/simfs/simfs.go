// Package simfs is a vfs.FS for tests that can make any call fail, fill up,
// and lose what was not synced.
//
// It works in a real directory, because the tree maps a real file there. Beside
// it, it keeps what a disk would hold for certain, and what has been written
// since. Image writes into another directory what may be found after a power
// cut; the test then opens that one.
//
// Not simulated: hard links, and files written past the seam other than as described at Commit.
package simfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tarn-kv/tarn/store/vfs"
)

// ErrPowerCut is returned by every call from the power cut on.
var ErrPowerCut = errors.New("simulated power cut")

// total is the size that the file system claims to have.
const total = 1 << 40

// FS simulates a file system. Its methods are safe for concurrent use, but
// only calls made one after another are numbered the same in each run.
type FS struct {
	root string

	mu      sync.Mutex
	ops     int // changing operations so far
	crashAt int // the operation at which the power is cut, 0 for none
	cut     bool
	hook    func(Op) error
	fsType  string
	free    int64 // bytes, -1 for without limit
	dirs    map[string]*dir
	torn    *commit // the commit that the power cut fell into
}

var _ vfs.FS = (*FS)(nil)

// New simulates over what is in root, an existing directory; all of that
// counts as durable. Only paths in root can be used.
func New(root string) (*FS, error) {
	s := &FS{root: filepath.Clean(root), free: -1, fsType: "ext4", dirs: map[string]*dir{}}
	err := filepath.WalkDir(s.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			s.dirs[path] = newDir()
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		d := s.dirs[filepath.Dir(path)]
		n := &node{synced: content, size: int64(len(content))}
		d.live[e.Name()], d.synced[e.Name()] = n, n
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// SetType sets what Usage gives as the file system's type (at first "ext4"),
// and so whether Preallocate does something.
func (s *FS) SetType(fsType string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fsType = fsType
}

// SetFree sets how many bytes files can still grow by; negative means without
// limit. Removing and truncating files gives space back.
func (s *FS) SetFree(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = max(bytes, -1)
}

// SetHook sets a function that is called before each operation; if it returns
// an error, the operation fails with it, having done nothing, except that a
// Write that fails with a *ShortWrite has written some bytes, and that what a
// failed Sync was to make durable never will be, unless it is written again.
// The hook must not use the FS. nil removes it.
func (s *FS) SetHook(hook func(Op) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook
}

// FailAt makes the changing operation number n fail with err. It replaces the hook.
func (s *FS) FailAt(n int, err error) {
	s.SetHook(func(op Op) error {
		if op.N == n && op.Kind.Changes() {
			return err
		}
		return nil
	})
}

// CrashAt cuts the power within the changing operation number n. Whether that
// one is done, wholly or in part, is left to Image. Later ones are not begun.
func (s *FS) CrashAt(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.crashAt = n
}

// Cut cuts the power now.
func (s *FS) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutLocked()
}

// WasCut tells whether the power was cut.
func (s *FS) WasCut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut
}

// Ops is the number of changing operations so far: the number of the last one.
func (s *FS) Ops() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ops
}

// cutLocked cuts the power. What the process writes past the seam from now on
// must not reach the image, so the files it can write to are read now.
func (s *FS) cutLocked() {
	if s.cut {
		return
	}
	s.adoptAll()
	s.cut = true
}

// begin counts the operation and asks whether it is to fail. crash is set if
// the power is cut in the midst of it.
func (s *FS) begin(op Op) (crash bool, err error) {
	if s.cut {
		return false, op.fail(ErrPowerCut)
	}
	if op.Kind.Changes() {
		s.ops++
	}
	op.N = s.ops
	if s.hook != nil {
		if err := s.hook(op); err != nil {
			return false, op.fail(err)
		}
	}
	if op.Kind.Changes() && s.ops == s.crashAt {
		return true, nil
	}
	return false, nil
}

// locate splits a path into the directory, as simulated, and the name in it.
func (s *FS) locate(path string) (d *dir, name string, err error) {
	path = filepath.Clean(path)
	if err := s.inRoot(path); err != nil {
		return nil, "", err
	}
	d = s.dirs[filepath.Dir(path)]
	if d == nil {
		return nil, "", &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return d, filepath.Base(path), nil
}

func (s *FS) inRoot(path string) error {
	if path != s.root && !strings.HasPrefix(path, s.root+string(filepath.Separator)) {
		return fmt.Errorf("simfs: %s is not in %s", path, s.root)
	}
	return nil
}
