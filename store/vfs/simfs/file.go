package simfs

import (
	"fmt"
	"os"
	"slices"
	"syscall"

	"github.com/tarn-kv/tarn/store/vfs"
)

// node is a file's content: what the disk holds for certain, and the changes
// since. The content as it is now is in the real file.
type node struct {
	synced  []byte
	pending []change
	size    int64 // now
	// outside is set for a file that is written past the seam: its content, as
	// it is, counts as synced.
	outside bool
}

// change is a write of data at off, or a change of the size to off if data is nil.
type change struct {
	off  int64
	data []byte
}

// refresh takes the content of a file that is written past the seam. path may
// be any that leads to it.
func (n *node) refresh(path string) {
	if !n.outside || len(n.pending) > 0 {
		return
	}
	if content, err := os.ReadFile(path); err == nil {
		n.synced, n.size = content, int64(len(content))
	}
}

// change notes a change that is not yet synced.
func (f *file) change(c change) {
	f.n.refresh(fmt.Sprintf("/proc/self/fd/%d", f.f.Fd()))
	f.n.pending = append(f.n.pending, c)
}

// settle makes all changes part of what the disk holds for certain.
func (n *node) settle() {
	for _, c := range n.pending {
		n.synced = c.apply(n.synced)
	}
	n.pending = nil
}

// forget drops the writes that were not synced, as a system may that could not
// write them: they can still be read, but no later sync tries them again.
func (n *node) forget() {
	n.pending = slices.DeleteFunc(n.pending, func(c change) bool { return c.data != nil })
}

func (c change) apply(content []byte) []byte {
	if c.data == nil {
		return resize(content, c.off)
	}
	if end := c.off + int64(len(c.data)); end > int64(len(content)) {
		content = resize(content, end)
	}
	copy(content[c.off:], c.data)
	return content
}

// resize cuts content or appends zeros to it.
func resize(content []byte, size int64) []byte {
	if size <= int64(len(content)) {
		return content[:size]
	}
	return append(content, make([]byte, size-int64(len(content)))...)
}

// file is an open file.
type file struct {
	s *FS
	f *os.File
	n *node
}

func (f *file) op(kind Kind, off, length int64) Op {
	return Op{Kind: kind, Path: f.f.Name(), Off: off, Len: length}
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	f.s.mu.Lock()
	_, err := f.s.begin(f.op(Read, off, int64(len(p))))
	f.s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return f.f.ReadAt(p, off)
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	op := f.op(Write, off, int64(len(p)))
	crash, err := f.s.begin(op)
	if err != nil {
		n := 0
		if short, ok := asShort(err); ok {
			n, _ = f.write(p[:min(short.N, len(p))], off)
		}
		return n, err
	}
	if crash {
		f.s.cutLocked()
		f.change(change{off, append([]byte{}, p...)})
		return 0, op.fail(ErrPowerCut)
	}
	n, err := f.write(p, off)
	if err == nil && n < len(p) {
		err = op.fail(syscall.ENOSPC)
	}
	return n, err
}

// write writes what there is room for.
func (f *file) write(p []byte, off int64) (int, error) {
	p = p[:f.s.room(f.n.size, off, len(p))]
	if len(p) == 0 {
		return 0, nil
	}
	f.change(change{off, append([]byte{}, p...)})
	n, err := f.f.WriteAt(p, off)
	if err != nil {
		return n, err
	}
	f.setSize(max(f.n.size, off+int64(n)))
	return n, nil
}

func (f *file) Truncate(size int64) error { return f.resize(Truncate, size) }

func (f *file) Preallocate(size int64) error {
	f.s.mu.Lock()
	idle := !vfs.Preallocates(f.s.fsType) || size <= f.n.size
	f.s.mu.Unlock()
	if idle {
		return nil
	}
	return f.resize(Preallocate, size)
}

func (f *file) resize(kind Kind, size int64) error {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	op := f.op(kind, size, 0)
	crash, err := f.s.begin(op)
	if err != nil {
		return err
	}
	if crash {
		f.s.cutLocked()
		f.change(change{off: size})
		return op.fail(ErrPowerCut)
	}
	if f.s.free >= 0 && size-f.n.size > f.s.free {
		return op.fail(syscall.ENOSPC)
	}
	f.change(change{off: size})
	if err := f.f.Truncate(size); err != nil {
		return err
	}
	f.setSize(size)
	return nil
}

func (f *file) Sync() error {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	op := f.op(Sync, 0, 0)
	crash, err := f.s.begin(op)
	if err != nil {
		if !f.s.cut {
			f.n.forget()
		}
		return err
	}
	if crash {
		f.s.cutLocked()
		return op.fail(ErrPowerCut)
	}
	f.n.settle()
	return nil
}

func (f *file) Size() (int64, error) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if _, err := f.s.begin(f.op(Size, 0, 0)); err != nil {
		return 0, err
	}
	info, err := f.f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Close always closes the real file. It makes nothing durable.
func (f *file) Close() error {
	if err := f.f.Close(); err != nil {
		return fmt.Errorf("simfs: %w", err)
	}
	return nil
}

// room is how many of n bytes at off can be written into a file of this size.
func (s *FS) room(size, off int64, n int) int {
	if s.free < 0 {
		return n
	}
	return int(min(int64(n), max(0, size+s.free-off)))
}

func (f *file) setSize(size int64) {
	f.s.giveBack(f.n.size - size)
	f.n.size = size
}

// giveBack adds to the free space; a negative number takes from it.
func (s *FS) giveBack(bytes int64) {
	if s.free >= 0 {
		s.free = max(0, s.free+bytes)
	}
}
