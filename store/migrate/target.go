package migrate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/vfs"
)

// Names in a data directory.
const (
	treeName = "tree.db"
	walName  = "wal"
	etcdName = "member" // of a data directory of etcd
)

// target is a data directory that this process has locked.
type target struct {
	fs        vfs.FS
	dir, tree string
	made      bool // the directory was not there before
	lockMade  bool // its lock file was not
	installed bool // the store has its name
	lock      io.Closer
}

// checkTarget tells whether a directory can take an import, and changes nothing.
func checkTarget(o Options) error {
	names, err := o.FS.List(o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the data directory: %w", err)
	}
	for _, name := range []string{treeName, walName, etcdName, store.RestoreJournal} {
		if slices.Contains(names, name) {
			return fmt.Errorf("%w: %s holds %s, so there is a store already; use an empty directory", ErrTarget, o.Dir, name)
		}
	}
	if who, locked := vfs.Locked(o.Dir); locked {
		return fmt.Errorf("%w: %s is in use by %s; use an empty directory", ErrTarget, o.Dir, who)
	}
	return nil
}

// openTarget makes the directory and locks it.
func openTarget(o Options) (*target, error) {
	t := &target{fs: o.FS, dir: o.Dir, tree: filepath.Join(o.Dir, treeName)}
	before, err := o.FS.List(o.Dir)
	t.made = errors.Is(err, fs.ErrNotExist)
	t.lockMade = (err == nil || t.made) && !slices.Contains(before, vfs.LockName)
	if err := o.FS.MkdirAll(o.Dir); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	if t.lock, err = vfs.Lock(o.Dir); err != nil {
		if errors.Is(err, vfs.ErrLocked) {
			err = fmt.Errorf("%w: %w", ErrTarget, err)
		}
		return nil, t.close(err)
	}
	// Another import may have been faster: its lock is gone, so it does not show as in use.
	names, err := o.FS.List(o.Dir)
	if err == nil && slices.Contains(names, treeName) {
		err = fmt.Errorf("%w: %s got a store meanwhile; use an empty directory", ErrTarget, o.Dir)
	}
	if err != nil {
		return nil, t.close(err)
	}
	return t, nil
}

// close gives the directory back, and takes away what was made for an import that failed.
func (t *target) close(err error) error {
	if err != nil && !t.installed {
		if t.lock != nil && t.lockMade {
			_ = t.fs.Remove(filepath.Join(t.dir, vfs.LockName))
		}
		if t.made { // what else is in it keeps it
			_ = t.fs.Remove(t.dir)
		}
	}
	if t.lock != nil {
		err = errors.Join(err, t.lock.Close())
	}
	return err
}
