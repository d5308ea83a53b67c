package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// LockName is the name of the lock file in a directory that Lock was called on.
const LockName = "LOCK"

// ErrLocked is returned (as a *LockedError) when another process holds the
// lock of a directory.
var ErrLocked = errors.New("directory is in use")

// LockedError is the ErrLocked of one directory.
type LockedError struct {
	Dir    string
	Holder string // who holds the lock, for a person
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("lock %s: in use by %s; stop that process first", e.Dir, e.Holder)
}

// Is makes a LockedError match ErrLocked.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

const (
	lockTries    = 5
	lockPause    = 20 * time.Millisecond
	maxHolderLen = 300
)

// Lock takes the directory for this process until the result is closed, or the
// process ends. It fails with an error matching ErrLocked if the directory is
// taken, also by this process itself. The lock file stays; who holds the lock may
// remove it.
func Lock(dir string) (io.Closer, error) {
	f, err := lockFile(dir, filepath.Join(dir, LockName))
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("pid %d, since %s, command: %s\n", os.Getpid(),
		time.Now().UTC().Format(time.RFC3339), strings.Join(os.Args, " "))
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(text), 0)
	}
	// The text is only for people: a full disk must not keep a server down.
	if err != nil && !IsNoSpace(err) {
		f.Close()
		return nil, err
	}
	return &dirLock{f}, nil
}

// lockFile opens and locks the file of that name.
func lockFile(dir, name string) (*os.File, error) {
	// Locked holds the lock for an instant, hence more than one try.
	for try := 1; ; try++ {
		f, err := OpenRegular(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		err = flock(f, unix.LOCK_EX)
		if err == nil {
			var named bool
			if named, err = isNamed(f, name); named {
				return f, nil
			}
		} else if err != unix.EWOULDBLOCK {
			err = &fs.PathError{Op: "flock", Path: name, Err: err}
		} else if err = nil; try == lockTries {
			err = &LockedError{Dir: dir, Holder: holder(f)}
		}
		f.Close()
		if err != nil {
			return nil, err
		}
		time.Sleep(lockPause)
	}
}

// isNamed tells whether the name still leads to the file. If the one who held its lock has removed
// it, others lock another file.
func isNamed(f *os.File, name string) (bool, error) {
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	now, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, now), err
}

// Locked tells whether a process, perhaps this one, holds the lock of the
// directory, and which. It changes nothing and needs only the right to read.
func Locked(dir string) (who string, locked bool) {
	f, err := OpenRegular(filepath.Join(dir, LockName), os.O_RDONLY, 0)
	if err != nil {
		return "", false
	}
	defer f.Close()
	if flock(f, unix.LOCK_SH) != unix.EWOULDBLOCK {
		return "", false
	}
	return holder(f), true
}

type dirLock struct{ f *os.File }

func (l *dirLock) Close() error {
	return errors.Join(l.f.Truncate(0), l.f.Close())
}

func flock(f *os.File, how int) error {
	return ignoreEINTR(func() error { return unix.Flock(int(f.Fd()), how|unix.LOCK_NB) })
}

func holder(f *os.File) string {
	b := make([]byte, maxHolderLen)
	n, _ := f.ReadAt(b, 0)
	if text := strings.TrimSpace(string(b[:n])); text != "" {
		return text
	}
	return "another process"
}
