package simfs

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/tarn-kv/tarn/store/vfs"
)

// dir is a directory: its names now, its names on the disk for certain, and
// the changes between the two in order.
type dir struct {
	live, synced map[string]*node
	pending      []entryChange
}

// entryChange gives name to a file, after taking it from the name old; or
// takes it away, if node is nil.
type entryChange struct {
	name, old string
	node      *node
	// Of the half of a renaming between directories that takes the name away: where the
	// other half is. It reaches the disk no later.
	to     *dir
	toName string
}

func newDir() *dir { return &dir{live: map[string]*node{}, synced: map[string]*node{}} }

func (c entryChange) apply(names map[string]*node) {
	if c.old != "" {
		delete(names, c.old)
	}
	if c.node == nil {
		delete(names, c.name)
		return
	}
	names[c.name] = c.node
}

func (d *dir) change(c entryChange) {
	c.apply(d.live)
	d.pending = append(d.pending, c)
}

// Create makes a new file.
func (s *FS) Create(path string) (vfs.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	op := Op{Kind: Create, Path: path}
	d, name, err := s.locate(path)
	if err != nil {
		return nil, err
	}
	crash, err := s.begin(op)
	if err != nil {
		return nil, err
	}
	if crash {
		s.cutLocked()
		d.change(entryChange{name: name, node: &node{}})
		return nil, op.fail(ErrPowerCut)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	n := &node{}
	d.change(entryChange{name: name, node: n})
	return &file{s: s, f: f, n: n}, nil
}

// Open opens a file for reading and writing.
func (s *FS) Open(path string) (vfs.File, error) { return s.open(path, Open, os.O_RDWR) }

// OpenRead opens a file for reading.
func (s *FS) OpenRead(path string) (vfs.File, error) { return s.open(path, OpenRead, os.O_RDONLY) }

func (s *FS) open(path string, kind Kind, flag int) (vfs.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, name, err := s.locate(path)
	if err != nil {
		return nil, err
	}
	if _, err := s.begin(Op{Kind: kind, Path: path}); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	n, err := d.adopt(name, path)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &file{s: s, f: f, n: n}, nil
}

// Remove deletes a file. Its space is free at once, even if it is open.
func (s *FS) Remove(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	op := Op{Kind: Remove, Path: path}
	d, name, err := s.locate(path)
	if err != nil {
		return err
	}
	crash, err := s.begin(op)
	if err != nil {
		return err
	}
	if path = filepath.Clean(path); s.dirs[path] != nil {
		return s.removeDir(op, path, crash)
	}
	n, err := d.adopt(name, path)
	if err != nil && crash {
		s.cutLocked()
		return op.fail(ErrPowerCut)
	}
	if err != nil {
		return err
	}
	n.refresh(path)
	if crash {
		s.cutLocked()
	} else if err := os.Remove(path); err != nil {
		return err
	}
	s.giveBack(n.size)
	d.change(entryChange{name: name})
	if crash {
		return op.fail(ErrPowerCut)
	}
	return nil
}

// removeDir removes a directory as MkdirAll makes it: durably or not at all.
func (s *FS) removeDir(op Op, path string, crash bool) error {
	if crash {
		s.cutLocked()
		return op.fail(ErrPowerCut)
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	delete(s.dirs, path)
	return nil
}

// List gives the names in a directory.
func (s *FS) List(path string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.begin(Op{Kind: List, Path: path}); err != nil {
		return nil, err
	}
	return vfs.OS.List(path)
}

// MkdirAll makes directories. One call is one operation, done durably or not at all.
func (s *FS) MkdirAll(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	path = filepath.Clean(path)
	if s.dirs[path] != nil {
		return nil
	}
	if err := s.inRoot(path); err != nil {
		return err
	}
	op := Op{Kind: Mkdir, Path: path}
	crash, err := s.begin(op)
	if err != nil {
		return err
	}
	if crash {
		s.cutLocked()
		return op.fail(ErrPowerCut)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	for p := path; s.dirs[p] == nil; p = filepath.Dir(p) {
		s.dirs[p] = newDir()
	}
	return nil
}

// SyncDir makes a directory's names durable.
func (s *FS) SyncDir(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	op := Op{Kind: SyncDir, Path: path}
	crash, err := s.begin(op)
	if err != nil {
		return err
	}
	if crash {
		s.cutLocked()
		return op.fail(ErrPowerCut)
	}
	d := s.dirs[filepath.Clean(path)]
	if d == nil {
		return op.fail(fs.ErrNotExist)
	}
	d.adoptAll(filepath.Clean(path))
	upTo := map[*dir]int{}
	d.settleMoved(len(d.pending), upTo)
	for other, n := range upTo {
		for _, c := range other.pending[:n] {
			c.apply(other.synced)
		}
		other.pending = other.pending[n:]
	}
	d.synced, d.pending = maps.Clone(d.live), nil
	return nil
}

// Usage gives the free space as set by SetFree.
func (s *FS) Usage(path string) (vfs.Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.begin(Op{Kind: Usage, Path: path}); err != nil {
		return vfs.Usage{}, err
	}
	u := vfs.Usage{Total: total, Free: total, Type: s.fsType}
	if s.free >= 0 {
		u.Free = uint64(s.free)
	}
	return u, nil
}

// adopt gives the node of a live name. A file that was made past the seam, as
// the tree makes its own, gets one now: it counts as created here, and its
// content as synced by whoever writes to it.
func (d *dir) adopt(name, path string) (*node, error) {
	if n := d.live[name]; n != nil {
		return n, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	n := &node{outside: true, size: info.Size()}
	d.change(entryChange{name: name, node: n})
	return n, nil
}

// adoptAll adopts every file in the directory.
func (d *dir) adoptAll(path string) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return // removed by the test
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			_, _ = d.adopt(e.Name(), filepath.Join(path, e.Name()))
		}
	}
}

// adoptAll adopts every file made past the seam, and takes the content of the
// adopted ones as it is now.
func (s *FS) adoptAll() {
	for _, path := range slices.Sorted(maps.Keys(s.dirs)) {
		d := s.dirs[path]
		d.adoptAll(path)
		for name, n := range d.live {
			n.refresh(filepath.Join(path, name))
		}
	}
}
