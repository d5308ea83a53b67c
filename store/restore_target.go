package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/tarn-kv/tarn/store/vfs"
)

// oldState is what is in the directory that a restore goes to.
type oldState struct {
	there        bool // it holds a store, readable or not
	term         int64
	authRevision uint64
	uid, gid     int   // whom its files belong to
	left         int64 // a revision that was handed out, where it can not be read as a whole; 0 if none is known
}

// oldNames are the names that a store can have in its directory, in the order in which they go.
var oldNames = []string{walName, treeName + ".new", treeName}

// lockDir makes the directory and takes it.
func (x *restorer) lockDir() (lock io.Closer, err error) {
	missing, err := x.missing()
	if err != nil {
		return nil, err
	}
	if err := x.FS.MkdirAll(x.Dir); err != nil {
		return nil, fmt.Errorf("make the directory: %w", err)
	}
	if err := giveTo(x.old.uid, x.old.gid, missing...); err != nil {
		return nil, err
	}
	_, statErr := os.Stat(filepath.Join(x.Dir, vfs.LockName))
	if lock, err = vfs.Lock(x.Dir); err != nil {
		return nil, x.targetInUse(err)
	}
	if errors.Is(statErr, fs.ErrNotExist) {
		uid, gid, err := vfs.Owner(x.Dir)
		if err == nil {
			err = giveTo(uid, gid, filepath.Join(x.Dir, vfs.LockName))
		}
		if err != nil {
			return nil, errors.Join(err, lock.Close())
		}
	}
	return lock, nil
}

// tryDir tells whether lockDir could do it, and makes nothing.
func (x *restorer) tryDir() error {
	if _, err := x.missing(); err != nil {
		return err
	}
	if h, locked := vfs.HolderOf(x.Dir); locked {
		return x.targetInUse(&vfs.LockedError{Dir: x.Dir, Holder: h})
	}
	dir := existingPart(x.Dir)
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return &fs.PathError{Op: "write in", Path: dir, Err: err}
	}
	return nil
}

// targetInUse says what to do about the process that has the directory, if that is what is wrong.
func (x *restorer) targetInUse(err error) error {
	var locked *vfs.LockedError
	if !errors.As(err, &locked) {
		return err
	}
	return fmt.Errorf("%w: %s is in use by %s; %s", ErrInUse, x.Dir, locked.Holder.Who,
		locked.Holder.NextStep("stop the server first (systemctl stop tarn), or restore into another directory with --to-dir"))
}

// missing are the directories that have to be made, the outer ones first. They are to belong to whom the
// snapshot's files belong: nobody else tells who the server is.
func (x *restorer) missing() (dirs []string, err error) {
	for dir, last := filepath.Clean(x.Dir), existingPart(x.Dir); dir != last && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	if x.report.Made = len(dirs) > 0; x.report.Made {
		x.old.uid, x.old.gid, err = vfs.Owner(filepath.Join(x.Source, treeName))
	}
	return dirs, err
}

// readOld looks at what is in the directory. What can not be read is kept all the same.
func (x *restorer) readOld(ctx context.Context) (err error) {
	defer func() { x.report.UID = x.old.uid }()
	names, err := x.FS.List(x.Dir)
	if x.DryRun && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
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
		return x.lookAtRest(ctx, names)
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
		if err := x.lookAtRest(ctx, names); err != nil {
			return err
		}
		return x.sameStore(cmp.Or(x.report.OldStoreID, x.KnownStore))
	}
	defer v.Close()
	if err := x.sameStore(v.ID()); err != nil {
		return err
	}
	x.report.OldStoreID, x.report.OldRevision = v.ID(), v.Revision()
	x.old.term, x.old.authRevision = v.s.term, v.s.auth.head.Revision()
	return nil
}

// sameStore refuses to replace a store by another one; id is "" if it is not known.
func (x *restorer) sameStore(id string) error {
	if id == "" || id == x.source.StoreID || x.OtherStore {
		return nil
	}
	holds := "holds"
	if x.report.OldProblem != "" {
		holds = "can not be read as a whole, but as far as can be told it holds"
	}
	return fmt.Errorf("%w: %s %s store %s, and %s is of store %q; restore into another directory (--to-dir), or say that the other store may be replaced (--other-store)",
		ErrRestoreTarget, x.Dir, holds, id, x.name(), x.source.StoreID)
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
