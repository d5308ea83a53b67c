package zfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// errLocked is returned when another process, or this one, works in a directory.
var errLocked = errors.New("another command works in it")

// lockPause is the time between two tries to get a lock.
const lockPause = 50 * time.Millisecond

// tryLockDir takes a directory for whoever holds the result, until it is closed.
func tryLockDir(dir string) (io.Closer, error) { return flockDir(dir, unix.LOCK_EX) }

// shareDir keeps others from taking a directory until the result is closed.
func shareDir(dir string) (io.Closer, error) { return flockDir(dir, unix.LOCK_SH) }

func flockDir(dir string, how int) (io.Closer, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%s: %w", dir, errLocked)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// lockDir is tryLockDir that waits until ctx ends.
func lockDir(ctx context.Context, dir string) (io.Closer, error) {
	for {
		lock, err := tryLockDir(dir)
		if !errors.Is(err, errLocked) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", err, ctx.Err())
		case <-time.After(lockPause):
		}
	}
}
