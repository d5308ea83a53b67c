package store

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tarn-kv/tarn/store/vfs"
)

// AwaitWriter returns once the writer has ended what it was doing. It writes nothing, and
// takes as long as the disk does. ErrStopped is returned for a store that is closed or has failed.
func (s *Store) AwaitWriter() error { return s.barrier() }

// AskDisk returns once the disk of the data directory has answered a sync. It writes
// nothing: the file that is synced, the lock file, has not changed since the store was opened.
//
// It has a descriptor of its own. A sync on the log's would take away the kernel's
// report that a write of the log has failed, which the log must see itself.
func (s *Store) AskDisk() error {
	f, err := s.opts.FS.OpenRead(filepath.Join(s.opts.Dir, vfs.LockName))
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		return fmt.Errorf("ask the disk of the data directory for a sync: %w", err)
	}
	return nil
}
