package zfs

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// fileError is the failure of an operation on files, with its kind and the next step.
type fileError struct {
	kind  error // one of the kinds, or nil
	cause error
	step  string // "" if there is nothing to advise
}

func (e *fileError) Error() string {
	text := e.cause.Error()
	// The system says the same of a missing right in the same words.
	if e.kind != nil && e.kind != ErrPermission {
		text = e.kind.Error() + ": " + text
	}
	if e.step != "" {
		text += "; " + e.step
	}
	return text
}

func (e *fileError) Unwrap() []error {
	if e.kind == nil {
		return []error{e.cause}
	}
	return []error{e.kind, e.cause}
}

// explain gives the error of a file operation on the copies its kind and the next step.
func (c *Copies) explain(err error) error { return explainFile(err, c.dir, c.root) }

// explainFile gives the error of a file operation its kind and the next step. owned is the directory
// whose owner may do it, and at is where it was done. What was explained before stays as it is.
func explainFile(err error, owned, at string) error {
	var before *fileError
	if err == nil || errors.As(err, &before) {
		return err
	}
	for _, k := range []struct {
		is, kind error
		step     string
	}{
		{fs.ErrNotExist, ErrNotFound, ""},
		{fs.ErrPermission, ErrPermission, ownerStep(owned)},
		{syscall.ENOSPC, ErrNoSpace, roomStep(at)},
		{syscall.EDQUOT, ErrNoSpace, roomStep(at)},
		{syscall.EROFS, nil, "the file system of " + at + " is mounted read-only: mount it for writing (mount -o remount,rw), and look in the kernel's log (dmesg) for why it is"},
	} {
		if errors.Is(err, k.is) {
			return &fileError{kind: k.kind, cause: err, step: k.step}
		}
	}
	return err
}

func ownerStep(dir string) string {
	return "run it as root, or as the user whom " + dir + " belongs to"
}

func roomStep(dir string) string {
	return "make room on the file system of " + dir + " (tarn snapshot prune) and try again"
}

// explainRoot is explain for the making of the root, which only who may write beside the data
// directory can do.
func (c *Copies) explainRoot(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return &fileError{kind: ErrPermission, cause: err, step: fmt.Sprintf(
			"only root may make that directory here: run tarn snapshot create once as root, who gives it to the owner of %s", c.dir)}
	}
	return c.explain(err)
}
