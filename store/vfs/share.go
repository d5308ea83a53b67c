package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// SharesBlocks tells whether a copy of the file src in the directory dir would share its blocks, by
// making one that has no name and is gone at once. An error says that it can not be told.
func SharesBlocks(dir, src string) (shares bool, err error) {
	from, err := OpenRegular(src, os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer from.Close()
	to, err := os.OpenFile(dir, os.O_WRONLY|unix.O_TMPFILE, 0o600)
	if err != nil {
		return false, err
	}
	err = unix.IoctlFileClone(int(to.Fd()), int(from.Fd()))
	return err == nil, to.Close()
}
