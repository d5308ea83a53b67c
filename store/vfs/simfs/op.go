package simfs

import (
	"errors"
	"io/fs"
)

// Kind is what an operation does.
type Kind string

// The kinds of operations. Those of the second group only read.
const (
	Create      Kind = "create"
	Rename      Kind = "rename"
	Remove      Kind = "remove"
	Mkdir       Kind = "mkdir"
	SyncDir     Kind = "syncdir"
	Commit      Kind = "commit"
	PunchHole   Kind = "punchhole"
	Write       Kind = "write"
	Truncate    Kind = "truncate"
	Preallocate Kind = "preallocate"
	Sync        Kind = "sync"

	Open     Kind = "open"
	OpenRead Kind = "openread"
	List     Kind = "list"
	Usage    Kind = "usage"
	Read     Kind = "read"
	Size     Kind = "size"
)

// Changes tells whether operations of this kind change the disk, and are
// counted.
func (k Kind) Changes() bool {
	switch k {
	case Open, OpenRead, List, Usage, Read, Size:
		return false
	}
	return true
}

// Op is one call of the file system.
type Op struct {
	N       int // number of the changing operation, or of the last one before a reading one
	Kind    Kind
	Path    string
	NewPath string // of Rename
	Off     int64  // of Read, Write and PunchHole; the new size for Truncate and Preallocate
	Len     int64  // of Read, Write and PunchHole
}

func (o Op) fail(err error) error {
	return &fs.PathError{Op: string(o.Kind), Path: o.Path, Err: err}
}

// ShortWrite, returned by a hook for a Write, makes the write fail with Err
// after N bytes.
type ShortWrite struct {
	N   int
	Err error
}

func (s *ShortWrite) Error() string { return s.Err.Error() }

// Unwrap gives the error that the write fails with.
func (s *ShortWrite) Unwrap() error { return s.Err }

func asShort(err error) (*ShortWrite, bool) {
	var short *ShortWrite
	ok := errors.As(err, &short)
	return short, ok
}
