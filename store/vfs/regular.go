package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrNotRegular is returned, in a *fs.PathError, for a name that leads to a directory, a pipe, a
// device or a socket where a file is needed.
var ErrNotRegular = errors.New("not a regular file")

// OpenRegular is os.OpenFile for a regular file. Opening a pipe, or reading from it, would wait
// for another process for as long as that one likes: the error is then ErrNotRegular.
func OpenRegular(name string, flag int, perm fs.FileMode) (*os.File, error) {
	// O_NONBLOCK only matters while a pipe is opened; a regular file has no use for it.
	f, err := os.OpenFile(name, flag|unix.O_NONBLOCK, perm)
	if err != nil {
		if errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EISDIR) { // a pipe to write to, a socket, a directory
			err = &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
		}
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ReadFile is os.ReadFile for a regular file; for another one the error is ErrNotRegular.
func ReadFile(name string) ([]byte, error) {
	f, err := OpenRegular(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
