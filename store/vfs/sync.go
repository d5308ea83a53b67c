package vfs

import (
	"io/fs"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Sync is fdatasync: the content and the size, not the times. It is in the path
// of each write to the store, hence written out so as to allocate nothing.
func (f *osFile) Sync() error {
	err := unix.Fdatasync(int(f.Fd()))
	for err == unix.EINTR {
		err = unix.Fdatasync(int(f.Fd()))
	}
	runtime.KeepAlive(f)
	if err != nil {
		return &fs.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
	}
	return nil
}

func (osFS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
