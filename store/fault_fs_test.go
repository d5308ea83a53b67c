package store

import (
	"errors"
	"path/filepath"
	"sync"

	"github.com/tarn-kv/tarn/store/vfs"
)

// faultFS is the real file system with faults in the log's files. Its functions may
// block, and be changed at any time.
type faultFS struct {
	vfs.FS
	mu    sync.Mutex
	write func() error // before a write of the log
	sync  func() error // before a sync of the log
	usage func() vfs.Usage
}

func newFaultFS() *faultFS { return &faultFS{FS: vfs.OS} }

func (f *faultFS) set(change func(*faultFS)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *faultFS) call(pick func(*faultFS) func() error) error {
	f.mu.Lock()
	do := pick(f)
	f.mu.Unlock()
	if do == nil {
		return nil
	}
	return do()
}

func (f *faultFS) Usage(dir string) (vfs.Usage, error) {
	f.mu.Lock()
	usage := f.usage
	f.mu.Unlock()
	if usage == nil {
		return f.FS.Usage(dir)
	}
	return usage(), nil
}

func (f *faultFS) Create(name string) (vfs.File, error) {
	file, err := f.FS.Create(name)
	return f.wrap(name, file, err)
}

func (f *faultFS) Open(name string) (vfs.File, error) {
	file, err := f.FS.Open(name)
	return f.wrap(name, file, err)
}

func (f *faultFS) wrap(name string, file vfs.File, err error) (vfs.File, error) {
	if err != nil || filepath.Base(filepath.Dir(name)) != walName {
		return file, err
	}
	return &faultFile{file, f}, nil
}

type faultFile struct {
	vfs.File
	fs *faultFS
}

func (f *faultFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.fs.call(func(x *faultFS) func() error { return x.write }); err != nil {
		return 0, err
	}
	return f.File.WriteAt(b, off)
}

func (f *faultFile) Sync() error {
	if err := f.fs.call(func(x *faultFS) func() error { return x.sync }); err != nil {
		return err
	}
	return f.File.Sync()
}

// gate makes the calls of a fault wait.
type gate struct {
	arrived chan struct{} // gets a value per call
	open    chan struct{} // closed to let them go
	err     error         // what they return
}

func newGate(err error) *gate {
	return &gate{arrived: make(chan struct{}, 1000), open: make(chan struct{}), err: err}
}

func (g *gate) wait() error {
	g.arrived <- struct{}{}
	<-g.open
	return g.err
}

var errDisk = errors.New("the disk is broken")
