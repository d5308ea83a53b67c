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
	if s.lock, err = vfs.Lock(s.opts.Dir); err != nil {
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
	fresh = !slices.Contains(names, treeName)
	if !fresh {
		return false, nil
	}
	if s.opts.ExpectID != "" {
		return false, fmt.Errorf("%w: %s holds no store, but store %s is expected there; is its file system mounted? To begin with an empty store, take the expected store out of the configuration", ErrForeign, dir, s.opts.ExpectID)
	}
	if slices.Contains(names, "member") {
		return false, fmt.Errorf("%w: %s is a data directory of etcd; use an empty directory", ErrForeign, dir)
	}
	if log, err := hasLog(s.opts.FS, dir); err != nil {
		return false, err
	} else if log {
		return false, damage(fmt.Errorf("%s has a log but no %s", dir, treeName))
	}
	return true, nil
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

// openTree also reports whether the file had no store's identity yet and got one: it is
// new, or etcd's.
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
	s.id = meta.StoreID
	if want := s.opts.ExpectID; want != "" && want != hex.EncodeToString(s.id[:]) {
		return meta, false, fmt.Errorf("%w: %s holds store %s, but store %s is expected there; mount the right file system, or correct the configuration", ErrForeign, s.opts.Dir, s.ID(), want)
	}
	if adopted = s.id == [16]byte{}; adopted {
		if log, err := hasLog(s.opts.FS, s.opts.Dir); err != nil {
			return meta, false, err
		} else if log {
			return meta, false, damage(errStrayLog(s.opts.Dir))
		}
		// A new file, or one of etcd's: it becomes this store's.
		rand.Read(s.id[:])
		if err := s.tree.Apply(&tree.Batch{StoreID: &s.id}); err != nil {
			return meta, false, fmt.Errorf("make store: %w", err)
		}
		s.log.Info("store created", "dir", s.opts.Dir, "id", s.ID(), "empty", fresh)
	}
	return meta, adopted, nil
}
