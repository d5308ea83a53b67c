package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tarn-kv/tarn/store/vfs"
)

// unlimited is a room that no test can use up.
const unlimited = 1 << 60

// faults are what is wrong with a disk.
type faults struct {
	slowMin, slowMax time.Duration // added to each sync
	room             int64         // bytes that can still be written
}

func parseFaults(line string) (faults, error) {
	f := faults{room: unlimited}
	words := strings.Fields(line)
	var err error
	switch {
	case line == "good":
	case line == "full":
		f.room = 0
	case len(words) == 2 && words[0] == "room":
		f.room, err = strconv.ParseInt(words[1], 10, 64)
	case len(words) == 3 && words[0] == "slow":
		var minErr, maxErr error
		f.slowMin, minErr = time.ParseDuration(words[1])
		f.slowMax, maxErr = time.ParseDuration(words[2])
		err = errors.Join(minErr, maxErr)
		if err == nil && f.slowMin > f.slowMax {
			err = errors.New("the least is more than the most")
		}
	default:
		err = errors.New("unknown command")
	}
	if err != nil {
		return f, fmt.Errorf("%q: %w", line, err)
	}
	return f, nil
}

// disk is a file system with faults. It behaves like one that copies on write:
// space is not taken ahead, and each write needs room, also over old data.
type disk struct {
	vfs.FS

	mu     sync.Mutex
	faults faults
}

func newDisk(below vfs.FS) *disk { return &disk{FS: below, faults: faults{room: unlimited}} }

func (d *disk) set(f faults) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = f
}

// delay makes a sync as slow as the disk is now.
func (d *disk) delay() {
	d.mu.Lock()
	f := d.faults
	d.mu.Unlock()
	if f.slowMax > 0 {
		time.Sleep(f.slowMin + rand.N(f.slowMax-f.slowMin+1))
	}
}

// take takes up to n bytes of the room and returns how many it got.
func (d *disk) take(n int64) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	n = min(n, d.faults.room)
	d.faults.room -= n
	return n
}

// commitRoom is about what a commit of the tree writes.
const commitRoom = 64 << 10

func noSpace(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: unix.ENOSPC} }

func (d *disk) file(f vfs.File, name string, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &diskFile{File: f, disk: d, name: name}, nil
}

func (d *disk) Create(name string) (vfs.File, error) {
	if d.take(1) == 0 {
		return nil, noSpace("create", name)
	}
	f, err := d.FS.Create(name)
	return d.file(f, name, err)
}

func (d *disk) Open(name string) (vfs.File, error) {
	f, err := d.FS.Open(name)
	return d.file(f, name, err)
}

// Remove gives back the room that the file took.
func (d *disk) Remove(name string) error {
	var size int64
	if f, err := d.FS.OpenRead(name); err == nil {
		size, _ = f.Size()
		f.Close()
	}
	err := d.FS.Remove(name)
	if err == nil {
		d.take(-size)
	}
	return err
}

func (d *disk) SyncDir(dir string) error {
	d.delay()
	return d.FS.SyncDir(dir)
}

func (d *disk) Usage(dir string) (vfs.Usage, error) {
	u, err := d.FS.Usage(dir)
	d.mu.Lock()
	defer d.mu.Unlock()
	u.Free, u.Type = min(u.Free, uint64(max(0, d.faults.room))), "zfs"
	return u, err
}

func (d *disk) Commit(name string, commit func() error) error {
	d.delay()
	if got := d.take(commitRoom); got < commitRoom {
		d.take(-got)
		return noSpace("write", name)
	}
	return d.FS.Commit(name, commit)
}

// diskFile is an open file of a disk.
type diskFile struct {
	vfs.File
	disk *disk
	name string
}

// WriteAt writes as much as there is room for.
func (f *diskFile) WriteAt(b []byte, off int64) (int, error) {
	got := f.disk.take(int64(len(b)))
	n, err := f.File.WriteAt(b[:got], off)
	if err == nil && int(got) < len(b) {
		err = noSpace("write", f.name)
	}
	return n, err
}

func (*diskFile) Preallocate(int64) error { return nil }

func (f *diskFile) Sync() error {
	f.disk.delay()
	return f.File.Sync()
}
