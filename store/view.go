package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/vfs"
)

// View is what a server would find in a data directory if it started now, as after a crash: the tree,
// and the log replayed over it in memory. Nothing is written, so the directory may be a snapshot.
// The methods are safe for concurrent use, but for Close.
type View struct {
	s    *Store
	meta tree.Meta
}

// OpenView opens a data directory for reading. It must be closed.
//
// ErrInUse is returned while a server has the directory, ErrDamaged and ErrForeign as their texts
// say, ErrRestoring when a restore in it was not finished, fs.ErrNotExist when there is no store.
func OpenView(ctx context.Context, dir string) (*View, error) {
	if err := noRestoreIn(vfs.OS, dir); err != nil {
		return nil, err
	}
	if h, locked := vfs.HolderOf(dir); locked {
		return nil, fmt.Errorf("%w: %s (%s); %s", ErrInUse, dir, h.Who, h.NextStep("stop the server, or use a snapshot"))
	}
	return openView(ctx, dir)
}

// openView is OpenView for whoever has the directory.
func openView(ctx context.Context, dir string) (*View, error) {
	path := filepath.Join(dir, treeName)
	var r CheckReport
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := r.noTree(dir, err); err != nil {
			return nil, err
		}
		return nil, damage(errors.New(r.Findings[0]))
	}
	t, err := tree.Open(tree.Options{Path: path, ReadOnly: true})
	switch {
	case errors.Is(err, tree.ErrDamaged):
		return nil, damage(err)
	case errors.Is(err, tree.ErrForeign):
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	case errors.Is(err, tree.ErrLocked):
		return nil, fmt.Errorf("%w: %w", ErrInUse, err)
	case err != nil:
		return nil, err
	}
	v, err := viewOf(ctx, dir, t)
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return v, nil
}

// viewOf recovers a view from an open tree and the log in a directory; without a directory from the
// tree alone.
func viewOf(ctx context.Context, dir string, t *tree.Tree) (*View, error) {
	meta, err := t.Meta()
	if err != nil {
		return nil, damage(err)
	}
	var r CheckReport
	if dir != "" {
		if log, err := hasLog(vfs.OS, dir); err != nil {
			return nil, err
		} else if log && meta.StoreID == (tree.StoreID{}) {
			return nil, damage(errStrayLog(dir))
		}
	}
	s, err := r.load(ctx, dir, t, meta)
	if err != nil {
		return nil, err
	}
	if meta.StoreID != (tree.StoreID{}) {
		r.StoreID = fmt.Sprintf("%x", meta.StoreID[:])
	}
	if err := r.metaPages(t, meta); err != nil {
		return nil, err
	}
	if len(r.Findings) > 0 {
		return nil, damage(errors.New(strings.Join(r.Findings, "; ")))
	}
	s.id = meta.StoreID
	s.compacted.Store(s.head.compacted)
	return &View{s: s, meta: meta}, nil
}

// offline makes a store without a log, for reading a tree. Nothing runs in it.
func offline(dir string, t *tree.Tree) *Store {
	s := &Store{opts: Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)}.withDefaults(), tree: t}
	s.log = s.opts.Logger
	s.failure.ch = make(chan struct{})
	s.hub.init(s)
	s.leases.init()
	return s
}

// ID returns the store's identity, 32 hex digits, or "" if the store has none yet.
func (v *View) ID() string {
	if v.s.id == (tree.StoreID{}) {
		return ""
	}
	return v.s.ID()
}

// Revision returns the newest durable revision.
func (v *View) Revision() int64 { return v.s.head.revision }

// CompactRevision returns the oldest readable revision, -1 if never compacted.
func (v *View) CompactRevision() int64 { return v.s.head.compacted }

// Keys returns the number of live keys.
func (v *View) Keys() int64 { return v.s.keys() }

// Leases returns the number of leases.
func (v *View) Leases() int { return v.s.leases.count() }

// LeaseTTL returns the TTL that a lease was granted, in seconds; ok is false if there is no such lease.
func (v *View) LeaseTTL(id int64) (ttl int64, ok bool) {
	v.s.leases.mu.Lock()
	defer v.s.leases.mu.Unlock()
	l := v.s.leases.byID[id]
	if l == nil {
		return 0, false
	}
	return l.ttl, true
}

// Close closes the files. Nothing may be read after it.
func (v *View) Close() error { return v.s.tree.Close() }
