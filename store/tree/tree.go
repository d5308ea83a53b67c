// Package tree keeps the checkpointed part of a store in one bbolt file that
// has etcd's own schema, so that the file is also its own way out: etcd's
// tools read it as it is.
//
// One goroutine at a time writes (Apply, Defragment, GiveBack); any goroutine reads.
// Reads never wait for a write. See DESIGN.md.
package tree

import (
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarn-kv/tarn/store/vfs"
)

// Options configure Open. Path is needed, all else has a default.
type Options struct {
	// FS is the seam for renames, directory syncs and commits (default vfs.OS).
	FS vfs.FS
	// Path names the file.
	Path string
	// Logger gets what a person should know (default: discards).
	Logger *slog.Logger
	// PageSize in bytes of a file that is created: a power of two from 1024 to
	// 65536, or 0 for the page size of the machine. A file that exists keeps its own.
	PageSize int
	// MapSize is the size in bytes of the first mapping of the file. While the
	// file is smaller, its growth never waits for readers. It is address space,
	// not memory. Default 10 GiB, or 256 MiB on a 32-bit machine.
	MapSize int
	// ReadOnly opens the file for reading only, shared with other readers. The
	// file must exist.
	ReadOnly bool
	// ObserveCommit, if set, gets the duration of each commit of Apply and GiveBack.
	ObserveCommit func(time.Duration)
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MapSize <= 0 {
		size := int64(10 << 30)
		if math.MaxInt == math.MaxInt32 {
			size = 256 << 20
		}
		o.MapSize = int(size)
	}
	return o
}

// Tree is an open file. All methods are safe for concurrent use; Apply,
// Defragment and Check exclude each other.
type Tree struct {
	opts Options

	// write is held by whoever may change the file or needs it not to change.
	write  sync.Mutex
	failed atomic.Pointer[error] // set once, under write

	// current guards the choice of the handle, not its use: a reader takes a
	// reference under it and works without it.
	current sync.RWMutex
	handle  *handle // nil when closed

	reads   atomic.Int64
	sizes   atomic.Pointer[sizes]
	noHoles bool // the file system can not make them; guarded by write
	giving  giveRule
}

// Path returns the file's name.
func (t *Tree) Path() string { return t.opts.Path }

// Size returns the length of the file in bytes, free pages included.
func (t *Tree) Size() int64 { return t.sizes.Load().file }

// InUse returns the bytes of the pages that hold data: free pages, and the room
// that the file was grown by in advance, are not counted. It lags behind a
// running Apply.
func (t *Tree) InUse() int64 { return t.sizes.Load().inUse }

// Allocated returns the bytes of disk space that the file takes, as the file system tells: less than
// Size where free pages were given back, or where the file system compresses. It lags as InUse does.
func (t *Tree) Allocated() int64 { return t.sizes.Load().blocks }

// Holes returns about how many bytes of the file's pages have no disk space, so that writing
// them takes some. It is too much, never too little, where the file system compresses.
func (t *Tree) Holes() int64 {
	z := t.sizes.Load()
	return max(0, z.pages-z.blocks)
}

// OpenReads returns the number of open read transactions: views, snapshots, and scans
// of the tree's own.
func (t *Tree) OpenReads() int { return int(t.reads.Load()) }

// Close closes the file after the reads under way have ended. Reads and writes
// after it fail with ErrClosed. A second Close does nothing.
func (t *Tree) Close() error {
	t.write.Lock()
	defer t.write.Unlock()
	t.current.Lock()
	h := t.handle
	t.handle = nil
	t.current.Unlock()
	if h == nil {
		return nil
	}
	h.release()
	<-h.closed
	if h.closeErr != nil {
		return pathError("close", t.opts.Path, h.closeErr)
	}
	return nil
}

// writable tells why nothing can be written, or nil. t.write must be held.
func (t *Tree) writable() error {
	if err := t.failed.Load(); err != nil {
		return *err
	}
	if t.opts.ReadOnly {
		return pathError("write", t.opts.Path, ErrReadOnly)
	}
	return nil
}

// fail makes err final: no write is tried after it.
func (t *Tree) fail(err error) error {
	t.failed.CompareAndSwap(nil, &err)
	return err
}

// measure notes the sizes after a change of the file.
func (t *Tree) measure(h *handle) {
	z, err := h.measure()
	if err != nil {
		t.opts.Logger.Warn("the size of the tree is not known", "path", t.opts.Path, "error", err)
		return
	}
	t.sizes.Store(&z)
}
