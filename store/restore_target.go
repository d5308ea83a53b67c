package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tarn-kv/tarn/store/vfs"
)

// oldState is what is in the directory that a restore goes to.
type oldState struct {
	there        bool // it holds a store, readable or not
	term         int64
	authRevision uint64
	uid, gid     int // whom its files belong to
}

// oldNames are the names that a store can have in its directory, in the order in which they go.
var oldNames = []string{walName, treeName + ".new", treeName}

// lockDir makes the directory and takes it.
func (x *restorer) lockDir() (lock io.Closer, made bool, err error) {
	_, err = x.FS.List(x.Dir)
	made = errors.Is(err, fs.ErrNotExist)
	if err := x.FS.MkdirAll(x.Dir); err != nil {
		return nil, false, fmt.Errorf("make the directory: %w", err)
	}
	_, statErr := os.Stat(filepath.Join(x.Dir, vfs.LockName))
	if lock, err = vfs.Lock(x.Dir); err != nil {
		if errors.Is(err, vfs.ErrLocked) {
			err = fmt.Errorf("%w: %w", ErrInUse, err)
		}
		return nil, false, err
	}
	if errors.Is(statErr, fs.ErrNotExist) {
		uid, gid, err := vfs.Owner(x.Dir)
		if err == nil {
			err = giveTo(uid, gid, filepath.Join(x.Dir, vfs.LockName))
		}
		if err != nil {
			return nil, false, errors.Join(err, lock.Close())
		}
	}
	return lock, made, nil
}

// readOld looks at what is in the directory. What can not be read is kept all the same.
func (x *restorer) readOld(ctx context.Context) (err error) {
	names, err := x.FS.List(x.Dir)
	if err != nil {
		return fmt.Errorf("read the directory: %w", err)
	}
	owner := x.Dir
	if slices.Contains(names, treeName) {
		owner = filepath.Join(x.Dir, treeName)
	}
	if x.old.uid, x.old.gid, err = vfs.Owner(owner); err != nil {
		return err
	}
	x.old.there = slices.ContainsFunc(names, func(n string) bool { return slices.Contains(oldNames, n) })
	if !x.old.there {
		return nil
	}
	v, err := openView(ctx, x.Dir)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrInUse) {
			return err
		}
		x.report.OldProblem = err.Error()
		return nil
	}
	defer v.Close()
	if v.ID() != "" && v.ID() != x.source.StoreID && !x.OtherStore {
		return fmt.Errorf("%w: %s holds store %s, and %s is of store %q; restore into another directory, or say that the other store may be replaced",
			ErrRestoreTarget, x.Dir, v.ID(), x.name(), x.source.StoreID)
	}
	x.report.OldStoreID, x.report.OldRevision = v.ID(), v.Revision()
	x.old.term, x.old.authRevision = v.s.term, v.s.auth.head.Revision()
	return nil
}

// makeAside makes the directory for the old state and returns its name.
func (x *restorer) makeAside() (name string, err error) {
	if !x.old.there {
		return "", nil
	}
	names, err := x.FS.List(x.Dir)
	if err != nil {
		return "", err
	}
	base := asideName + x.Time.UTC().Format("20060102T150405Z")
	name = base
	for n := 2; slices.Contains(names, name); n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	path := filepath.Join(x.Dir, name)
	if err := x.FS.MkdirAll(path); err != nil {
		return "", err
	}
	if err := x.give(path); err != nil {
		return "", errors.Join(err, x.FS.Remove(path))
	}
	return name, nil
}

// withdraw undoes the last step after the journal could not be written. If it may be there all the
// same, the restore can only go on.
func (x *restorer) withdraw(err error, aside string) error {
	if noRestoreIn(x.FS, x.Dir) != nil {
		return errors.Join(restoring(x.Dir), err)
	}
	if aside != "" {
		err = errors.Join(err, x.FS.Remove(filepath.Join(x.Dir, aside)))
	}
	return err
}

// cleanUp takes away what was made for a restore that failed.
func (x *restorer) cleanUp(made bool) {
	_ = removeStaging(x.FS, x.staging)
	_ = removeIfThere(x.FS, filepath.Join(x.Dir, RestoreJournal+".new"))
	if made {
		_ = x.FS.Remove(filepath.Join(x.Dir, vfs.LockName))
		_ = x.FS.Remove(x.Dir)
	}
}

func removeStaging(files vfs.FS, staging string) error {
	names, err := files.List(staging)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		err = errors.Join(err, files.Remove(filepath.Join(staging, name)))
	}
	if err != nil {
		return err
	}
	return files.Remove(staging)
}

// give gives what root has made to the owner of the data directory's files: the server must be able to
// use it.
func (x *restorer) give(names ...string) error { return giveTo(x.old.uid, x.old.gid, names...) }

func giveTo(uid, gid int, names ...string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range names {
		if err := os.Lchown(name, uid, gid); err != nil {
			return err
		}
	}
	return nil
}

// explainNoSpace says how much space is needed, where that is what was missing.
func (x *restorer) explainNoSpace(err error) error {
	if !vfs.IsNoSpace(err) || errors.Is(err, ErrRestoring) {
		return err
	}
	const mib = 1 << 20
	free := "less than that"
	if u, usageErr := x.FS.Usage(x.Dir); usageErr == nil {
		free = fmt.Sprintf("%d MiB", u.Free/mib)
	}
	return fmt.Errorf("there is no space in %s for the restored state beside the present one: it needs about %d MiB, and %s are free; nothing was changed: make room (an older %s* directory that is not needed any more?), or raise the quota (zfs set refquota): %w",
		x.Dir, (x.source.TreeBytes+x.source.WALBytes)/mib+1, free, asideName, err)
}
