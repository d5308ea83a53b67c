package nodeconf

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// With is the machine as it would be with other files, by their absolute paths. nil stands for a file that is
// not there. It is for asking what a change would do before it is made.
func (m Machine) With(files map[string][]byte) Machine {
	changed := overlay{base: m.Root, files: map[string][]byte{}}
	for name, text := range files {
		changed.files[inside(name)] = text
	}
	m.Root = changed
	return m
}

// overlay is a file system with some other files.
type overlay struct {
	base  fs.FS
	files map[string][]byte
}

func notExist(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }

// Open opens what is not changed: changed files are read through ReadFile.
func (o overlay) Open(name string) (fs.File, error) {
	if _, changed := o.files[name]; changed {
		return nil, notExist("open", name)
	}
	return o.base.Open(name)
}

func (o overlay) ReadFile(name string) ([]byte, error) {
	if text, changed := o.files[name]; changed {
		if text == nil {
			return nil, notExist("open", name)
		}
		return slices.Clone(text), nil
	}
	return fs.ReadFile(o.base, name)
}

func (o overlay) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(o.base, name)
	if err != nil && (!errors.Is(err, fs.ErrNotExist) || !o.adds(name)) {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		_, changed := o.files[path.Join(name, e.Name())]
		return changed
	})
	for file, text := range o.files {
		rest, below := strings.CutPrefix(file, name+"/")
		first, _, deeper := strings.Cut(rest, "/")
		if !below || text == nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == first }) {
			continue
		}
		entries = append(entries, fs.FileInfoToDirEntry(overlayInfo{name: first, size: int64(len(text)), dir: deeper}))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// adds tells whether a file was added below a directory.
func (o overlay) adds(dir string) bool {
	for file, text := range o.files {
		if text != nil && strings.HasPrefix(file, dir+"/") {
			return true
		}
	}
	return false
}

func (o overlay) Stat(name string) (fs.FileInfo, error) { return o.info("stat", name, fs.Stat) }

func (o overlay) Lstat(name string) (fs.FileInfo, error) { return o.info("lstat", name, fs.Lstat) }

func (o overlay) ReadLink(name string) (string, error) { return fs.ReadLink(o.base, name) }

func (o overlay) info(op, name string, look func(fs.FS, string) (fs.FileInfo, error)) (fs.FileInfo, error) {
	text, changed := o.files[name]
	switch {
	case changed && text == nil:
		return nil, notExist(op, name)
	case changed:
		return overlayInfo{name: path.Base(name), size: int64(len(text))}, nil
	}
	info, err := look(o.base, name)
	if errors.Is(err, fs.ErrNotExist) && o.adds(name) {
		return overlayInfo{name: path.Base(name), dir: true}, nil
	}
	return info, err
}

// overlayInfo describes a file or directory that is only thought of.
type overlayInfo struct {
	name string
	size int64
	dir  bool
}

func (i overlayInfo) Name() string       { return i.name }
func (i overlayInfo) Size() int64        { return i.size }
func (i overlayInfo) ModTime() time.Time { return time.Time{} }
func (i overlayInfo) IsDir() bool        { return i.dir }
func (i overlayInfo) Sys() any           { return nil }

func (i overlayInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o600
}
