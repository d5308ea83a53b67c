package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/vfs"
)

// ResumeRestore finishes a restore that was cut off while it exchanged the files of a directory.
//
// ErrInUse is returned while another process has the directory, fs.ErrNotExist when no restore was cut off
// there; an error that matches ErrRestoring leaves it to be finished later.
func ResumeRestore(dir string, files vfs.FS) (r RestoreReport, err error) {
	if files == nil {
		files = vfs.OS
	}
	if _, err := readJournal(dir); err != nil { // before a lock file is made
		return r, err
	}
	lock, err := vfs.Lock(dir)
	if errors.Is(err, vfs.ErrLocked) {
		err = fmt.Errorf("%w: %w", ErrInUse, err)
	}
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	j, err := readJournal(dir)
	if err != nil {
		return r, err
	}
	// What is renamed can have got its name from a process that was killed before a sync.
	if err := files.SyncDir(dir); err != nil {
		return r, errors.Join(restoring(dir), err)
	}
	if err := exchange(files, dir, j); err != nil {
		return r, err
	}
	r.Revision = j.Revision
	if j.Aside != "" {
		r.Aside = filepath.Join(dir, j.Aside)
	}
	return r, nil
}

// exchange puts the staged state in the place of the old one and takes the journal away. It can be done
// any number of times, from wherever it was cut off.
func exchange(files vfs.FS, dir string, j journal) error {
	err := install(files, dir, j)
	if err == nil {
		err = installed(dir, j)
	}
	if err == nil {
		err = files.Remove(filepath.Join(dir, RestoreJournal))
	}
	if err != nil {
		return errors.Join(restoring(dir), err)
	}
	if err := files.SyncDir(dir); err != nil {
		// If the journal comes back with a power cut, ResumeRestore finds nothing left to do.
		return fmt.Errorf("%s is restored, but its last sync failed; check the disk: %w", dir, err)
	}
	_ = removeStaging(files, filepath.Join(dir, stagingName)) // the next restore removes it otherwise
	return nil
}

func install(files vfs.FS, dir string, j journal) error {
	staging, path := filepath.Join(dir, stagingName), filepath.Join(dir, treeName)
	staged, err := files.List(staging)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !slices.Contains(staged, treeName) {
		return nil // it has its place already
	}
	names, err := files.List(dir)
	if err != nil {
		return err
	}
	if j.Aside != "" {
		aside := filepath.Join(dir, j.Aside)
		if err := files.MkdirAll(aside); err != nil {
			return err
		}
		kept, err := files.List(aside)
		if err != nil {
			return err
		}
		for _, name := range oldNames {
			// A file with both names was moved, and a power cut has kept the one name too. Then the
			// one here is replaced below, or is the new one.
			if !slices.Contains(names, name) || name != walName && slices.Contains(kept, name) {
				continue
			}
			if err := files.Rename(filepath.Join(dir, name), filepath.Join(aside, name)); err != nil {
				return err
			}
		}
		if err := files.SyncDir(aside); err != nil {
			return err
		}
	}
	// Before the new tree comes the old log must be gone for good.
	if err := files.SyncDir(dir); err != nil {
		return err
	}
	if err := files.Rename(filepath.Join(staging, treeName), path); err != nil {
		return err
	}
	if err := files.SyncDir(dir); err != nil {
		return err
	}
	return files.SyncDir(staging)
}

// installed makes sure that what is there now is the new state, and not what somebody has put there.
func installed(dir string, j journal) error {
	t, err := tree.Open(tree.Options{Path: filepath.Join(dir, treeName), ReadOnly: true})
	if err != nil {
		return err
	}
	defer t.Close()
	meta, err := t.Meta()
	if err != nil {
		return err
	}
	if max(1, meta.Revision) != j.Revision {
		return fmt.Errorf("%s is at revision %d and not at %d as restored; the restored state is gone: move the files of the directory that keeps the old state back, remove %s, and restore again",
			t.Path(), meta.Revision, j.Revision, filepath.Join(dir, RestoreJournal))
	}
	return nil
}
