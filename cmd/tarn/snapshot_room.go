package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/vfs"
	"github.com/tarn-kv/tarn/zfs"
)

// leavesRoom refuses a copy of that many bytes if it would fill the file system of the data
// directory so far that a server there refuses writes.
func (o *snapshotCreateOptions) leavesRoom(dir string, size int64) error {
	c, err := zfs.NewCopies(dir)
	if err != nil {
		return err
	}
	if !sameFileSystem(dir, c.Root()) {
		return nil // there a full one does no harm to the server
	}
	u, err := o.usage(dir)
	if err != nil {
		return nil // then the copy shows it
	}
	reserve := store.ReservedRoom(u.Total)
	if u.Free >= uint64(size)+reserve {
		return nil
	}
	return fmt.Errorf("the copy takes about %s, %s are free on the file system of %s, and the server needs %s of them to go on taking writes; make room (tarn snapshot prune), or let %s be on another file system",
		roughBytes(size), roughBytes(int64(u.Free)), dir, roughBytes(int64(reserve)), c.Root())
}

// leavesRoomFor is leavesRoom for the files of a store that no server has, unless copies share their blocks.
func (o *snapshotCreateOptions) leavesRoomFor(dir string, names []string) error {
	if shared, err := vfs.SharesBlocks(dir, filepath.Join(dir, treeFile)); err == nil && shared {
		return nil
	}
	var size int64
	for _, name := range names {
		err := filepath.WalkDir(filepath.Join(dir, name), func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // missing, or the copy tells it
			}
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
				size += info.Size()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return o.leavesRoom(dir, size)
}

// sameFileSystem tells whether what is made at path comes to be on the file system of dir.
func sameFileSystem(dir, path string) bool {
	device := func(path string) (uint64, bool) {
		info, err := os.Stat(path)
		if err != nil {
			return 0, false
		}
		sys, ok := info.Sys().(*syscall.Stat_t)
		return uint64(sys.Dev), ok
	}
	of, known := device(dir)
	for ; ; path = filepath.Dir(path) {
		if there, ok := device(path); ok || path == filepath.Dir(path) {
			return known && ok && there == of
		}
	}
}
