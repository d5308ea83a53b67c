package vfs

import (
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// OpCommit is the Op of a Waiting for FS.Commit, which is many writes and syncs in one.
const OpCommit = "commit"

// Waiting is an operation that has begun and has not returned.
type Waiting struct {
	Op   string // as errors name it: "fdatasync", "write"
	Name string // path of the file or the directory
	For  time.Duration
}

// Tracked is an FS that knows which of its operations are under way, so that somebody can
// tell what the process waits for when a disk does not answer. All methods are safe for
// concurrent use, and those that Tracked adds never wait for the file system.
type Tracked struct {
	fs    FS
	ended atomic.Uint64

	mu   sync.Mutex
	ops  []underWay
	free []int // places in ops
}

// underWay is an operation; a place that is free has no op.
type underWay struct {
	op, name string
	since    time.Time
}

// Track returns files with an account of what is under way.
func Track(files FS) *Tracked { return &Tracked{fs: files} }

// Waits returns the operations under way, in no order.
func (t *Tracked) Waits() []Waiting {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []Waiting
	for _, o := range t.ops {
		if o.op != "" {
			list = append(list, Waiting{Op: o.op, Name: o.name, For: time.Since(o.since)})
		}
	}
	return list
}

// Synced counts the syncs of files and directories, and the commits, that have returned: it
// grows as long as the disk answers and somebody writes.
func (t *Tracked) Synced() uint64 { return t.ended.Load() }

func (t *Tracked) begin(op, name string) (place int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 {
		place = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		place = len(t.ops)
		t.ops = append(t.ops, underWay{})
	}
	t.ops[place] = underWay{op, name, time.Now()}
	return place
}

func (t *Tracked) end(place int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ops[place] = underWay{}
	t.free = append(t.free, place)
}

func (t *Tracked) endSync(place int) {
	t.ended.Add(1)
	t.end(place)
}

// Create implements FS.
func (t *Tracked) Create(name string) (File, error) {
	defer t.end(t.begin("create", name))
	return t.file(name)(t.fs.Create(name))
}

// Open implements FS.
func (t *Tracked) Open(name string) (File, error) {
	defer t.end(t.begin("open", name))
	return t.file(name)(t.fs.Open(name))
}

// OpenRead implements FS.
func (t *Tracked) OpenRead(name string) (File, error) {
	defer t.end(t.begin("open", name))
	return t.file(name)(t.fs.OpenRead(name))
}

// Rename implements FS.
func (t *Tracked) Rename(oldName, newName string) error {
	defer t.end(t.begin("rename", oldName))
	return t.fs.Rename(oldName, newName)
}

// Remove implements FS.
func (t *Tracked) Remove(name string) error {
	defer t.end(t.begin("remove", name))
	return t.fs.Remove(name)
}

// List implements FS.
func (t *Tracked) List(dir string) ([]string, error) {
	defer t.end(t.begin("list", dir))
	return t.fs.List(dir)
}

// MkdirAll implements FS.
func (t *Tracked) MkdirAll(dir string) error {
	defer t.end(t.begin("mkdir", dir))
	return t.fs.MkdirAll(dir)
}

// SyncDir implements FS.
func (t *Tracked) SyncDir(dir string) error {
	defer t.endSync(t.begin("fsync", dir))
	return t.fs.SyncDir(dir)
}

// Usage implements FS.
func (t *Tracked) Usage(dir string) (Usage, error) {
	defer t.end(t.begin("statfs", dir))
	return t.fs.Usage(dir)
}

// Commit implements FS.
func (t *Tracked) Commit(name string, commit func() error) error {
	defer t.endSync(t.begin(OpCommit, name))
	return t.fs.Commit(name, commit)
}

// PunchHole implements FS.
func (t *Tracked) PunchHole(name string, f *os.File, off, size int64) error {
	defer t.end(t.begin("fallocate", name))
	return t.fs.PunchHole(name, f, off, size)
}

// file wraps what an operation has opened.
func (t *Tracked) file(name string) func(File, error) (File, error) {
	return func(f File, err error) (File, error) {
		if err != nil {
			return nil, err
		}
		return &trackedFile{f, t, name}, nil
	}
}

// trackedFile is a File of a Tracked.
type trackedFile struct {
	File
	t    *Tracked
	name string
}

func (f *trackedFile) ReadAt(p []byte, off int64) (int, error) {
	defer f.t.end(f.t.begin("read", f.name))
	return f.File.ReadAt(p, off)
}

func (f *trackedFile) WriteAt(p []byte, off int64) (int, error) {
	defer f.t.end(f.t.begin("write", f.name))
	return f.File.WriteAt(p, off)
}

func (f *trackedFile) Truncate(size int64) error {
	defer f.t.end(f.t.begin("truncate", f.name))
	return f.File.Truncate(size)
}

func (f *trackedFile) Preallocate(size int64) error {
	defer f.t.end(f.t.begin("fallocate", f.name))
	return f.File.Preallocate(size)
}

func (f *trackedFile) Sync() error {
	defer f.t.endSync(f.t.begin("fdatasync", f.name))
	return f.File.Sync()
}

func (f *trackedFile) Close() error {
	defer f.t.end(f.t.begin("close", f.name))
	return f.File.Close()
}
