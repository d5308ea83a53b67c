package tree

import (
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"github.com/tarn-kv/tarn/store/vfs"
)

const (
	// lockTimeout is how long Open waits for another process to let go of the
	// file: longer than a process needs to exit, shorter than a person waits.
	lockTimeout = time.Second
	lockPause   = 50 * time.Millisecond

	// growStep is what a file grows by: enough that most commits do not grow
	// it, little enough that a small store has a small file.
	growStep = 4 << 20
)

// handle is one open bbolt file with the number of its users. Defragment
// replaces the tree's handle; readers of the old one finish on it.
type handle struct {
	db   *bolt.DB
	file *os.File // db's own descriptor

	refs     atomic.Int64 // the tree's own reference counts too
	reads    openReads
	gave     bitmap // blocks (of holeBlock bytes) that were given back since it was opened; guarded by Tree.write
	stuck    bool   // a write transaction can not be ended; set under Tree.write
	closed   chan struct{}
	closeErr error // valid once closed is closed
}

type openMode int

const (
	modeWrite openMode = iota
	modeRead
	modeBrief // modeRead, for the file's own data alone
	modeCreate
)

// openHandle opens a bbolt file without writing to it, except with modeCreate,
// which makes a new one and fails if the name is taken.
func openHandle(path string, o Options, mode openMode) (h *handle, err error) {
	var file *os.File
	open := func(name string, _ int, perm os.FileMode) (f *os.File, err error) {
		flag := map[openMode]int{modeWrite: os.O_RDWR, modeRead: os.O_RDONLY, modeBrief: os.O_RDONLY, modeCreate: os.O_RDWR | os.O_CREATE | os.O_EXCL}[mode]
		if f, err = vfs.OpenRegular(name, flag, perm); err != nil {
			return nil, err
		}
		if err := prepare(f, mode); err != nil {
			closeLocked(f)
			return nil, err
		}
		file = f
		return f, nil
	}
	options := &bolt.Options{
		Timeout:         lockTimeout,
		FreelistType:    bolt.FreelistMapType,
		PreLoadFreelist: mode != modeBrief,
		InitialMmapSize: o.MapSize,
		PageSize:        o.PageSize,
		ReadOnly:        mode == modeRead || mode == modeBrief,
		OpenFile:        open,
		NoFreelistSync:  true,
	}
	var db *bolt.DB
	// Reading the list of free pages of a damaged file can panic inside
	// bbolt, which then leaves the descriptor, and with it the lock, behind.
	err = guard("open", path, func() (err error) {
		db, err = bolt.Open(path, 0o600, options)
		return err
	})
	if err != nil {
		if file != nil {
			closeLocked(file)
		}
		return nil, openError(path, err)
	}
	db.AllocSize = growStep
	// Only now: bbolt would add its list of free pages to a file without one, as etcd
	// leaves it, before we know whether to write to it at all.
	db.NoFreelistSync = false
	h = &handle{db: db, file: file, closed: make(chan struct{})}
	h.refs.Store(1)
	return h, nil
}

// closeLocked closes a file that bbolt may have left locked and mapped: a lock lives
// as long as a mapping does. A second close is harmless.
func closeLocked(f *os.File) error {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = syscall.Flock(int(fd), syscall.LOCK_UN) })
	}
	return f.Close()
}

// prepare locks a file that exists and looks at all its pages, before bbolt
// maps it and believes them. bbolt then finds it locked by its own descriptor.
func prepare(f *os.File, mode openMode) error {
	if mode == modeCreate {
		return nil
	}
	if err := lock(f, mode); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return errEmptyFile
	}
	damage, err := firstDamage(f, mode == modeBrief)
	if damage != "" {
		return damaged("open", f.Name(), damage)
	}
	return err
}

// lock takes the lock that bbolt takes, waiting as long for it.
func lock(f *os.File, mode openMode) error {
	how := unix.LOCK_EX
	if mode == modeRead || mode == modeBrief {
		how = unix.LOCK_SH
	}
	for start := time.Now(); ; time.Sleep(lockPause) {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case err == unix.EINTR:
		case err != unix.EWOULDBLOCK:
			return os.NewSyscallError("flock", err)
		case time.Since(start) > lockTimeout:
			return berrors.ErrTimeout
		}
	}
}

var errEmptyFile = errors.New("the file is empty")

func openError(path string, err error) error {
	switch {
	case errors.Is(err, ErrDamaged):
		return err
	case errors.Is(err, berrors.ErrTimeout):
		return pathError("open", path, ErrLocked)
	case errors.Is(err, errEmptyFile), errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum),
		errors.Is(err, berrors.ErrVersionMismatch), strings.HasPrefix(err.Error(), "file size too small"):
		return damaged("open", path, err)
	}
	return pathError("open", path, err)
}

// sizes are what a file takes, in bytes.
type sizes struct {
	file, inUse int64
	blocks      int64 // that the file system has given it
	pages       int64 // up to the last one that was ever used
}

// measure is called after each commit.
func (h *handle) measure() (z sizes, err error) {
	if z.file, z.blocks, err = h.stat(); err != nil {
		return z, err
	}
	tx, err := h.db.Begin(false)
	if err != nil {
		return z, err
	}
	// The page past the high-water mark belongs to no transaction; pages freed by
	// the last one are free for the next.
	z.pages = tx.Size()
	h.reads.committed(uint64(tx.ID()))
	if err := tx.Rollback(); err != nil {
		return z, err
	}
	stats := h.db.Stats()
	z.inUse = z.pages - int64(stats.FreePageN+stats.PendingPageN)*int64(h.db.Info().PageSize)
	return z, nil
}

// stat returns the length of the file, and the bytes of the blocks it has.
func (h *handle) stat() (size, blocks int64, err error) {
	const blockSize = 512 // whatever the file system's is
	info, err := h.file.Stat()
	if err != nil {
		return 0, 0, err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return info.Size(), st.Blocks * blockSize, nil
	}
	return info.Size(), info.Size(), nil
}

// version returns the id of the newest transaction that readers see.
func (h *handle) version() (int, error) {
	tx, err := h.db.Begin(false)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	return tx.ID(), nil
}

// abandon ends a write transaction that a panic may have left open.
func (h *handle) abandon(tx *bolt.Tx) {
	if tx == nil {
		return
	}
	err := guard("roll back", h.file.Name(), func() error {
		_ = tx.Rollback() // fails only if the transaction has ended
		return nil
	})
	h.stuck = h.stuck || err != nil
}

// release gives up one reference; the last one closes the file.
func (h *handle) release() {
	if h.refs.Add(-1) > 0 {
		return
	}
	if h.stuck {
		// db.Close would wait for the transaction for ever.
		h.closeErr = closeLocked(h.file)
	} else {
		h.closeErr = h.db.Close()
	}
	close(h.closed)
}

// guard runs fn, which calls nothing but bbolt and this package, and returns its
// panics as ErrDamaged: bbolt asserts what it reads, and a mapped page that
// can not be read is a fault.
func guard(op, path string, fn func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if r := recover(); r != nil {
			err = damaged(op, path, r)
		}
	}()
	return fn()
}

// isFault tells a fault of the mapping from other panics.
func isFault(r any) bool {
	_, ok := r.(interface {
		runtime.Error
		Addr() uintptr
	})
	return ok
}
