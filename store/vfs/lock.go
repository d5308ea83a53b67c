package vfs

import (
	"crypto/rand"
	"encoding/hex"
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
	Holder Holder
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("lock %s: in use by %s; %s", e.Dir, e.Holder.Who, e.Holder.NextStep("stop that process first"))
}

// Is makes a LockedError match ErrLocked.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

const (
	lockTries    = 5
	lockPause    = 20 * time.Millisecond
	maxHolderLen = 300
)

// The second line of the lock file: what the holder is. Before it comes the text for people.
const (
	serverLine  = "server " // and its instance
	offlineLine = "no server"
	// nobodyKnown is a holder whose file says nothing, for people.
	nobodyKnown = "another process"
	// maxKindLen is longer than such a line, in bytes.
	maxKindLen = 100
)

// Lock takes the directory for this process until the result is closed, or the
// process ends. It fails with an error matching ErrLocked if the directory is
// taken, also by this process itself. The lock file stays; who holds the lock may
// remove it. The file tells that the holder is no server.
func Lock(dir string) (io.Closer, error) { return lockAs(dir, offlineLine) }

// LockForServer is Lock for a server. The instance is a random number in hex that nobody
// else has: the server tells it to those who ask, so that they can see whether it is
// the one that holds the directory (see HolderOf).
func LockForServer(dir string) (lock io.Closer, instance string, err error) {
	var id [16]byte
	rand.Read(id[:])
	instance = hex.EncodeToString(id[:])
	lock, err = lockAs(dir, serverLine+instance)
	return lock, instance, err
}

func lockAs(dir, kind string) (io.Closer, error) {
	f, err := lockFile(dir, filepath.Join(dir, LockName))
	if err != nil {
		return nil, err
	}
	who := fmt.Sprintf("pid %d, since %s, command: %s", os.Getpid(),
		time.Now().UTC().Format(time.RFC3339), strings.Join(os.Args, " "))
	who = strings.ReplaceAll(who[:min(len(who), maxHolderLen)], "\n", " ")
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(who+"\n"+kind+"\n"), 0)
	}
	// The text is only for people and for a comparison: a full disk must not keep a server down.
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
			err = &LockedError{Dir: dir, Holder: readHolder(f)}
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

// Holder is the process that holds the lock of a directory.
type Holder struct {
	Who      string // for a person
	Instance string // of a server, as it got it from LockForServer; "" if that is not known
	Offline  bool   // it is known to be no server
}

// NextStep is what a person does about a holder that is in the way: server is that for one that
// is a server, or may be one. A command ends by itself, and stopping it would only waste its work.
func (h Holder) NextStep(server string) string {
	if h.Offline {
		return "that is no server: wait until it has ended, then run this again"
	}
	return server
}

// HolderOf tells whether a process, perhaps this one, holds the lock of the
// directory, and which. It changes nothing and needs only the right to read.
func HolderOf(dir string) (h Holder, locked bool) {
	f, err := OpenRegular(filepath.Join(dir, LockName), os.O_RDONLY, 0)
	if err != nil {
		return Holder{}, false
	}
	defer f.Close()
	for try := 1; ; try++ {
		if flock(f, unix.LOCK_SH) != unix.EWOULDBLOCK {
			return Holder{}, false
		}
		// Whoever takes or gives up the lock has it for an instant without a text.
		if h = readHolder(f); h.Who != nobodyKnown || try == lockTries {
			return h, true
		}
		time.Sleep(lockPause)
	}
}

// Locked is HolderOf for those who only show it.
func Locked(dir string) (who string, locked bool) {
	h, locked := HolderOf(dir)
	return h.Who, locked
}

type dirLock struct{ f *os.File }

func (l *dirLock) Close() error {
	return errors.Join(l.f.Truncate(0), l.f.Close())
}

func flock(f *os.File, how int) error {
	return ignoreEINTR(func() error { return unix.Flock(int(f.Fd()), how|unix.LOCK_NB) })
}

// readHolder reads a lock file. One without a second line is of an older version, or was written
// on a full disk.
func readHolder(f *os.File) (h Holder) {
	b := make([]byte, maxHolderLen+maxKindLen)
	n, _ := f.ReadAt(b, 0)
	who, kind, _ := strings.Cut(string(b[:n]), "\n")
	kind, _, whole := strings.Cut(kind, "\n")
	if h.Who = strings.TrimSpace(who[:min(len(who), maxHolderLen)]); h.Who == "" {
		h.Who = nobodyKnown
	}
	if whole {
		h.Instance, _ = strings.CutPrefix(kind, serverLine)
		if h.Offline = kind == offlineLine; h.Offline || h.Instance == kind {
			h.Instance = ""
		}
	}
	return h
}
