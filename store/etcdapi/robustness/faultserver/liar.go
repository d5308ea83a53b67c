package main

import (
	"sync"
	"time"

	"github.com/tarn-kv/tarn/store/vfs"
)

// liar is a file system that says that content is durable when it is not: a
// process that is killed loses what was written in the last moments. The tree
// is told the truth, for the store would notice a tree that is ahead of the log.
type liar struct {
	vfs.FS
	delay time.Duration

	mu      sync.Mutex
	pending []func() error // changes that were not made yet, in order
}

func newLiar(below vfs.FS, delay time.Duration) *liar {
	l := &liar{FS: below, delay: delay}
	go func() {
		for range time.Tick(delay) {
			if err := l.flush(); err != nil {
				panic(err) // even a broken server must not lose writes at random
			}
		}
	}()
	return l
}

func (l *liar) later(change func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, change)
}

// flush makes all changes.
func (l *liar) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, change := range l.pending {
		if err := change(); err != nil {
			return err
		}
	}
	l.pending = nil
	return nil
}

func (l *liar) Create(name string) (vfs.File, error) {
	f, err := l.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return &liarFile{File: f, liar: l}, nil
}

func (l *liar) Open(name string) (vfs.File, error) {
	f, err := l.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return &liarFile{File: f, liar: l}, nil
}

func (l *liar) OpenRead(name string) (vfs.File, error) {
	if err := l.flush(); err != nil {
		return nil, err
	}
	return l.FS.OpenRead(name)
}

func (l *liar) Commit(name string, commit func() error) error {
	if err := l.flush(); err != nil {
		return err
	}
	return l.FS.Commit(name, commit)
}

// liarFile is an open file of a liar.
type liarFile struct {
	vfs.File
	liar *liar
}

func (f *liarFile) WriteAt(b []byte, off int64) (int, error) {
	held := append([]byte(nil), b...)
	f.liar.later(func() error {
		_, err := f.File.WriteAt(held, off)
		return err
	})
	return len(b), nil
}

func (f *liarFile) ReadAt(b []byte, off int64) (int, error) {
	if err := f.liar.flush(); err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, off)
}

func (f *liarFile) Size() (int64, error) {
	if err := f.liar.flush(); err != nil {
		return 0, err
	}
	return f.File.Size()
}

func (f *liarFile) Truncate(size int64) error {
	if err := f.liar.flush(); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (*liarFile) Sync() error { return nil }

func (f *liarFile) Close() error {
	if err := f.liar.flush(); err != nil {
		return err
	}
	return f.File.Close()
}
