package store

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tarn-kv/tarn/store/vfs"
)

// nearlyFull opens a store on a file system with that much room.
func nearlyFull(t *testing.T, total, free uint64) *Store {
	fs := newFaultFS()
	fs.set(func(f *faultFS) {
		f.usage = func() vfs.Usage { return vfs.Usage{Total: total, Free: free} }
	})
	return openStore(t, Options{Dir: t.TempDir(), FS: fs})
}

// A checkpoint that there is no room for is not begun: what it wrote before it failed
// would be missing for the log. Deleting and compacting is the way out, and closing is no failure.
func TestCheckpointNeedsRoom(t *testing.T) {
	s := nearlyFull(t, 1<<40, 20<<30)
	for range 8 {
		put(t, s, "a", string(make([]byte, 1<<20)))
	}
	must(t, s.Checkpoint(bg))
	tail := func() int64 { return s.Status().TailBytes }
	for range 8 {
		put(t, s, "b", string(make([]byte, 1<<20)))
	}
	s.opts.FS.(*faultFS).set(func(f *faultFS) {
		f.usage = func() vfs.Usage { return vfs.Usage{Total: 40 << 20, Free: 1 << 20} }
	})
	before, size := tail(), s.Status().Size
	wantErr(t, s.Checkpoint(bg), ErrNoSpace)
	if tail() != before || s.Status().Size != size || s.Err() != nil {
		t.Errorf("tail %d, was %d; tree %d, was %d; %v", tail(), before, s.Status().Size, size, s.Err())
	}
	compactTo(t, s, del(t, s, everything))
	if tail() != 0 {
		t.Errorf("%d bytes are left in the tail", tail())
	}
	must(t, s.Close())
}

// ZFS has the room of the reserve only some time after it was given up. A delete waits for it.
func TestReserveIsFreedLater(t *testing.T) {
	fs := newFaultFS()
	dir := t.TempDir()
	s := openStore(t, Options{Dir: dir, FS: fs, freedWithin: time.Hour})
	put(t, s, "a", "1")
	refusals := 3
	fs.set(func(f *faultFS) {
		f.write = func() error {
			if _, err := os.Stat(filepath.Join(dir, "wal", "reserve")); err == nil {
				return unix.ENOSPC
			}
			if refusals--; refusals >= 0 {
				return unix.ENOSPC
			}
			return nil
		}
	})
	if _, err := do(s, deleteOp(single("a"))); err != nil || refusals >= 0 {
		t.Errorf("the delete ends with %v, with %d refusals to come", err, refusals)
	}
}

func TestCloseWithoutRoom(t *testing.T) {
	s := nearlyFull(t, 1<<40, 20<<30)
	for range 8 {
		put(t, s, "a", string(make([]byte, 1<<20)))
	}
	s.opts.FS.(*faultFS).set(func(f *faultFS) { f.usage = func() vfs.Usage { return vfs.Usage{Total: 40 << 20} } })
	must(t, s.Close())
	s, err := Open(Options{Dir: s.opts.Dir})
	must(t, err)
	defer s.Close()
	if s.Revision() != 9 {
		t.Errorf("revision %d", s.Revision())
	}
}

// The margin grows with the tail, which the tree has to take in some time, and a burst of large puts does
// not outrun the look at the file system.
func TestMarginGrowsWithTail(t *testing.T) {
	free := int64(100 << 20)
	s := nearlyFull(t, 400<<20, uint64(free))
	s.opts.CheckpointBytes = 1 << 40
	value := string(make([]byte, 1<<20))
	s.space.mu.Lock()
	s.space.checked = time.Now().Add(time.Hour) // only bytes cause a look
	s.space.mu.Unlock()
	n := 0
	for ; n < 100; n++ {
		if _, err := do(s, putOp("a", value)); err != nil {
			wantErr(t, err, ErrNoSpace)
			break
		}
	}
	// 32 MiB are kept free in any case; the rest is for half as much again as the tail.
	if most := 47; n == 0 || n > most {
		t.Errorf("%d MiB were taken, with 100 free; want at most %d", n, most)
	}
}
