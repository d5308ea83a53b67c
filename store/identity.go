package store

import (
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/vfs"
)

// Files are the names of what makes up a store in its data directory: a copy of these is the store.
func Files() []string { return []string{treeName, walName} }

// ReadID reads the identity of the store in a directory that nobody writes to, such as a snapshot, and
// nothing else: 32 hex digits, or "" if the store has none yet. ErrInUse is returned while a server has
// the directory, fs.ErrNotExist when there is no store.
func ReadID(dir string) (string, error) {
	id, err := tree.ReadStoreID(filepath.Join(dir, treeName))
	switch {
	case errors.Is(err, tree.ErrLocked):
		return "", fmt.Errorf("%w: %w", ErrInUse, err)
	case err != nil || id == (tree.StoreID{}):
		return "", err
	}
	return hex.EncodeToString(id[:]), nil
}

// ForgetLog records in the tree of a directory that it is whole without a log, as the tree of a snapshot
// that a server sent is: whoever opens it does not look for the log then. It is an error if the directory
// has a log.
func ForgetLog(dir string) (err error) {
	log, err := hasLog(vfs.OS, dir)
	if err != nil {
		return err
	}
	if log {
		return fmt.Errorf("%s has a log: the tree alone lacks what is in it", dir)
	}
	t, err := tree.Open(tree.Options{Path: filepath.Join(dir, treeName)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	return t.Apply(&tree.Batch{Seq: new(uint64)})
}
