package store

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/vfs"
)

// Names in a data directory.
const (
	treeName = "tree.db"
	walName  = "wal"
)

// defaultReserve is the size of the log's reserve: enough for the frames of many deletes.
const defaultReserve = 4 << 20

// Open opens the store in a directory, or makes a new one in an empty one, and recovers
// what was durable.
//
// ErrInUse, ErrForeign and ErrDamaged are returned as their texts say; then nothing
// was changed.
func Open(opts Options) (*Store, error) {
	opts = opts.withDefaults()
	s := &Store{opts: opts, log: opts.Logger}
	s.failure.ch = make(chan struct{})
	s.hub.init(s)
	s.pins.freed = s.unpinned
	s.leases.init()
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.closeFiles())
	}
	s.leases.start(s.expire)
	return s, nil
}

func (s *Store) open() error {
	start := time.Now()
	fresh, err := s.inspect()
	if err != nil {
		return err
	}
	if err := s.opts.FS.MkdirAll(s.opts.Dir); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	if s.lock, s.instance, err = vfs.LockForServer(s.opts.Dir); err != nil {
		if errors.Is(err, vfs.ErrLocked) {
			return fmt.Errorf("%w: %w", ErrInUse, err)
		}
		return fmt.Errorf("lock data directory: %w", err)
	}
	meta, adopted, err := s.openTree(fresh)
	if err != nil {
		return err
	}
	r := &recovery{s: s, meta: meta, adopted: adopted, leases: make(map[int64]*lease)}
	if err := r.run(); err != nil {
		return err
	}
	s.log.Info("store opened", "dir", s.opts.Dir, "id", s.ID(), "revision", s.head.revision, "compacted", s.head.compacted,
		"keys", s.keys(), "leases", s.leases.count(), "replayed_frames", r.frames, "took", time.Since(start))
	return nil
}

// inspect looks at the directory before anything is made in it, and reports whether
// it holds no store yet.
func (s *Store) inspect() (fresh bool, err error) {
	dir := s.opts.Dir
	names, err := s.opts.FS.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read data directory: %w", err)
	}
	if slices.Contains(names, RestoreJournal) {
		return false, restoring(dir)
	}
	fresh = !slices.Contains(names, treeName)
	if !fresh {
		return false, nil
	}
	if h, locked := vfs.HolderOf(dir); locked {
		return false, fmt.Errorf("%w: %w", ErrInUse, &vfs.LockedError{Dir: dir, Holder: h})
	}
	if err := notOurs(dir, names); err != nil {
		return false, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if s.opts.ExpectID != "" {
		return false, fmt.Errorf("%w: %s holds no store, but store %s is expected there; is its file system mounted? To begin with an empty store, take the expected store out of the configuration", ErrForeign, dir, s.opts.ExpectID)
	}
	if log, err := hasLog(s.opts.FS, dir); err != nil {
		return false, err
	} else if log {
		return false, damage(fmt.Errorf("%s has a log but no %s", dir, treeName))
	}
	return true, nil
}

// notOurs tells why a directory without a tree, in which these names are, is not one to begin a store in.
func notOurs(dir string, names []string) error {
	switch {
	case slices.Contains(names, treeName+tree.BuildSuffix):
		return fmt.Errorf("%s holds an import that was not finished: run `tarn import etcd` again, or remove %s to begin with an empty store",
			dir, filepath.Join(dir, treeName+tree.BuildSuffix))
	case slices.Contains(names, stagingName):
		return fmt.Errorf("%s holds a restore that was not finished: run `tarn restore` again, or remove %s to begin with an empty store",
			dir, filepath.Join(dir, stagingName))
	case slices.Contains(names, "member"):
		return fmt.Errorf("%s is a data directory of etcd; to bring its data here, stop etcd and run `tarn import etcd %s --skip-hash-check --data-dir DIR` with another, empty directory",
			dir, filepath.Join(dir, "member", "snap", "db"))
	}
	return nil
}

// hasLog tells whether there is a log in a data directory.
func hasLog(files vfs.FS, dir string) (bool, error) {
	segments, err := files.List(filepath.Join(dir, walName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read data directory: %w", err)
	}
	return slices.ContainsFunc(segments, func(n string) bool { return filepath.Ext(n) == ".wal" }), nil
}

// errStrayLog: the tree gets its identity before the log is made.
func errStrayLog(dir string) error {
	return fmt.Errorf("%s has a log, but its %s belongs to no store", dir, treeName)
}

// openTree also reports whether the file is new to the store, and so has no log: it was just made or
// imported, or it is etcd's.
func (s *Store) openTree(fresh bool) (meta tree.Meta, adopted bool, err error) {
	s.tree, err = tree.Open(tree.Options{FS: s.opts.FS, Path: filepath.Join(s.opts.Dir, treeName), Logger: s.log, ObserveCommit: s.opts.ObserveCheckpoint})
	if err != nil {
		switch {
		case errors.Is(err, tree.ErrDamaged):
			err = damage(err)
		case errors.Is(err, tree.ErrForeign):
			err = fmt.Errorf("%w: %w; use another directory", ErrForeign, err)
		}
		return meta, false, err
	}
	if meta, err = s.tree.Meta(); err != nil {
		return meta, false, damage(err)
	}
	if page, bad, err := s.tree.DamagedMeta(); err != nil {
		return meta, false, err
	} else if bad {
		s.log.Warn("a meta page of the tree was damaged: the other one is used, which may be that of the commit before, and the log must have what came then. A power cut can leave that; without one, look at the disk",
			"path", s.tree.Path(), "page", page)
	}
	s.id = meta.StoreID
	none := s.id == tree.StoreID{}
	if none && s.opts.ExpectID != "" {
		return meta, false, fmt.Errorf("%w: the tree in %s belongs to no store yet, but store %s is expected there; it gets its ID at the first start, for which the expected store must be taken out of the configuration", ErrForeign, s.opts.Dir, s.opts.ExpectID)
	}
	if want := s.opts.ExpectID; want != "" && want != hex.EncodeToString(s.id[:]) {
		return meta, false, fmt.Errorf("%w: %s holds store %s, but store %s is expected there; mount the right file system, or correct the configuration", ErrForeign, s.opts.Dir, s.ID(), want)
	}
	if none || meta.Seq == 0 {
		log, err := hasLog(s.opts.FS, s.opts.Dir)
		if err != nil {
			return meta, false, err
		}
		if none && log {
			return meta, false, damage(errStrayLog(s.opts.Dir))
		}
		adopted = !log
	}
	if none {
		// A new file, or one of etcd's: it becomes this store's.
		s.id = NewID()
		if err := s.tree.Apply(&tree.Batch{StoreID: &s.id}); err != nil {
			return meta, false, fmt.Errorf("make store: %w", err)
		}
		s.log.Info("store created", "dir", s.opts.Dir, "id", s.ID(), "empty", fresh)
	}
	return meta, adopted, nil
}

// NewID returns the ID of a new store.
func NewID() (id tree.StoreID) {
	rand.Read(id[:])
	return id
}
