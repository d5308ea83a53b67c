package nodeconf

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// maxFile is how large a file of configuration can be, in bytes.
const maxFile = 1 << 20

var errNotRegular = errors.New("it is not a regular file")

// regularFiles is a file system of which only directories and regular files are opened, and files of a size that
// configuration can have: reading a named pipe or a device could last for ever, and can not be broken off.
type regularFiles struct{ base fs.FS }

// check returns why a file is not opened; nil if it is, and also where opening it will tell.
func (r regularFiles) check(name string) error {
	info, err := fs.Stat(r.base, name)
	switch {
	case err != nil || info.IsDir() || isNull(info):
		return err
	case !info.Mode().IsRegular():
		return &fs.PathError{Op: "open", Path: name, Err: errNotRegular}
	case info.Size() > maxFile:
		return &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("it is too large to be a configuration (%d bytes, the limit is %d)", info.Size(), maxFile)}
	}
	return nil
}

// isNull tells /dev/null, which systemd takes for a unit that is masked, from the other devices.
func isNull(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&fs.ModeCharDevice != 0 && uint64(st.Rdev) == 1<<8|3
}

func (r regularFiles) Open(name string) (fs.File, error) {
	if err := r.check(name); err != nil {
		return nil, err
	}
	return r.base.Open(name)
}

func (r regularFiles) ReadFile(name string) ([]byte, error) {
	if err := r.check(name); err != nil {
		return nil, err
	}
	return fs.ReadFile(r.base, name)
}

func (r regularFiles) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(r.base, name) }
func (r regularFiles) Stat(name string) (fs.FileInfo, error)      { return fs.Stat(r.base, name) }
func (r regularFiles) Lstat(name string) (fs.FileInfo, error)     { return fs.Lstat(r.base, name) }
func (r regularFiles) ReadLink(name string) (string, error)       { return fs.ReadLink(r.base, name) }
