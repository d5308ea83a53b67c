package zfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// copyStep is how much is copied between two looks at the context, in bytes.
const copyStep = 16 << 20

// copyNamed copies files and directories called names from one directory to another.
func copyNamed(ctx context.Context, to, from string, names []string) error {
	for _, name := range names {
		err := filepath.WalkDir(filepath.Join(from, name), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(from, path)
			if err != nil {
				return err
			}
			target := filepath.Join(to, rel)
			switch {
			case d.IsDir():
				return os.Mkdir(target, 0o700)
			case d.Type().IsRegular():
				return copyFile(ctx, target, path)
			}
			return nil // a socket
		})
		if _, missing := os.Lstat(filepath.Join(from, name)); err != nil && !errors.Is(missing, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// copyFile copies a file, sharing its blocks where the file system can do that.
func copyFile(ctx context.Context, to, from string) (err error) {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	if unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) == nil {
		return nil
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.Copy(dst, &io.LimitedReader{R: src, N: copyStep})
		if err != nil || n == 0 {
			return err
		}
	}
}

// owner is who the data directory belongs to. When root makes a copy, it belongs
// to them, too.
type owner struct {
	uid, gid int
	gives    bool // this process is root
}

func ownerOf(dir string) (owner, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return owner{}, err
	}
	o := owner{}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		o = owner{uid: int(sys.Uid), gid: int(sys.Gid), gives: os.Geteuid() == 0}
	}
	return o, nil
}

func (o owner) give(path string) error {
	if !o.gives {
		return nil
	}
	return os.Lchown(path, o.uid, o.gid)
}

// mkdir makes a directory that only its owner can look into: it holds Secrets.
func (o owner) mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return o.give(dir)
}

// settle makes all that is in a directory durable, for its owner alone.
func settle(dir string, o owner) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := o.give(path); err != nil {
			return err
		}
		mode := fs.FileMode(0o600)
		if d.IsDir() {
			mode = 0o700
		}
		if err := os.Chmod(path, mode); err != nil {
			return err
		}
		return syncDir(path) // the same for a file
	})
}

// syncDir makes the entries of a directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// escapeGlob makes a path match itself alone.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}
