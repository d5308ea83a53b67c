package vfs

import (
	"io/fs"
	"os"
	"syscall"
)

// Owner tells whom a file or a directory belongs to, by number.
func Owner(name string) (uid, gid int, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return 0, 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, &fs.PathError{Op: "stat", Path: name, Err: syscall.ENOTSUP}
	}
	return int(st.Uid), int(st.Gid), nil
}
