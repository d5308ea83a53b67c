package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/tarn-kv/tarn/store/vfs"
)

var (
	// ErrFailed is returned by writes after one of them failed in a way that
	// leaves open what is on the disk. It is final: the process should end and
	// recover from the file and the log at its next start.
	ErrFailed = errors.New("the tree failed")

	// ErrDamaged is returned when the file's content is not what was once
	// written: bad pages, a cut-off file, or records against the schema.
	ErrDamaged = errors.New("the file is damaged")

	// ErrForeign is returned by Open when the file is a good bbolt file but has
	// not etcd's buckets.
	ErrForeign = errors.New("not an etcd database")

	// ErrLocked is returned by Open when another process has the file open.
	ErrLocked = errors.New("in use by another process")

	// ErrReadOnly is returned by writes to a tree that was opened with
	// Options.ReadOnly.
	ErrReadOnly = errors.New("opened for reading only")

	// ErrPagesHeld is returned by GiveBack while a read is open that may need
	// pages which are free now.
	ErrPagesHeld = errors.New("an older read is open")

	// ErrClosed is returned after Close.
	ErrClosed = errors.New("the tree is closed")
)

// pathError says what was tried with which file and why it failed. The system's errors name
// the file themselves: it is said once.
func pathError(op, path string, err error) error {
	if of, ok := err.(*fs.PathError); ok && of.Path == path {
		err = of.Err
	}
	return fmt.Errorf("tree: %s %s: %w", op, path, err)
}

// damaged turns what was found into an ErrDamaged.
func damaged(op, path string, cause any) error {
	text := fmt.Sprint(cause)
	if err, ok := cause.(error); ok {
		text = err.Error()
	}
	return pathError(op, path, fmt.Errorf("%w (%s)", ErrDamaged, strings.TrimPrefix(text, assertion)))
}

// noSpace tells whether a commit failed for want of space. bbolt turns some
// causes into text, so the text is looked at as well.
func noSpace(err error) bool {
	if err == nil {
		return false
	}
	if vfs.IsNoSpace(err) {
		return true
	}
	text := err.Error()
	return strings.HasPrefix(text, "file ") &&
		(strings.HasSuffix(text, syscall.ENOSPC.Error()) || strings.HasSuffix(text, syscall.EDQUOT.Error()))
}

// asNoSpace makes an error that says that there was no space match vfs.IsNoSpace.
func asNoSpace(err error) error {
	if noSpace(err) {
		return noSpaceError{err}
	}
	return err
}

// noSpaceError keeps the text of a cause that bbolt flattened and matches
// vfs.IsNoSpace.
type noSpaceError struct{ cause error }

func (e noSpaceError) Error() string   { return e.cause.Error() }
func (e noSpaceError) Unwrap() []error { return []error{e.cause, syscall.ENOSPC} }
