// Package vfs is the file-system seam under the write-ahead log and the tree.
//
// Everything the store does to a disk goes through FS and File, so that tests
// can make a call fail, fill the disk, or lose what was not synced, at any
// call. OS is the real thing.
package vfs

import (
	"errors"
	"io"
	"os"
)

// ErrNoHoles is returned by FS.PunchHole where the file system can not make holes.
var ErrNoHoles = errors.New("the file system can not make holes in files")

// FS is what the store needs of a file system. Paths are absolute or relative
// to the process's working directory. All methods are safe for concurrent use.
type FS interface {
	// Create makes a new empty file open for reading and writing. It fails with
	// an error matching fs.ErrExist if the name is taken. The directory entry
	// is durable only after SyncDir.
	Create(name string) (File, error)
	// Open opens an existing file for reading and writing.
	Open(name string) (File, error)
	// OpenRead opens an existing file for reading only.
	OpenRead(name string) (File, error)
	// Rename replaces newName atomically. Durable only after SyncDir.
	Rename(oldName, newName string) error
	// Remove deletes a file or an empty directory. Durable only after SyncDir.
	Remove(name string) error
	// List returns the names in a directory, sorted, without the directory's path.
	List(dir string) ([]string, error)
	// MkdirAll makes a directory and its parents (mode 0700) and syncs the
	// parent of each directory that it made.
	MkdirAll(dir string) error
	// SyncDir makes the directory's entries durable.
	SyncDir(dir string) error
	// Usage tells how much space an unprivileged writer has left in the file
	// system that holds dir.
	Usage(dir string) (Usage, error)
	// Commit runs one commit of a memory-mapped file (the tree). The tree
	// writes and syncs through a descriptor of its own, so the seam sees a commit as one
	// step: the real file system only calls commit; a simulating one can fail
	// before it or keep what the file was.
	Commit(name string, commit func() error) error
	// PunchHole gives the blocks of size bytes at off back to the file system: they read as
	// zeros, and the file keeps its length. f is the descriptor through which the file
	// with that name is written past the seam. ErrNoHoles is returned where it can not be done.
	PunchHole(name string, f *os.File, off, size int64) error
}

// File is an open file of an FS. ReadAt is safe for concurrent use; the
// other methods are called by one goroutine at a time.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	Truncate(size int64) error
	// Preallocate reserves space up to size bytes and extends the file to it,
	// reading as zeros. It does nothing, without an error, where the file
	// system gains nothing from it (ZFS, btrfs) or can not do it (see
	// vfs.Preallocates).
	Preallocate(size int64) error
	// Sync makes the file's content (and what is needed to read it back)
	// durable: fdatasync. After a failed Sync nothing may be assumed about
	// what is on the disk, and Sync must not be tried again.
	Sync() error
}

// Usage is the space of a file system in bytes, as statfs gives it to a user
// without privileges (quotas and reserves already taken off).
type Usage struct {
	Total, Free uint64
	// Type is the file system's name where it is known ("zfs", "ext4", "xfs",
	// "btrfs", "tmpfs", "overlay"), else its magic number in hex.
	Type string
}
