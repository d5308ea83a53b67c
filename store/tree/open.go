package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// newSuffix is the ending of a file's name until it is whole.
const newSuffix = ".new"

// Open opens the tree's file, or creates it if it does not exist. A file is
// created under another name and renamed once it is durable, so that a crash
// leaves a whole file or none.
//
// The error matches ErrDamaged for a file that bbolt can not read, ErrForeign
// for one without etcd's buckets, ErrLocked while another process has it
// open, and fs.ErrNotExist if o.ReadOnly is set and there is no file.
func Open(o Options) (*Tree, error) {
	o = o.withDefaults()
	mode := modeWrite
	if o.ReadOnly {
		mode = modeRead
	}
	h, err := openHandle(o.Path, o, mode)
	if errors.Is(err, fs.ErrNotExist) && !o.ReadOnly {
		if err := create(o); err != nil {
			return nil, err
		}
		o.Logger.Info("created the tree", "path", o.Path)
		h, err = openHandle(o.Path, o, mode)
	}
	if err != nil {
		return nil, err
	}
	if err := validate(h, o.Path); err != nil {
		h.release()
		return nil, err
	}
	if !o.ReadOnly {
		// What a Defragment left that did not end. The lock is ours, so it is nobody's.
		err := removeIfExists(o, o.Path+newSuffix)
		if err == nil {
			err = syncName(o)
		}
		if err != nil {
			h.release()
			return nil, err
		}
	}
	t := &Tree{opts: o, handle: h, giving: defaultGiving}
	t.sizes.Store(new(sizes))
	t.measure(h)
	return t, nil
}

// create makes a file with all buckets in one transaction.
func create(o Options) error {
	name := o.Path + newSuffix
	if err := removeIfExists(o, name); err != nil {
		return err
	}
	err := o.FS.Commit(name, func() error {
		h, err := openHandle(name, o, modeCreate)
		if err != nil {
			return err
		}
		err = h.db.Update(func(tx *bolt.Tx) error {
			if err := createBuckets(tx); err != nil {
				return err
			}
			return writeVersions(tx, new(bool))
		})
		if err == nil {
			err = h.commitAgain()
		}
		h.release()
		return errors.Join(err, h.closeErr)
	})
	if err != nil {
		_ = o.FS.Remove(name) // the next attempt removes it otherwise
		return pathError("create", o.Path, err)
	}
	return install(o, name)
}

// install gives a whole and durable file its final name.
func install(o Options, name string) error {
	if err := o.FS.Rename(name, o.Path); err != nil {
		return pathError("rename to", o.Path, err)
	}
	if err := o.FS.SyncDir(filepath.Dir(o.Path)); err != nil {
		return pathError("sync the directory of", o.Path, fmt.Errorf("%w: %w", ErrFailed, err))
	}
	return nil
}

// syncName makes the name of an open file durable. A process that ended between the rename
// and the sync has left a name that a power cut takes back, to a file from which
// the log has gone on since.
func syncName(o Options) error {
	if err := o.FS.SyncDir(filepath.Dir(o.Path)); err != nil {
		return pathError("sync the directory of", o.Path, err)
	}
	return nil
}

func removeIfExists(o Options, name string) error {
	if err := o.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pathError("remove the leftover", name, err)
	}
	return nil
}

func createBuckets(tx *bolt.Tx) error {
	for _, name := range allBuckets {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return fmt.Errorf("bucket %s: %w", name, err)
		}
	}
	return nil
}

// validate looks for what makes a file unusable as a whole. Its records are
// looked at when they are read, and all of them by Check.
func validate(h *handle, path string) error {
	return guard("open", path, func() error {
		tx, err := h.db.Begin(false)
		if err != nil {
			return pathError("open", path, err)
		}
		defer tx.Rollback()
		if tx.Bucket(bucketKey) == nil || tx.Bucket(bucketMeta) == nil {
			if _, bad, err := h.damagedMeta(); err != nil {
				return err
			} else if bad {
				return damaged("open", path, "one of its two meta pages is, and the other one is from before anything was written")
			}
			return pathError("open", path, fmt.Errorf("%w: it has no bucket key or no bucket meta; is it another program's file?", ErrForeign))
		}
		if _, err := readMeta(tx); err != nil {
			return damaged("open", path, err)
		}
		return nil
	})
}
