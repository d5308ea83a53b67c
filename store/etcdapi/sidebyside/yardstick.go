package main

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	spinSteps = 20_000_000
	syncTimes = 21
	syncBytes = 1024
)

// yardstick is how fast the machine was just before a turn: it tells how much of a
// difference may be the machine's.
type yardstick struct {
	Spin float64 `json:"spin_ms"`      // a fixed piece of work for one processor
	Sync float64 `json:"fdatasync_ms"` // appending 1 KiB and syncing it, the median
}

func takeYardstick(dir string) (y yardstick, err error) {
	y.Spin = millis(spin())
	y.Sync, err = timeSyncs(dir)
	return y, err
}

func spin() time.Duration {
	begun := time.Now()
	x := uint32(1)
	for range spinSteps {
		x = x*1664525 + 1013904223
	}
	took := time.Since(begun)
	runtime.KeepAlive(x) // the work is not optimized away
	return took
}

func timeSyncs(dir string) (float64, error) {
	f, err := os.CreateTemp(dir, "yardstick")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	took := make([]float64, syncTimes)
	block := make([]byte, syncBytes)
	for i := range took {
		begun := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return 0, err
		}
		took[i] = millis(time.Since(begun))
	}
	return median(took), nil
}

// settle writes out what is still in the page cache, so that it is not written
// during the next server's turn.
func settle(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// syncsNothing tells whether dir is on a file system in memory, where a
// sync costs nothing.
func syncsNothing(dir string) (bool, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return false, fmt.Errorf("look at the file system of %s: %w", dir, err)
	}
	return s.Type == unix.TMPFS_MAGIC || s.Type == unix.RAMFS_MAGIC, nil
}

// allocated returns the bytes that a file takes on disk; 0 if it is gone.
func allocated(name string) (int64, error) {
	var s unix.Stat_t
	err := unix.Lstat(name, &s)
	if err == unix.ENOENT {
		return 0, nil
	}
	return s.Blocks * 512, err
}
