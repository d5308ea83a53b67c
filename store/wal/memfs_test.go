package wal

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/tarn-kv/tarn/store/vfs"
)

// memFS is a file system of one directory in memory, for one goroutine that opens
// logs very often. It simulates no crashes; simfs does.
type memFS map[string]*memFile // by name without the directory

func newMemFS(files map[string][]byte) memFS {
	m := memFS{}
	for name, b := range files {
		m[name] = &memFile{b: bytes.Clone(b)}
	}
	return m
}

// content is a copy of all files.
func (m memFS) content() map[string][]byte {
	files := map[string][]byte{}
	for name, f := range m {
		files[name] = bytes.Clone(f.b)
	}
	return files
}

func (m memFS) Create(name string) (vfs.File, error) {
	name = filepath.Base(name)
	if m[name] != nil {
		return nil, fs.ErrExist
	}
	m[name] = &memFile{}
	return m[name], nil
}

func (m memFS) Open(name string) (vfs.File, error) {
	if f := m[filepath.Base(name)]; f != nil {
		return f, nil
	}
	return nil, fs.ErrNotExist
}

func (m memFS) OpenRead(name string) (vfs.File, error) { return m.Open(name) }

func (m memFS) Rename(oldName, newName string) error {
	f, err := m.Open(oldName)
	if err != nil {
		return err
	}
	delete(m, filepath.Base(oldName))
	m[filepath.Base(newName)] = f.(*memFile)
	return nil
}

func (m memFS) Remove(name string) error {
	_, err := m.Open(name)
	delete(m, filepath.Base(name))
	return err
}

func (m memFS) List(string) ([]string, error) { return slices.Sorted(maps.Keys(m)), nil }

func (m memFS) MkdirAll(string) error { return nil }
func (m memFS) SyncDir(string) error  { return nil }

func (m memFS) Usage(string) (vfs.Usage, error) {
	return vfs.Usage{Total: 1 << 40, Free: 1 << 40, Type: "ext4"}, nil
}

func (m memFS) Commit(_ string, commit func() error) error { return commit() }

func (m memFS) PunchHole(string, *os.File, int64, int64) error { return vfs.ErrNoHoles }

type memFile struct{ b []byte }

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(f.b)) {
		return 0, io.EOF
	}
	n := copy(p, f.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.Preallocate(off + int64(len(p))); err != nil {
		return 0, err
	}
	return copy(f.b[off:], p), nil
}

func (f *memFile) Truncate(size int64) error {
	f.b = f.b[:min(size, int64(len(f.b)))]
	return f.Preallocate(size)
}

func (f *memFile) Preallocate(size int64) error {
	if more := size - int64(len(f.b)); more > 0 {
		f.b = append(f.b, make([]byte, more)...)
	}
	return nil
}

func (f *memFile) Size() (int64, error) { return int64(len(f.b)), nil }
func (f *memFile) Sync() error          { return nil }
func (f *memFile) Close() error         { return nil }
