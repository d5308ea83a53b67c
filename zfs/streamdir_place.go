package zfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// checkPlace refuses a target that is no directory, or is in the dataset that it is
// to be a backup of.
func (p *dirPush) checkPlace() error {
	info, err := os.Stat(p.dir)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%s is a file: %w; name a directory, or one that is to be made", p.dir, ErrTargetInUse)
	}
	if p.from.mountpoint == "" {
		return nil
	}
	// The part that exists tells where the rest will be.
	place := p.dir
	for errors.Is(err, fs.ErrNotExist) && place != filepath.Dir(place) {
		place = filepath.Dir(place)
		info, err = os.Stat(place)
	}
	within, err2 := filepath.EvalSymlinks(place)
	mounted, err3 := filepath.EvalSymlinks(p.from.mountpoint)
	root, err4 := os.Stat(p.from.mountpoint)
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return nil // writing tells what is wrong with the place
	}
	rel, err := filepath.Rel(mounted, within)
	if err != nil || !filepath.IsLocal(rel) || device(info) != device(root) {
		return nil
	}
	return fmt.Errorf("%s is in %s itself, so it would be lost with it: %w; name a directory on another disk", p.dir, p.from.dataset, ErrTargetInUse)
}

// device tells file systems apart: another can be mounted below a dataset.
func device(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Dev)
	}
	return 0
}

// lockTarget keeps a second push out.
func lockTarget(dir string) (unlock func() error, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil && !errors.Is(err, unix.ENOTSUP) && !errors.Is(err, unix.ENOLCK) {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w; wait for its end, and run it again", dir, ErrUnderWay)
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return f.Close, nil
}

// enoughRoom refuses to begin a stream that can not end well.
func enoughRoom(dir string, size int64) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return nil // writing tells it
	}
	if free := int64(fs.Bavail) * fs.Bsize; free < size {
		return fmt.Errorf("%s has room for %d bytes, and the next stream needs about %d: %w; make room, or begin a new directory elsewhere", dir, free, size, ErrNoSpace)
	}
	return nil
}
